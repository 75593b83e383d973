"""The process that reads the sources of a program, from the side of the pipeline's host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from airflow_pipelines.streams.processes import ChildProcess, ProcessEndedError, ProcessSettings
from airflow_pipelines.streams.reading.messages import (
    Answer,
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
from airflow_pipelines.streams.worker.client import ProgramFailedError

_MODULE = "airflow_pipelines.streams.reading"
_JOIN_SECONDS = 5.0


class ReadingProcess:
    """A process that reads sources. Each source may be used by another thread.

    :param program: a :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` as bytes
    :param settings: the settings with which it is started
    :param on_line: a function that receives the name of the stream, ``stdout`` or ``stderr``, and each line that the program
        prints, from other threads
    """

    def __init__(self, program: bytes, settings: ProcessSettings, on_line: Callable[[str, str], None]) -> None:
        self._process = ChildProcess(_MODULE, settings, partial(on_line, "stdout"), partial(on_line, "stderr"))
        self._send_lock = threading.Lock()
        self._sources: dict[str, SourceClient] = {}
        self._sources_lock = threading.Lock()
        self._ended: ProcessEndedError | None = None
        self._receiver = threading.Thread(target=self._receive, name="receives what sources give", daemon=True)
        self._receiver.start()
        self.send(Begin(program, settings.paths, settings.references))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True if the process runs."""
        return self._process.is_alive

    def source(self, uid: str) -> SourceClient:
        """Return a client for a source.

        :param uid: the uid of the source
        :returns: the client, not opened yet
        """
        with self._sources_lock:
            source = self._sources[uid] = SourceClient(self, uid)
            if self._ended is not None:
                source.end(self._ended)
        return source

    def send(self, request: Request) -> None:
        """Send a message. If the process has ended, the message is dropped, and readers are told of the end."""
        with self._send_lock:
            try:
                self._process.connection.send(request)
            except (OSError, ValueError):
                return

    def close(self) -> None:
        """End the process."""
        self._process.close()
        self._receiver.join(_JOIN_SECONDS)

    def _receive(self) -> None:
        while (reply := self._next_reply()) is not None:
            source = self._sources.get(reply.uid)
            if source is not None:
                source.take(reply)
        ended = self._process.diagnose_end()
        with self._sources_lock:
            self._ended = ended
            for source in self._sources.values():
                source.end(ended)

    def _next_reply(self) -> Reply | None:
        try:
            reply: Reply = self._process.receive()
        except (EOFError, OSError):
            return None
        return reply


class SourceClient:
    """A client for one source of the process. One thread reads it; any thread may commit and close.

    :param process: the process
    :param uid: the uid of the source
    """

    def __init__(self, process: ReadingProcess, uid: str) -> None:
        self._process = process
        self._uid = uid
        self._condition = threading.Condition()
        self._reply: Answer | None = None
        self._left: int | None = None
        self._asked = False
        self._ended: ProcessEndedError | None = None
        self._closed = False
        self._committed: bytes | None = None

    def open(self, position: bytes | None) -> None:
        """Start to read. An error is raised by the first :meth:`read`.

        :param position: the position to resume from, None for the beginning
        """
        self._process.send(OpenSource(self._uid, position))

    def read(self, most: int, seconds: float) -> Given | None:
        """Return elements of the source, as soon as it has some.

        Elements that arrive after a timeout are returned by the next call.

        :param most: the maximum number of elements
        :param seconds: the timeout in seconds
        :returns: the elements, None if there were none
        :raises ProgramFailedError: if the source's code raised an error
        :raises ProcessEndedError: if the process has ended
        """
        with self._condition:
            if not self._asked:
                self._asked = True
                self._process.send(ReadSource(self._uid, most))
            self._condition.wait_for(lambda: self._reply is not None or self._ended is not None or self._closed, seconds)
            reply, self._reply = self._reply, None
            if reply is None:
                if self._ended is not None and not self._closed:
                    raise self._ended
                return None
            self._asked = False
        if isinstance(reply, SourceFailed):
            raise ProgramFailedError(reply.failure)
        return reply

    @property
    def left(self) -> int | None:
        """The number of unread elements that the source reported last; None if it does not report any."""
        return self._left

    def commit(self, position: bytes) -> None:
        """Tell the source that everything up to a position is durable, with all results. The same position is sent only once.

        :param position: the value of :attr:`Given.position`
        """
        with self._condition:
            if position == self._committed:
                return
            self._committed = position
        self._process.send(CommitSource(self._uid, position))

    def close(self) -> None:
        """Stop reading; :meth:`read` in another thread returns. May be called again."""
        with self._condition:
            if self._closed:
                return
            self._closed = True
            self._condition.notify_all()
        self._process.send(CloseSource(self._uid))

    def take(self, reply: Reply) -> None:
        """Take a reply, in the thread that receives."""
        if isinstance(reply, SourceLeft):
            self._left = reply.elements
            return
        with self._condition:
            self._reply = reply
            self._condition.notify_all()

    def end(self, ended: ProcessEndedError) -> None:
        """Handle the end of the process, in the thread that receives."""
        with self._condition:
            self._ended = ended
            self._condition.notify_all()
