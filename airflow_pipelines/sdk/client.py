"""Clients of the pipeline service: one REST contract, over the network or in-process.

No connection is opened and no service is created before the first request, so that a client costs nothing where DAGs are parsed.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import httpx
import tenacity

from airflow_pipelines.common.settings import PREFIX, Settings
from airflow_pipelines.sdk.errors import PipelineAPIError
from airflow_pipelines.sdk.outages import Patience
from airflow_pipelines.sdk.query_rows import QueryRows, query_request
from airflow_pipelines.sdk.service_requests import ServiceRequests
from airflow_pipelines.sdk.transport import ASGIApp, AsyncLocalTransport, LocalApp, LocalTransport, local_app
from airflow_pipelines.sdk.wire import (
    Payload,
    api_error,
    async_lines_of,
    is_retryable,
    parse,
    path_of,
    retry_options,
    transport_error,
    wire_params,
)

DEFAULT_TIMEOUT_S = 120.0
CONNECT_TIMEOUT_S = 10.0
Verify = bool | str | ssl.SSLContext
_KEPT_OPEN = 8
"""The maximum number of idle connections. Each request looks through all of them, so many cost more than they save."""
_KEPT_OPEN_S = 30.0
"""The number of seconds for which an idle connection is kept: longer than most polling intervals, so that polls reuse it."""
_EMBEDDED_URL = "http://localhost"
_USER_AGENT = "airflow-pipelines-sdk/v1"


def tls_context(ca_file: str | None = None) -> ssl.SSLContext:
    """Return a context that verifies certificates; it can be passed to clients.

    :param ca_file: path of a CA bundle; None for the one that comes with the HTTP library
    :raises ValueError: when the file cannot be read, or has no certificate
    """
    if ca_file is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ValueError(f"the CA file {ca_file} cannot be used: {error}") from error


class _Endpoint:
    """The target of a client's requests, and their headers: shared by the synchronous and the asynchronous client."""

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        home: str | os.PathLike[str] | None,
        deployer: str | None,
        deployers: Any,
        app: ASGIApp | None,
    ) -> None:
        if url is not None and (home is not None or app is not None):
            raise ValueError("give either a url or a home: a service reached by url has its own home")
        if url is None and home is None and app is None:
            url = os.environ.get(f"{PREFIX}URL") or None
        self.url = url.rstrip("/") if url is not None else None
        if self.url is not None and self.url.endswith("/v0"):
            self.url = self.url.removesuffix("/v0")
        self.api_key = api_key or os.environ.get(f"{PREFIX}API_KEY") or None
        self._deployers = deployers
        self._app = app
        # The caller of an embedded service has the store itself, so a key would guard nothing.
        overrides: dict[str, Any] = {"api_keys": ()}
        if deployer is not None:
            overrides["deployer"] = deployer
        self._settings = None if self.url is not None or app is not None else Settings.load(home, **overrides)

    @property
    def base_url(self) -> str:
        return self.url or _EMBEDDED_URL

    @property
    def headers(self) -> dict[str, str]:
        headers = {"User-Agent": _USER_AGENT}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return headers

    def local_app(self) -> LocalApp:
        """Return the embedded service of this process for this endpoint."""
        if self._app is not None:
            app = self._app
            return local_app(("app", id(app)), lambda: app)
        settings, deployers = self._settings, self._deployers
        if settings is None:
            raise RuntimeError("an endpoint with a url has no embedded service")

        def make() -> ASGIApp:
            # Imported here, so that a client of a remote service never loads the service's code.
            from airflow_pipelines.contract.http_status import http_status
            from airflow_pipelines.contract.problems import Problem
            from airflow_pipelines.service.app import create_embedded_app

            try:
                return create_embedded_app(settings, deployers)
            except Problem as problem:
                # An unusable store; over the network the error would have been an answer.
                raise PipelineAPIError(http_status(problem.code), problem.code.value, problem.message, problem.details) from problem

        return local_app((settings, deployers), make)

    def __repr__(self) -> str:
        if self.url is not None:
            return f"url={self.url!r}"
        return f"home={str(self._settings.home)!r}" if self._settings is not None else "app=<ASGI app>"


