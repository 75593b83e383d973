"""The process that reads the sources of a program: it handles requests, and reads each source in its own threads."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue

from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.processes import connect_to_parent
from airflow_pipelines.streams.reading.messages import (
    Begin,
    CloseSource,
    CommitSource,
    Given,
    OpenSource,
    ReadSource,
    Reply,
    Request,
    SourceFailed,
    SourceLeft,
)
from airflow_pipelines.streams.reading.outbox import Outbox
from airflow_pipelines.streams.reading.source_delivery import SourceDelivery
from airflow_pipelines.streams.reading.source_reading import NamedSource, SourceReading
from airflow_pipelines.streams.references import give_references
from airflow_pipelines.streams.relations import RelationSource
from airflow_pipelines.streams.worker.bound import BoundProgram
from airflow_pipelines.streams.worker.failure import failure_of
from airflow_pipelines.streams.worker.messages import Failure

_CLOSE_SECONDS = 1.0
_SWITCH_SECONDS = 0.000_5


def serve() -> None:
    """Handle the requests of the parent until it closes the connection."""
    connection = connect_to_parent()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    server = ReadingServer(connection)
    # Each request passes from one thread to another, so switch between threads often.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        while True:
            server.handle(connection.recv())
    except (EOFError, ConnectionResetError):
        server.close()
    sys.stdout.flush()
    # Do not wait for threads: a source may wait for something that never comes.
    os._exit(0)


def sources_of(bound: BoundProgram) -> dict[str, NamedSource]:
    """Return the sources of a program that are read outside of the engine, by uid."""
    sources = {}
    for chain in bound.plan.chains:
        operator = chain.head.node.operator
        if isinstance(operator, Read) and not isinstance(operator.source, RelationSource):
            sources[chain.head.uid] = NamedSource(
                chain.head.uid,
                chain.head.name,
                operator.source,
                chain.parallelism,
                chain.max_parallelism,
                bound.settings.job_parameters,
            )
    return sources


class ReadingServer:
    """A server for the requests of the parent.

    :param connection: the connection for replies
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._folders: tuple[str, ...] = ()
        self._sources: dict[str, NamedSource] = {}
        self._failure: Failure | None = None
        self._open: dict[str, _OpenSource] = {}

    def handle(self, request: Request) -> None:
        """Handle one request. Returns at once.

        :param request: the request
        """
        match request:
            case Begin():
                self._begin(request)
            case OpenSource(uid, position):
                source = self._sources.get(uid)
                if source is not None:
                    self._open[uid] = _OpenSource(source, position, self._reply, self._make_failure)
            case ReadSource(uid, most):
                self._read(uid, most)
            case CommitSource(uid, position):
                if uid in self._open:
                    self._open[uid].commit(position)
            case CloseSource(uid):
                if uid in self._open:
                    # The source's own code may take long to close.
                    threading.Thread(target=self._open[uid].close, name=f"closes {uid}", daemon=True).start()

    def close(self) -> None:
        """Close all sources, within a time limit."""
        end = time.monotonic() + _CLOSE_SECONDS
        for uid in self._open:
            self.handle(CloseSource(uid))
        for source in self._open.values():
            source.wait(end - time.monotonic())

    def _begin(self, request: Begin) -> None:
        self._folders = request.folders
        give_references(request.references)
        try:
            bound = BoundProgram.from_bytes(request.program)
            self._folders = (*request.folders, bound.folder)
            self._sources = sources_of(bound)
        except BaseException as error:  # noqa: BLE001 (told to whoever wants to read)
            self._failure = self._make_failure(error)

    def _read(self, uid: str, most: int) -> None:
        if uid in self._open:
            self._open[uid].read(most)
            return
        failure = self._failure or Failure("KeyError", f"the program has no source with the uid {uid!r}")
        self._reply(SourceFailed(uid, failure))

    def _make_failure(self, error: BaseException) -> Failure:
        return failure_of(error, self._folders)

    def _reply(self, reply: Reply) -> None:
        # The parent may be gone; this process will notice soon.
        with self._lock, suppress(OSError):
            self._connection.send(reply)


class _OpenSource:
    """An open source, with the thread that reads it and the thread that sends its elements."""

    def __init__(
        self,
        source: NamedSource,
        position: bytes | None,
        reply: Callable[[Reply], None],
        told: Callable[[BaseException], Failure],
    ) -> None:
        self._uid = source.uid
        self._reply = reply
        self._told = told
        self._outbox = Outbox()
        self._reading = SourceReading(source, position, self._outbox, self._tell_left)
        self._giving = SourceDelivery(source, self._outbox, is_new=position is None)
        self._asked: SimpleQueue[int | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._reading.run, name=f"reads {source.name}", daemon=True)
        self._giver = threading.Thread(target=self._give, name=f"gives {source.name}", daemon=True)
        self._reader.start()
        self._giver.start()

    def read(self, most: int) -> None:
        self._asked.put(most)

    def commit(self, position: bytes) -> None:
        self._outbox.commit(position)

    def close(self) -> None:
        self._outbox.close()
        self._asked.put(None)
        self._reading.cancel()

    def wait(self, seconds: float) -> None:
        self._reader.join(max(0.0, seconds))

    def _tell_left(self, elements: int) -> None:
        self._reply(SourceLeft(self._uid, elements))

    def _give(self) -> None:
        while (most := self._asked.get()) is not None:
            reply = self._next(most)
            if reply is None:
                return
            self._reply(reply)

    def _next(self, most: int) -> Given | SourceFailed | None:
        try:
            return self._giving.give(most)
        except BaseException as error:  # noqa: BLE001 (SystemExit too: the user's code asked for it, not this process)
            return SourceFailed(self._uid, self._told(error))
