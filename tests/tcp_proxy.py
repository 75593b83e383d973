"""A network between a client and a server that can be slow, silent or gone."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self


class TcpProxy:
    """Hands on what comes to a port of its own. ``delay_s`` is added to each packet in both directions, and may change."""

    def __init__(self, host: str, port: int, own_port: int = 0) -> None:
        self.delay_s = 0.0
        self._target = (host, port)
        self._flows = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp proxy", daemon=True)
        self._server: asyncio.Server | None = None
        with socket.create_server(("127.0.0.1", own_port)) as probe:
            self.port: int = probe.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        self._flows.set()
        self.restore()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._do(self._end_tasks)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """Drop all connections, and refuse new ones until :meth:`restore`."""
        self._do(self._cut)

    def restore(self) -> None:
        """Take connections again, and let flow what :meth:`hold` has held back."""
        self._do(self._restore)

    def hold(self) -> None:
        """Keep all that comes: connections stay, and nobody gets anything."""
        self._do(self._hold)

    def _do(self, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(action(), self._loop).result(10)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def _restore(self) -> None:
        self._flows.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    async def _hold(self) -> None:
        self._flows.clear()

    async def _end_tasks(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        try:
            await asyncio.gather(self._hand_on(reader, there_writer), self._hand_on(there_reader, writer))
        finally:
            self._writers -= {writer, there_writer}

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await asyncio.sleep(self.delay_s)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
