"""The proxy that passes runtime calls on to a pipeline's host, without ever waiting for a dead one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import anyio
import httpx
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.contract.problems import QUERY_FAILED_HEADER, READ_ONLY_HEADER, Problem
from airflow_pipelines.contract.push_keys import IDEMPOTENCY_KEY_HEADER
from airflow_pipelines.service.control_plane import ControlPlane, Target
from airflow_pipelines.service.hosts import CLOSED, HostState, authorization, tls_context
from airflow_pipelines.serving.path_segments import segment

T = TypeVar("T")

WATCH_S = 2.0
"""The interval, in seconds, at which a call in progress checks that its host is alive."""

_BODY = {"content-length", "transfer-encoding"}
"""The headers that show that a request has a body, and where it ends."""
_FORWARDED = ("content-type", "accept", "content-encoding", IDEMPOTENCY_KEY_HEADER, *_BODY)
CLIENT_LEFT = 499
"""The status of an answer that nobody reads any more, as some servers write it into their logs."""


class HostLost(Exception):
    """The error of a host that broke off a call or died during it."""


class Proxy:
    """The proxy of the runtime endpoints."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        # Connections belong to an event loop, and an embedded service may be called from several.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def call(self, request: Request, name: str, *tail: str) -> Response:
        """Pass a call on with its body as a stream, and return its whole answer.

        :param request: the client's request
        :param name: the pipeline
        :param tail: the segments of the path on the host, after the deployment's
        :raises Problem: when the pipeline has no host that answers
        """
        target, upstream = await self._open(request, name, tail)
        try:
            content = await self._guard(target, upstream.aread())
        except (httpx.HTTPError, HostLost) as error:
            raise await self._explain_broken_call(name, error) from error
        finally:
            await upstream.aclose()
        return Response(content, upstream.status_code, headers=_pick_headers(upstream))

    async def stream(self, request: Request, name: str, *tail: str, ndjson: bool = False, endless: bool = False) -> Response:
        """Pass a call on, and return its answer as a stream.

        If the host dies, an ``endless`` stream simply ends, an ``ndjson`` one ends with a line that reports it, and any other is
        broken off, so that nobody takes half an answer for a whole one.

        :param request: the client's request
        :param name: the pipeline
        :param tail: the segments of the path on the host, after the deployment's
        :param ndjson: True if the answer is JSON lines
        :param endless: True if the answer ends only with the pipeline
        :raises Problem: when the pipeline has no host that answers
        """
        # The whole body is read before waiting for the client to leave, since both arrive through the same messages.
        await request.body()
        opened = await _run_unless_left(request, self._open(request, name, tail))
        if opened is None:
            return Response(status_code=CLIENT_LEFT)
        target, upstream = opened
        if not upstream.is_success:
            try:
                content = await self._guard(target, upstream.aread())
            except (httpx.HTTPError, HostLost) as error:
                raise await self._explain_broken_call(name, error) from error
            finally:
                await upstream.aclose()
            return Response(content, upstream.status_code, headers=_pick_headers(upstream))
        chunks = self._chunks(target, upstream, ndjson=ndjson, endless=endless)
        return StreamingResponse(chunks, upstream.status_code, headers=_pick_headers(upstream))

    async def query(self, name: str, sql: str, result_format: str, *, read_only: bool) -> tuple[bool, AsyncIterator[bytes]]:
        """Send an ad-hoc request to a pipeline's host that did not arrive as an HTTP request.

        :param name: the pipeline
        :param sql: the SQL text
        :param result_format: the format of its result
        :param read_only: True if the request must not change tables
        :returns: True if the host accepted it, and the body of the answer as a stream: the result, or else the problem
        :raises Problem: when the pipeline has no host that answers
        """
        target = await run_in_threadpool(self._control_plane.target, name)
        url = f"{(target.host.url or '').rstrip('/')}{target.path}/query"
        headers = authorization(target.host) | ({READ_ONLY_HEADER: "true"} if read_only else {})
        call = self._client().build_request("POST", url, params={"format": result_format}, json={"sql": sql}, headers=headers)
        upstream = await self._send(target, call, repeatable=False)
        return upstream.is_success, self._chunks(target, upstream, ndjson=result_format == "json", endless=False)

    async def _chunks(self, target: Target, upstream: httpx.Response, *, ndjson: bool, endless: bool) -> AsyncIterator[bytes]:
        source = upstream.aiter_bytes()
        try:
            while (chunk := await self._guard(target, anext(source, None))) is not None:
                yield chunk
        except (httpx.HTTPError, HostLost) as error:
            problem = await self._explain_broken_call(target.record.name, error)
            if ndjson:
                yield (json.dumps({"error": problem.message}) + "\n").encode()
            elif not endless:
                raise problem from error
        finally:
            await upstream.aclose()

    async def _open(self, request: Request, name: str, tail: tuple[str, ...]) -> tuple[Target, httpx.Response]:
        target = await run_in_threadpool(self._control_plane.target, name)
        path = "/".join(quote(segment(part), safe="") for part in tail)
        url = httpx.URL(f"{(target.host.url or '').rstrip('/')}{target.path}/{path}", query=request.url.query.encode() or None)
        headers = {key: value for key in _FORWARDED if (value := request.headers.get(key)) is not None} | authorization(target.host)
        if getattr(request.state, "read_only", False):
            headers[READ_ONLY_HEADER] = "true"
        content = request.stream() if headers.keys() & _BODY else None
        repeatable = request.method == "GET" and tail[0] != "query" and content is None
        call = self._client().build_request(request.method, url, headers=headers, content=content)
        return target, await self._send(target, call, repeatable=repeatable)

    async def _send(self, target: Target, call: httpx.Request, *, repeatable: bool) -> httpx.Response:
        attempts = RetryPolicy(attempts=3).retrying_async(retry_if_exception_type(CLOSED if repeatable else ()))

        async def send() -> httpx.Response:
            return await self._client().send(call, stream=True)

        try:
            return await self._guard(target, attempts(send))
        except (httpx.HTTPError, HostLost) as error:
            raise await self._explain_broken_call(target.record.name, error) from error

    async def _guard(self, target: Target, work: Awaitable[T]) -> T:
        """Wait for ``work`` as long as the host lives."""
        task = asyncio.ensure_future(work)
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=WATCH_S)
                if done:
                    return task.result()
                health = await run_in_threadpool(self._health, target)
                if health is not None:
                    raise HostLost(health)
        finally:
            if not task.done():
                task.cancel()
                # Shielded: a task that is cancelled once more while it closes its connection leaves it open, and the host goes on.
                with anyio.CancelScope(shield=True), suppress(asyncio.CancelledError, httpx.HTTPError):
                    await task

    def _health(self, target: Target) -> str | None:
        host = self._control_plane.registry.get(target.host.host_id)
        if host is None:
            return "its row is gone from the store"
        health = self._control_plane.hosts.health(host)
        return health.reason if health.state is HostState.LOST else None

    async def _explain_broken_call(self, name: str, error: Exception) -> Problem:
        return await run_in_threadpool(self._control_plane.explain_broken_call, name, str(error) or type(error).__name__)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            # No read timeout: queries and ingress into a paused pipeline may take any time; the watch ends them with the host.
            timeout = httpx.Timeout(None, connect=5.0)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            client = self._clients[loop] = httpx.AsyncClient(timeout=timeout, limits=limits, verify=tls_context(), trust_env=False)
        return client


async def _run_unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of ``work``, or cancel it and return None if the client leaves before."""

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(wait_for_disconnect())
    waited: set[asyncio.Future[Any]] = {task, gone}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for one in waited:
            one.cancel()
        await asyncio.gather(*waited, return_exceptions=True)


def _pick_headers(upstream: httpx.Response) -> dict[str, str]:
    """Return the headers that are passed on to the client.

    Clients compare the content type with ``text/plain``, to which Starlette would add a charset by itself.
    """
    headers = {key: value for key in ("content-type", QUERY_FAILED_HEADER) if (value := upstream.headers.get(key)) is not None}
    return {key: value.removesuffix("; charset=utf-8") for key, value in headers.items()}
