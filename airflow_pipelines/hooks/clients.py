"""The asynchronous clients of a process: one for each event loop and connection, shared by all waits.

Making a client blocks the event loop for tens of milliseconds (its TLS context), and each client opens connections of its own. In a
triggerer with hundreds of waits that adds up to seconds, so the waits share clients.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_pipelines.sdk.client import AsyncPipelineClient

logger = logging.getLogger(__name__)

FRESH_S: Final = 30.0
"""The seconds for which a connection that was read is not read again; a change of it is noticed after that."""

AT_ONCE: Final = 32
"""The number of blocks that use a client at the same time; others wait for their turn.

The cost of requests that wait inside the HTTP library grows with the square of their number.
"""

Address = Any
"""The value that distinguishes connections; two connections whose addresses are equal share a client."""


@dataclass(slots=True)
class _Shared:
    """A client with its address, the time when the address was read, the number of its users, and the semaphore of its turns."""

    client: AsyncPipelineClient
    address: Address
    read_at: float
    users: int = 0
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class LoopClients:
    """The clients of one event loop, closed when the tasks of the loop are cancelled at its end."""

    def __init__(self) -> None:
        self._shared: dict[str, _Shared] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        # An event loop that ends cancels its tasks and lets them finish; this task closes the connections then.
        self._keeper = asyncio.ensure_future(self._close_at_the_end())

    @asynccontextmanager
    async def client(
        self, key: str, address: Callable[[], Awaitable[Address]], make: Callable[[Address], Awaitable[AsyncPipelineClient]]
    ) -> AsyncIterator[AsyncPipelineClient]:
        """Yield the client for a connection, for the length of a block.

        :param key: the connection's id
        :param address: a function that reads the address of the connection
        :param make: a function that makes a client for an address
        """
        shared = await self._current(key, address, make)
        shared.users += 1
        try:
            async with shared.turns:
                yield shared.client
        finally:
            shared.users -= 1
            if shared.users == 0 and self._shared.get(key) is not shared:
                await shared.client.close()

    async def _current(
        self, key: str, address: Callable[[], Awaitable[Address]], make: Callable[[Address], Awaitable[AsyncPipelineClient]]
    ) -> _Shared:
        known = self._shared.get(key)
        if known is not None and time.monotonic() - known.read_at < FRESH_S:
            return known
        async with self._reading.setdefault(key, asyncio.Lock()):
            known = self._shared.get(key)
            if known is not None and time.monotonic() - known.read_at < FRESH_S:
                return known
            current = await self._read(key, known, address)
            if known is not None and current == known.address:
                known.read_at = time.monotonic()
                return known
            shared = _Shared(await make(current), current, time.monotonic())
            self._shared[key] = shared
            if known is not None:
                logger.info("Connection %s leads to %r now", key, shared.client)
                if known.users == 0:
                    await known.client.close()
            return shared

    async def _read(self, key: str, known: _Shared | None, address: Callable[[], Awaitable[Address]]) -> Address:
        try:
            return await address()
        except (AirflowNotFoundException, ValueError):
            raise
        except Exception as error:
            if known is None:
                raise
            # Airflow's API server, or a secrets backend, is away: waits continue with the address that was read before.
            logger.warning("Connection %s cannot be read again, so it is taken as it was: %r", key, error)
            return known.address

    async def _close_at_the_end(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for shared in self._shared.values():
                await shared.client.close()
            self._shared.clear()


_LOOPS: weakref.WeakKeyDictionary[AbstractEventLoop, LoopClients] = weakref.WeakKeyDictionary()


def loop_clients() -> LoopClients:
    """Return the clients of the running event loop."""
    loop = asyncio.get_running_loop()
    clients = _LOOPS.get(loop)
    if clients is None:
        clients = _LOOPS[loop] = LoopClients()
    return clients
