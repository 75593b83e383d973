"""The queue of an answer's body between the thread that makes it and the event loop that sends it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Final

from airflow_pipelines.engine.spark.result_connection import AbortedError

QUEUED_BYTES: Final = 8 << 20
"""The number of unsent bytes from which no further part is made."""


HELD_S: Final = 0.1
"""The seconds without a failure after which the beginning of a body is sent."""


class StalledError(Exception):
    """The error of a client that does not read the bytes that wait for it."""


class BodyQueue:
    """A queue of bytes that one thread fills and one coroutine empties. It holds at most ``QUEUED_BYTES`` and one part.

    :param stalled_s: the seconds after which a reader that takes nothing is given up
    :param held_bytes: the number of bytes before which nothing is sent, unless the body is complete or ``HELD_S`` seconds have
        passed since the first ones
    """

    def __init__(self, stalled_s: float, held_bytes: int) -> None:
        """Create a queue for the running event loop."""
        self._held_bytes = held_bytes
        self._loop = asyncio.get_running_loop()
        self._stalled_s = stalled_s
        self._changed = asyncio.Event()
        self._condition = threading.Condition()
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._begun = False
        self._ended = False
        self._aborted = False
        self._failure: Exception | None = None

    def put(self, part: bytes) -> None:
        """Add a part; wait before that while the queue is full. The thread calls it.

        :param part: some bytes
        :raises AbortedError: after :meth:`abort`
        :raises StalledError: if nothing was taken for too long
        """
        with self._condition:
            deadline = time.monotonic() + self._stalled_s
            while self._size >= QUEUED_BYTES and not self._aborted:
                before = self._size
                if not self._condition.wait(max(0.0, deadline - time.monotonic())):
                    raise StalledError
                if self._size < before:
                    deadline = time.monotonic() + self._stalled_s
            if self._aborted:
                raise AbortedError
            self._parts.append(part)
            self._size += len(part)
            self._begun = self._begun or self._size >= self._held_bytes
        self._wake()

    def end(self, failure: Exception | None = None) -> None:
        """Mark the end of the body. The thread calls it.

        :param failure: the failure, or None if the body is complete
        """
        with self._condition:
            self._ended = self._begun = True
            self._failure = failure
        self._wake()

    def abort(self) -> None:
        """Take nothing more from the thread. Any thread may call it."""
        with self._condition:
            self._aborted = True
            self._condition.notify_all()

    @property
    def ended(self) -> bool:
        """True if the thread will put no more parts."""
        return self._ended

    async def wait_for_data(self) -> None:
        """Wait until there is something to send.

        :raises Exception: the failure of the thread, if it occurred before anything had to be sent
        """
        while not self._begun and not self._size:
            await self._wait_for_change()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wait_until_begun(), HELD_S)
        if self._failure is not None and self._size < self._held_bytes:
            raise self._failure

    async def _wait_until_begun(self) -> None:
        while not self._begun:
            await self._wait_for_change()

    async def next(self) -> bytes | None:
        """Wait for the next part and return it, or None after the last one.

        :raises Exception: the failure of the thread, after the parts before it
        """
        while True:
            with self._condition:
                if self._parts:
                    part = self._parts.popleft()
                    self._size -= len(part)
                    self._condition.notify_all()
                    return part
                if self._ended:
                    if self._failure is not None:
                        raise self._failure
                    return None
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)