class _ClientBase:
    """The common part of both clients: the endpoint, the limits, and a representation without the key."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        deployer: str | None = None,
        deployers: Any = None,
        app: ASGIApp | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        outage_budget_s: float | None = None,
        verify: Verify = True,
    ) -> None:
        self._endpoint = _Endpoint(url, api_key, home, deployer, deployers, app)
        self.timeout_s = timeout_s
        self.connect_timeout_s = connect_timeout_s
        self.outage_budget_s = outage_budget_s
        self._verify = verify
        self._reached = False
        """True once the service has answered. Only then is a refused connection worth a retry (a service that restarts)."""

    @property
    def url(self) -> str | None:
        """The service's base URL; None when it runs in this process."""
        return self._endpoint.url

    @property
    def is_embedded(self) -> bool:
        """True if the service runs in this process."""
        return self._endpoint.url is None

    def _timeout(self, seconds: float | None) -> httpx.Timeout:
        limit = self.timeout_s if seconds is None else seconds
        return httpx.Timeout(limit, connect=min(limit, self.connect_timeout_s))

    def _limit_of_parts(self, read_timeout_s: float | None) -> httpx.Timeout:
        return httpx.Timeout(self.timeout_s, connect=self.connect_timeout_s, read=read_timeout_s)

    def _worth_retrying(self, error: BaseException) -> bool:
        # A service that never answered is at another address, or has an unusable store; waiting does not help.
        return is_retryable(error) and self._reached

    def _patience(self, outage_budget_s: float | None, repeatable: bool) -> Patience | None:
        """Return the retry policy of a request, or None if outages are not waited for."""
        budget_s = self.outage_budget_s if outage_budget_s is None else outage_budget_s
        return Patience(budget_s, repeatable, repr(self._endpoint)) if budget_s else None

    def _tls(self) -> bool | ssl.SSLContext:
        """Return the value of httpx's ``verify``.

        Creating a context takes tens of milliseconds, which is avoided for HTTP without TLS.
        """
        if self._endpoint.url is None or self._endpoint.url.startswith("http://"):
            return False
        return tls_context(self._verify) if isinstance(self._verify, str) else self._verify

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint!r})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a client holds a key and connections and cannot be pickled; make a new one where it is needed")


