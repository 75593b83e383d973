"""The in-process transport: httpx requests that an ASGI app answers on its own event loop in this process.

Existing bridges do not suffice: ``httpx.ASGITransport`` gathers the whole body before it answers, so following a view or a log
would never begin; ``httpx.WSGITransport`` over ``a2wsgi`` streams, but it has no timeouts, runs no lifespan, and tells the app of a
closed response only when the app sends its next chunk - a silent stream would keep its handler for ever. Here the app runs on one
background event loop and a request is an :class:`_Exchange` on it: chunks flow through a bounded queue (a slow reader slows the
app, as a socket would), httpx's read timeout holds for the head and for each chunk, and closing a response sends
``http.disconnect`` and cancels the handler at once. The synchronous and the asynchronous transport share that loop; so the app
never sees the caller's loop, and a blocking handler never blocks a triggerer.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, MutableMapping
from typing import Any, TypeVar

import httpx

logger = logging.getLogger(__name__)

ASGIApp = Callable[..., Coroutine[Any, Any, None]]
Message = MutableMapping[str, Any]
T = TypeVar("T")

_QUEUED_CHUNKS = 16
_SHUTDOWN_S = 5.0


class LocalApp:
    """An ASGI app that runs on a background event loop of this process.

    :param app: the app. Its lifespan is started with the loop and ended when the process exits.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._loop = asyncio.new_event_loop()
        self._lifespan_events: asyncio.Queue[Message] = asyncio.Queue()
        self._lifespan_task: asyncio.Task[None] | None = None
        threading.Thread(target=self._loop.run_forever, name="airflow-pipelines-app", daemon=True).start()
        self.submit(self._start_lifespan()).result()
        self._pid = os.getpid()
        atexit.register(self.close)

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the app's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function on the app's loop, without waiting for it."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the app's lifespan and its loop. Does nothing in a forked child, whose loop thread does not exist."""
        if os.getpid() != self._pid or not self._loop.is_running():
            return
        atexit.unregister(self.close)
        try:
            self.submit(self._end_lifespan()).result(_SHUTDOWN_S)
        except TimeoutError:
            logger.warning("The embedded service did not shut down within %s s", _SHUTDOWN_S)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _start_lifespan(self) -> None:
        started: asyncio.Future[None] = self._loop.create_future()

        async def send(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and not started.done():
                started.set_exception(RuntimeError(f"the service did not start: {message.get('message', '')}"))
            elif not started.done():
                started.set_result(None)

        self._lifespan_events.put_nowait({"type": "lifespan.startup"})
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        self._lifespan_task = asyncio.ensure_future(self.app(scope, self._lifespan_events.get, send))
        await asyncio.wait({started, self._lifespan_task}, return_when=asyncio.FIRST_COMPLETED)
        # An app that ends or raises here without an answer does not know the lifespan protocol, which the ASGI specification
        # allows.
        if started.done():
            started.result()

    async def _end_lifespan(self) -> None:
        if self._lifespan_task is not None and not self._lifespan_task.done():
            self._lifespan_events.put_nowait({"type": "lifespan.shutdown"})
            await asyncio.wait({self._lifespan_task})


class _Exchange:
    """A request and its response on the app's loop. All coroutines run there."""

    def __init__(self, app: ASGIApp, request: httpx.Request, body: bytes) -> None:
        self._app = app
        self._request = request
        self._body: bytes | None = body
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED_CHUNKS)
        self._closed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._complete = False
        """True once the app has sent its whole answer; later actions and errors of the app do not concern the caller."""

    async def begin(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Call the app and return the head of its answer."""
        self._head: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run())
        try:
            return await asyncio.shield(self._head)
        except asyncio.CancelledError:
            self.close()
            raise

    async def next_chunk(self) -> bytes | None:
        """Return the next part of the body; None at its end."""
        chunk = await self._chunks.get()
        if chunk is None and self._failure is not None and not self._complete:
            raise httpx.RemoteProtocolError(f"the service failed while answering: {self._failure!r}") from self._failure
        return chunk

    def close(self) -> None:
        """Tell the app, without waiting, that the caller has closed the response. A caller that waits for a chunk gets the end."""
        self._closed.set()
        while self._chunks.full():
            self._chunks.get_nowait()
        self._chunks.put_nowait(None)
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._app(self._scope(), self._receive, self._send)
        except asyncio.CancelledError:
            if not self._closed.is_set():
                raise
        except Exception as error:
            self._failure = error
            if not self._closed.is_set():
                logger.exception("Error in the embedded service")
            if not self._closed.is_set() and not self._head.done():
                self._head.set_exception(httpx.RemoteProtocolError(f"the service failed: {error!r}"))
        finally:
            if self._closed.is_set():
                self._head.cancel()
            elif not self._complete:
                if not self._head.done():
                    self._head.set_exception(httpx.RemoteProtocolError("the service gave no answer"))
                await self._chunks.put(None)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._closed.is_set():
            return
        if message["type"] == "http.response.start":
            self._head.set_result((message["status"], list(message.get("headers", ()))))
        elif message["type"] == "http.response.body":
            if message.get("body"):
                await self._chunks.put(bytes(message["body"]))
            if not message.get("more_body", False):
                self._complete = True
                await self._chunks.put(None)

    def _scope(self) -> dict[str, Any]:
        url = self._request.url
        return {
            "type": "http",
            # With 2.3 a streaming response listens for the disconnect; from 2.4 on it would notice only at its next chunk.
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self._request.method,
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0],
            "query_string": url.query,
            "root_path": "",
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 0),
        }


def _read_timeout(request: httpx.Request) -> float | None:
    timeout: float | None = request.extensions.get("timeout", {}).get("read")
    return timeout


class _Stream(httpx.SyncByteStream):
    def __init__(self, local: LocalApp, exchange: _Exchange, request: httpx.Request) -> None:
        self._local = local
        self._exchange = exchange
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        while True:
            chunk = _result(self._local.submit(self._exchange.next_chunk()), self._request)
            if chunk is None:
                return
            yield chunk

    def close(self) -> None:
        self._local.call_soon(self._exchange.close)


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, local: LocalApp, exchange: _Exchange, request: httpx.Request) -> None:
        self._local = local
        self._exchange = exchange
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            chunk = await _async_result(self._local.submit(self._exchange.next_chunk()), self._request)
            if chunk is None:
                return
            yield chunk

    async def aclose(self) -> None:
        self._local.call_soon(self._exchange.close)


def _result(future: concurrent.futures.Future[T], request: httpx.Request) -> T:
    timeout = _read_timeout(request)
    try:
        return future.result(timeout)
    except concurrent.futures.TimeoutError:
        raise httpx.ReadTimeout(f"no answer within {timeout} s", request=request) from None
    finally:
        # Also when a KeyboardInterrupt ends the wait: nobody will ask for this result again.
        future.cancel()


async def _async_result(future: concurrent.futures.Future[T], request: httpx.Request) -> T:
    timeout = _read_timeout(request)
    try:
        # Not wait_for, which in Python 3.11 forgets that it was cancelled when the answer comes at the same moment.
        async with asyncio.timeout(timeout):
            return await asyncio.wrap_future(future)
    except TimeoutError:
        raise httpx.ReadTimeout(f"no answer within {timeout} s", request=request) from None


def interrupt(response: httpx.Response) -> None:
    """End a streamed response while another thread reads it; that thread sees the end of the body, or an error.

    Closing alone would not suffice: a read that blocks on a socket does not notice that another thread has closed it.

    :param response: the response; one of a :class:`LocalTransport` or over a socket
    """
    local = response.extensions.get("interrupt")
    if local is not None:
        local()
        return
    network = response.extensions["network_stream"]
    with contextlib.suppress(OSError):  # the other side may have ended the connection at the same moment
        network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class LocalTransport(httpx.BaseTransport):
    """A synchronous httpx transport to a :class:`LocalApp`.

    :param local_app: a function that returns the app at each request, so that a forked child gets its own
    """

    def __init__(self, local_app: Callable[[], LocalApp]) -> None:
        self._local_app = local_app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; the body is streamed.

        :raises httpx.ReadTimeout: when the head of the answer does not arrive in time
        """
        local = self._local_app()
        exchange = _Exchange(local.app, request, request.read())
        status, headers = _result(local.submit(exchange.begin()), request)
        stream = _Stream(local, exchange, request)
        return httpx.Response(status, headers=headers, stream=stream, extensions={"interrupt": stream.close})


class AsyncLocalTransport(httpx.AsyncBaseTransport):
    """An asynchronous httpx transport to a :class:`LocalApp`; see :class:`LocalTransport`."""

    def __init__(self, local_app: Callable[[], LocalApp]) -> None:
        self._local_app = local_app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; the body is streamed."""
        # Making the app opens its store, which is no work for the caller's loop.
        local = await asyncio.to_thread(self._local_app)
        exchange = _Exchange(local.app, request, await request.aread())
        status, headers = await _async_result(local.submit(exchange.begin()), request)
        return httpx.Response(status, headers=headers, stream=_AsyncStream(local, exchange, request))


class _Apps:
    """The apps of this process by key: one each, created on first use, and created anew in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._apps: dict[Any, LocalApp] = {}
        # The parent's loop threads do not exist in a child, and its lock may be held: the child starts with neither.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._apps = {}

    def get(self, key: Any, make: Callable[[], ASGIApp]) -> LocalApp:
        with self._lock:
            local = self._apps.get(key)
            if local is None:
                local = self._apps[key] = LocalApp(make())
            return local


_APPS = _Apps()


def local_app(key: Any, make: Callable[[], ASGIApp]) -> LocalApp:
    """Return the one running app of this process for ``key``.

    :param key: a hashable value that identifies the app, such as the home folder
    :param make: a function that builds the app if this process has none for ``key`` yet
    :returns: the app with its loop running
    """
    return _APPS.get(key, make)
