"""The asynchronous clients of a process: one for each event loop and connection, however many wait.

Making a client costs tens of milliseconds (its TLS context) in which an event loop stands still, and each client opens connections
of its own. In a triggerer with hundreds of waits that is seconds; so they share.
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
"""For how long a connection is not read again: a changed one is noticed after that."""

AT_ONCE: Final = 32
"""So many blocks use a client at the same time; others wait for their turn. What waits in the HTTP library costs it time that grows
with its square.
"""

Address = Any
"""What tells connections apart; two that are equal share a client."""


@dataclass(slots=True)
class _Shared:
    """A client, the address it was made for, when that was read last, how many want the client now, and whose turn it is."""

    client: AsyncPipelineClient
    address: Address
    read_at: float
    users: int = 0
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class LoopClients:
    """The clients of one event loop. They are closed when the loop's tasks are cancelled at its end."""

    def __init__(self) -> None:
        self._shared: dict[str, _Shared] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        # An event loop that ends cancels its tasks and lets them finish, which is where connections can be closed.
        self._keeper = asyncio.ensure_future(self._close_at_the_end())

    @asynccontextmanager
    async def client(
        self, key: str, address: Callable[[], Awaitable[Address]], make: Callable[[Address], Awaitable[AsyncPipelineClient]]
    ) -> AsyncIterator[AsyncPipelineClient]:
        """The client for a connection, for the length of a block.

        :param key: the connection's id
        :param address: reads where it leads
        :param make: makes a client for an address
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
            found = await self._read(key, known, address)
            if known is not None and found == known.address:
                known.read_at = time.monotonic()
                return known
            shared = _Shared(await make(found), found, time.monotonic())
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
            # Airflow's API server, or a secrets backend, is away: waits go on with what was read before.
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
    """The clients of the event loop that runs."""
    loop = asyncio.get_running_loop()
    found = _LOOPS.get(loop)
    if found is None:
        found = _LOOPS[loop] = LoopClients()
    return found