class PipelineClient(_ClientBase, ServiceRequests):
    """A client of the pipeline service. Thread-safe, and usable in forked children.

    With a ``url`` (or ``AIRFLOW_PIPELINES_URL``) it talks to ``airflow-pipelines serve``. Without one, the same service runs inside
    this process over the store in ``home`` (default ``AIRFLOW_PIPELINES_HOME``, else ``~/.airflow_pipelines``): there is nothing to
    start, and nothing keeps running except the Spark host that pipelines run in.

    :param url: base URL of a service, such as ``http://pipelines:8080``
    :param api_key: sent as a bearer token; default ``AIRFLOW_PIPELINES_API_KEY``. Never shown.
    :param home: folder of the embedded service's store. Not together with ``url``; takes precedence over ``AIRFLOW_PIPELINES_URL``.
    :param deployer: the way in which the embedded service runs pipelines: ``shared`` or ``dedicated`` (default: the settings')
    :param deployers: the embedded service's deployers, for callers that submit Spark applications in their own way
    :param app: an ASGI app to call in-process instead of one made for ``home``
    :param timeout_s: seconds to wait for an answer, or for the next part of one
    :param connect_timeout_s: seconds to wait for a connection
    :param outage_budget_s: seconds for which requests are retried while the service is away: all requests while no connection can
        be made, and repeatable ones also when the connection broke. None: only repeatable ones, three more times, and only once the
        service has answered.
    :param verify: True to verify TLS certificates, False not to, the path of a CA bundle, or a ready context
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        deployer: str | None = None,
        deployers: Any = None,
        app: ASGIApp | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        outage_budget_s: float | None = None,
        verify: Verify = True,
    ) -> None:
        super().__init__(
            url,
            api_key,
            home=home,
            deployer=deployer,
            deployers=deployers,
            app=app,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            outage_budget_s=outage_budget_s,
            verify=verify,
        )
        self._lock = threading.Lock()
        self._http: tuple[int, httpx.Client] | None = None

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        idempotent: bool | None = None,
        outage_budget_s: float | None = None,
    ) -> Any:
        """See :meth:`ServiceRequests.request`."""
        payload = Payload(method, json, content, headers)

        def once() -> Any:
            return self._send(method, path, params, payload, timeout_s)

        repeatable = method == "GET" if idempotent is None else idempotent
        patience = self._patience(outage_budget_s, repeatable)
        if patience is not None:
            answer = tenacity.Retrying(**patience.options())(once)
            patience.log_recovery()
            return answer
        if not repeatable or outage_budget_s == 0:
            return once()
        options = retry_options() | {"retry": tenacity.retry_if_exception(self._worth_retrying)}
        return tenacity.Retrying(**options)(once)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        read_timeout_s: float | None = None,
    ) -> Iterator[httpx.Response]:
        """Make one call and read its answer as it arrives. Leaving the context closes the answer and cancels the call.

        :param method: HTTP method
        :param path: as for :meth:`request`
        :param params: as for :meth:`request`
        :param json: as for :meth:`request`
        :param read_timeout_s: seconds to wait for each part of the answer; None waits without limit
        :returns: the response, its status already checked and its body not read
        :raises PipelineAPIError: when the service answers with an error
        :raises PipelineConnectionError: when the service cannot be reached or the answer breaks off
        :raises PipelineTimeoutError: when the next part does not arrive in time
        """
        payload = Payload(method, json, None, None)
        limit = self._limit_of_parts(read_timeout_s)
        with self._translating(method, path):
            request = self._client().build_request(
                method, path, params=wire_params(params), content=payload.content, headers=payload.headers, timeout=limit
            )
            response = self._client().send(request, stream=True)
            try:
                self._reached = True
                if response.status_code >= 400:
                    response.read()
                    raise api_error(response)
                yield response
            finally:
                response.close()

    def close(self) -> None:
        """Close the connections. The client may be used again; an embedded service keeps running for the process."""
        with self._lock:
            http, self._http = self._http, None
        if http is not None and http[0] == os.getpid():
            http[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _client(self) -> httpx.Client:
        """Return the httpx client of this process; sockets must not be shared with a forked child."""
        pid = os.getpid()
        http = self._http
        if http is None or http[0] != pid:
            transport = LocalTransport(self._endpoint.local_app) if self.is_embedded else None
            client = httpx.Client(
                base_url=self._endpoint.base_url,
                headers=self._endpoint.headers,
                transport=transport,
                verify=self._tls(),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
                follow_redirects=False,
            )
            self._http = http = (pid, client)
        return http[1]

    def _send(self, method: str, path: str, params: Mapping[str, Any] | None, payload: Payload, timeout_s: float | None) -> Any:
        with self._translating(method, path):
            response = self._client().request(
                method,
                path,
                params=wire_params(params),
                content=payload.content,
                headers=payload.headers,
                timeout=self._timeout(timeout_s),
            )
        self._reached = True
        if response.status_code >= 400:
            raise api_error(response)
        return parse(response)

    @contextmanager
    def _translating(self, method: str, path: str) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise transport_error(error, method, path, repr(self._endpoint)) from error


class AsyncPipelineClient(_ClientBase):
    """An asynchronous client, for Airflow triggers and other event loops. Bound to the loop in which it is first used.

    :param url: as for :class:`PipelineClient`, and so are all other arguments
    :param api_key: see there
    :param home: see there
    :param deployer: see there
    :param deployers: see there
    :param app: see there
    :param timeout_s: see there
    :param connect_timeout_s: see there
    :param outage_budget_s: see there
    :param verify: see there
    """

    _http: httpx.AsyncClient | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | str | None = None,
        timeout_s: float | None = None,
        idempotent: bool | None = None,
        outage_budget_s: float | None = None,
    ) -> Any:
        """Make one call of the contract, as :meth:`PipelineClient.request` does.

        :param method: HTTP method
        :param path: path with percent-encoded parts
        :param params: query parameters; None values are left out
        :param json: body as a JSON value. A POST, PUT or PATCH without any body sends ``null``.
        :param content: body as is, instead of ``json``
        :param timeout_s: seconds to wait for the answer; default the client's
        :param idempotent: True if the call may be repeated when the service is busy or away. Default: True for GET.
        :param outage_budget_s: seconds for which to retry while the service is away; default the client's, 0 for a single attempt
        :returns: as :meth:`PipelineClient.request`
        :raises PipelineAPIError: when the service answers with an error
        :raises PipelineConnectionError: when the service cannot be reached
        :raises PipelineTimeoutError: when it does not answer in time
        """
        payload = Payload(method, json, content, None)

        async def once() -> Any:
            try:
                response = await self._client().request(
                    method,
                    path,
                    params=wire_params(params),
                    content=payload.content,
                    headers=payload.headers,
                    timeout=self._timeout(timeout_s),
                )
            except httpx.TransportError as error:
                raise transport_error(error, method, path, repr(self._endpoint)) from error
            self._reached = True
            if response.status_code >= 400:
                raise api_error(response)
            return parse(response)

        repeatable = method == "GET" if idempotent is None else idempotent
        patience = self._patience(outage_budget_s, repeatable)
        if patience is not None:
            answer: Any = await tenacity.AsyncRetrying(**patience.options())(once)
            patience.log_recovery()
            return answer
        if not repeatable or outage_budget_s == 0:
            return await once()
        options = retry_options() | {"retry": tenacity.retry_if_exception(self._worth_retrying)}
        return await tenacity.AsyncRetrying(**options)(once)

    async def get(self, path: str, **options: Any) -> Any:
        """Make a GET request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return await self.request("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Any:
        """Make a POST request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return await self.request("POST", path, **options)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        read_timeout_s: float | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Make one call and read its answer as it arrives, as :meth:`PipelineClient.stream` does.

        :param method: HTTP method
        :param path: path with percent-encoded parts
        :param params: query parameters; None values are left out
        :param json: a body, as JSON
        :param read_timeout_s: seconds to wait for each part of the answer; None waits without limit
        :returns: the response, its status already checked and its body not read
        :raises PipelineAPIError: when the service answers with an error
        :raises PipelineConnectionError: when the service cannot be reached or the answer breaks off
        :raises PipelineTimeoutError: when the next part does not arrive in time
        """
        payload = Payload(method, json, None, None)
        limit = self._limit_of_parts(read_timeout_s)
        client = self._client()
        try:
            async with client.stream(
                method, path, params=wire_params(params), content=payload.content, headers=payload.headers, timeout=limit
            ) as response:
                self._reached = True
                if response.status_code >= 400:
                    await response.aread()
                    raise api_error(response)
                yield response
        except httpx.TransportError as error:
            raise transport_error(error, method, path, repr(self._endpoint)) from error

    async def pipeline(self, name: str) -> dict[str, Any]:
        """Return a pipeline's descriptor with its status fields.

        :param name: name of the pipeline
        :returns: the wire object of selector ``status``
        :raises PipelineAPIError: with code ``UnknownPipelineName`` when there is none
        """
        descriptor: dict[str, Any] = await self.get(path_of("pipelines", name), params={"selector": "status"}, idempotent=False)
        return descriptor

    async def stats(self, name: str) -> dict[str, Any]:
        """Return a pipeline's statistics.

        :param name: name of the pipeline
        :returns: the wire object
        :raises PipelineAPIError: when there is no such pipeline, or it is not running
        """
        stats: dict[str, Any] = await self.get(path_of("pipelines", name, "stats"), idempotent=False)
        return stats

    async def completion_status(self, name: str, token: str, *, checkpoint: bool = False) -> dict[str, Any]:
        """Return the status of a completion token: ``{"status": "complete" | "inprogress", "step": ..., "durable": ...}``.

        :param name: the pipeline's name
        :param token: the token
        :param checkpoint: True to count the token as complete only once it is durable, and to make a checkpoint if that is needed
        :raises PipelineAPIError: when the token is not of this pipeline, or the pipeline is not running
        """
        params = {"token": token, "checkpoint": True if checkpoint else None}
        answer: dict[str, Any] = await self.get(path_of("pipelines", name, "completion_status"), params=params, idempotent=False)
        return answer

    async def query(self, name: str, query: str, limit: int) -> list[Mapping[str, Any]]:
        """Return the first rows of an ad-hoc query, as :meth:`Pipeline.query` gives them.

        :param name: name of the pipeline
        :param query: a SELECT
        :param limit: the maximum number of rows
        :raises PipelineAPIError: when the pipeline is neither running nor paused, or the query is invalid or fails
        """
        first_rows: list[Mapping[str, Any]] = []
        method, options = query_request(name, query, "json")
        async with self.stream(method, path_of("pipelines", name, "query"), **options) as response:
            rows = QueryRows(response)
            async for line in async_lines_of(response):
                row = rows.row(line)
                if row is not None and len(first_rows) < limit:
                    first_rows.append(row)
                if len(first_rows) >= limit:
                    break
        return first_rows

    async def close(self) -> None:
        """Close the connections."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            local: Callable[[], LocalApp] = self._endpoint.local_app
            self._http = httpx.AsyncClient(
                base_url=self._endpoint.base_url,
                headers=self._endpoint.headers,
                transport=AsyncLocalTransport(local) if self.is_embedded else None,
                verify=self._tls(),
                limits=httpx.Limits(max_connections=100, max_keepalive_connections=_KEPT_OPEN, keepalive_expiry=_KEPT_OPEN_S),
            )
        return self._http
