"""Listeners: readers of a view's changes over HTTP egress."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from airflow_pipelines.connectors.http import JSON_CHANGES, EgressData, frame_chunk, frame_empty_chunk
from airflow_pipelines.host.metrics.connector_metrics import OutputMetrics
from airflow_pipelines.rows.formats.delta import JsonChanges
from airflow_pipelines.rows.formats.json import JsonOptions

KEEP_ALIVE_S = 3.0
MAX_QUEUED = 100
QUEUED_CHARACTERS = 16 << 20
"""The number of queued characters from which, with backpressure, no further chunk is queued."""


class Listener:
    """The queue between the steps of a pipeline and one egress response.

    The first chunk is empty, because a client's start waits for it. ``metrics`` counts like those of a declared output.
    """

    def __init__(
        self,
        view: str,
        format_name: str,
        backpressure: bool,
        loop: asyncio.AbstractEventLoop,
        *,
        send_snapshot: bool = False,
        json: JsonOptions = JSON_CHANGES,
        key: tuple[str, ...] = (),
    ) -> None:
        """Create a queue that nothing fills yet.

        :param view: the relation whose changes are read
        :param format_name: ``json`` or ``csv``
        :param backpressure: True if a full queue makes the pipeline wait; otherwise chunks that do not fit are dropped
        :param loop: the event loop of the response
        :param send_snapshot: True if the relation's contents come first
        :param json: the update format and flavor of JSON
        :param key: the columns of an index, which tells updates from deletes and inserts
        """
        self.view = view
        self.format = format_name
        self.json = JsonChanges(json)
        self.key = key
        self.name = f"{view}.api-{uuid4()}"
        self.encoding = (format_name, json, self.name if self.json.is_numbered else "")
        """The key of the listener's encoding: listeners with the same key get the same chunks."""
        self.metrics = OutputMetrics()
        self._empty = frame_empty_chunk(format_name, snapshot=send_snapshot)
        self._backpressure = backpressure
        self._loop = loop
        self._filled = asyncio.Event()
        self._condition = threading.Condition()
        self._queue: deque[tuple[EgressData, bool]] = deque()
        self._queued = 0
        self._closed = False
        self._stalled_at: float | None = None
        self._sequence = 0

    def put(self, data: EgressData, *, snapshot: bool) -> None:
        """Queue the data of one chunk, as :func:`encode_egress` returns it. The pipeline's thread calls it."""
        with self._condition:
            if self._backpressure:
                self._stalled_at = time.monotonic()
                self._condition.wait_for(lambda: self._closed or not self._is_full)
                self._stalled_at = None
            elif len(self._queue) >= MAX_QUEUED:
                return
            if self._closed:
                return
            self._queue.append((data, snapshot))
            self._queued += len(data.text)
            self.metrics.queued_batches += 1
            self.metrics.queued_records += data.records
        self._wake()

    @property
    def stalled_s(self) -> float:
        """The seconds that the pipeline has been waiting for the client to read; 0 while it does not wait."""
        since = self._stalled_at
        return 0.0 if since is None else time.monotonic() - since

    @property
    def closed(self) -> bool:
        """True if no more chunks are taken."""
        return self._closed

    def close(self) -> None:
        """End the stream after the queued chunks: no more chunks will come or be read."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._wake()

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the response body."""
        try:
            yield self._empty
            while True:
                self._filled.clear()
                chunk, closed = self._take()
                if chunk is not None:
                    data, snapshot = chunk
                    yield frame_chunk(self._next(), data, self.format, snapshot=snapshot)
                elif closed:
                    return
                else:
                    try:
                        await asyncio.wait_for(self._filled.wait(), KEEP_ALIVE_S)
                    except TimeoutError:
                        yield self._empty
        finally:
            self.close()

    @property
    def _is_full(self) -> bool:
        return len(self._queue) >= MAX_QUEUED or self._queued >= QUEUED_CHARACTERS

    def to_wire(self, *, errors: bool = False) -> dict[str, Any]:
        """Return the wire's OutputEndpointStatus."""
        wire: dict[str, Any] = {
            "endpoint_name": self.name,
            "config": {"stream": self.view},
            "metrics": self.metrics.to_wire(),
            "fatal_error": None,
            "health": {"status": "Healthy", "description": None},
        }
        return {**wire, "encode_errors": self.metrics.encode_errors.to_wire(), "transport_errors": []} if errors else wire

    def _take(self) -> tuple[tuple[EgressData, bool] | None, bool]:
        """Remove and return the next chunk, if there is one, and True if the stream ends after the queued chunks."""
        with self._condition:
            chunk = self._queue.popleft() if self._queue else None
            if chunk is not None:
                data, _ = chunk
                self._queued -= len(data.text)
                self.metrics.queued_batches -= 1
                self.metrics.queued_records -= data.records
                self.metrics.transmitted_records += data.records
                self.metrics.transmitted_bytes += len(data.text)
            self._condition.notify_all()
            return chunk, self._closed

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)


class Listeners:
    """All listeners of one pipeline."""

    MAX = 100

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._held: list[Listener] = []
        self._closed = False

    def hold(self, listener: Listener) -> None:
        """Register a listener that gets nothing before :meth:`add`. If the pipeline has ended, close the listener at once."""
        with self._lock:
            if not self._closed:
                self._held.append(listener)
                return
        listener.close()

    def add(self, listener: Listener) -> None:
        """Give a listener all chunks from now on.

        If the pipeline has ended, close the listener at once; if its client has gone, drop it.
        """
        with self._lock:
            if listener in self._held:
                self._held.remove(listener)
            if listener.closed:
                return
            if not self._closed:
                self._listeners.append(listener)
                return
        listener.close()

    def remove(self, listener: Listener) -> None:
        """Remove a listener whose client has gone."""
        with self._lock:
            for known in (self._listeners, self._held):
                if listener in known:
                    known.remove(listener)
        listener.close()

    @property
    def stalled_s(self) -> float:
        """The seconds that the pipeline has been waiting for one of the listeners; 0 while it does not wait."""
        return max((listener.stalled_s for listener in self.all()), default=0.0)

    @property
    def count(self) -> int:
        """The number of listeners."""
        return len(self._listeners) + len(self._held)

    def all(self) -> list[Listener]:
        """Return the current listeners."""
        with self._lock:
            return [*self._listeners, *self._held]

    def of(self, view: str) -> list[Listener]:
        """Return the listeners that get the changes of one view."""
        with self._lock:
            return [listener for listener in self._listeners if listener.view == view]

    def close(self) -> None:
        """End all streams."""
        with self._lock:
            self._closed = True
            listeners = [*self._listeners, *self._held]
            self._listeners, self._held = [], []
        for listener in listeners:
            listener.close()
