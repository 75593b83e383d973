"""Processes in which the functions of programs run: started, connected, their output read line by line, and ended."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.loaded_code import refuse_changed_code

_log = logging.getLogger("airflow_pipelines.streams")
LAST_LINES = 20
"""So many lines of its output say how a process ended."""
LONGEST_LINE = 16_384
"""Bytes of output without an end of line that are given as one line."""
_END_SECONDS = 2.0
_PARENT_SECONDS = 1.0
_SET_PARENT_DEATH_SIGNAL = 1
_ROOT = str(Path(__file__).parents[2])
_ADVICE: dict[int, str] = {
    signal.SIGKILL: " The system ends a process so when memory runs short: have the program keep less in its functions, give state"
    " a time to live, or give the machine more memory.",
    signal.SIGTERM: " Somebody asked it to end, as a machine does that is shut down.",
    signal.SIGSEGV: " A library that the program uses has crashed: what it wrote last says in which call.",
    signal.SIGABRT: " A library that the program uses has given up: what it wrote last says in which call.",
}
# Linux tells a process of its parent's death when the thread ends that started it, so one that never ends starts them all.
_STARTER = ThreadPoolExecutor(1, "process starter")


class ProcessEndedError(StreamProgramError):
    """A process of a program is gone. The message says how it ended, and what it wrote last."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """How a process of a program is started.

    :param executable: the interpreter
    :param paths: what its ``sys.path`` begins with
    :param folder: its working folder; None for that of this process
    :param environment: its environment variables; None for those of this process
    :param references: what references of its program stand for
    """

    executable: str = sys.executable
    paths: tuple[str, ...] = ()
    folder: str | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


class ChildProcess:
    """A process that was started, and the end of the connection to it. It ends when this one does.

    :param module: what it runs, which begins with :func:`connect_to_parent`
    :param settings: how it is started
    :param on_line: gets each line of its output, from a thread; one that takes its time holds the process up when it writes more
    :param on_error_line: gets those of its standard error instead, if given
    :raises StreamProgramError: when it cannot be started, also because it would run other code than this one
    """

    def __init__(
        self,
        module: str,
        settings: ProcessSettings,
        on_line: Callable[[str], None],
        on_error_line: Callable[[str], None] | None = None,
    ) -> None:
        refuse_changed_code()
        self._module = module
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._closed = False
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _STARTER.submit(_start, module, settings, theirs).result()
            except OSError as error:
                ours.close()
                raise StreamProgramError(
                    f"A process of the program cannot be started with {settings.executable}: {error}"
                ) from error
        self._socket = ours
        self.connection = Connection(os.dup(ours.fileno()))
        self._sentinels = [os.pidfd_open(self._process.pid)] if hasattr(os, "pidfd_open") else []
        self._readers = [
            threading.Thread(target=self._read, args=arguments, name=f"output of {module}", daemon=True)
            for arguments in ((self._process.stdout, on_line), (self._process.stderr, on_error_line or on_line))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def receive(self) -> Any:
        """The next message.

        :returns: the message
        :raises EOFError: when the process has ended, also when one that it has made holds its end of the connection
        """
        if self.connection in wait([self.connection, *self._sentinels]) or self.connection.poll():
            return self.connection.recv()
        raise EOFError

    def ended(self) -> ProcessEndedError:
        """What to raise when the connection has ended: waits a moment for the end of the process, and kills it otherwise.

        :returns: an error that says how it ended
        """
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._error("closed its connection without an end")
        self.kill()  # what it has started, which may hold its output
        if code >= 0:
            advice = " A function of the program, or a library that it uses, ends its process: look for os._exit()."
            return self._error(f"ended with exit code {code}", advice)
        known = {each.value: each.name for each in signal.Signals}
        return self._error(f"was ended by {known.get(-code, f'signal {-code}')}", _ADVICE.get(-code, ""))

    def close(self, grace_seconds: float = _END_SECONDS) -> None:
        """End it: the connection first, so that it may end by itself, and then whatever it has started. May be called again.

        :param grace_seconds: how long it has for that
        """
        if self._closed:
            return
        self._closed = True
        with self._socket:
            # Whoever waits for a message sees the end, which it would not when the connection were only closed.
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self.kill()
        self.connection.close()
        while self._sentinels:
            os.close(self._sentinels.pop())

    def kill(self) -> None:
        """End it, and what it has started, at once."""
        # Neither of the errors means anything but that all of them are gone.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            reader.join(_END_SECONDS)

    def _error(self, how: str, advice: str = "") -> ProcessEndedError:
        for reader in self._readers:
            reader.join(_END_SECONDS)
        last = "".join(f"\n  {line}" for line in self._last)
        said = f" It wrote last:{last}" if last else " It wrote nothing."
        return ProcessEndedError(f"The process {self._process.pid} ({self._module}) {how}.{advice}{said}")

    def _read(self, stream: IO[bytes], on_line: Callable[[str], None]) -> None:
        refused = False
        with stream:
            for line in lines_of(stream.fileno()):
                self._last.append(line)
                try:
                    on_line(line)
                except Exception:  # noqa: BLE001 (whatever it is: to read no more would hold the process up for ever)
                    if not refused:
                        _log.exception("lines of the output of process %d are lost", self._process.pid)
                    refused = True


def _start(module: str, settings: ProcessSettings, connection: socket.socket) -> subprocess.Popen[bytes]:
    code = (
        # This package as it is here, whatever else the interpreter has.
        f"import sys; sys.path[:1] = [{_ROOT!r}]; import airflow_pipelines; sys.path[:1] = {list(settings.paths)!r}; "
        f"sys.path.append({_ROOT!r}); import runpy; runpy.run_module({module!r}, run_name='__main__')"
    )
    return subprocess.Popen(
        [settings.executable, "-c", code, str(connection.fileno()), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=settings.folder,
        env=None if settings.environment is None else dict(settings.environment),
        pass_fds=(connection.fileno(),),
        # A group of its own, to be ended with all that it starts.
        start_new_session=True,
    )


def lines_of(file: int) -> Iterator[str]:
    """The lines that are written to a pipe, each as soon as it is there.

    :param file: the number of the pipe's file
    :returns: lines without their ends, until all writers have closed the pipe; a very long one comes in parts
    """
    rest = b""
    while data := os.read(file, 65_536):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield from _parts(line.removesuffix(b"\r"))
        if len(rest) >= LONGEST_LINE:
            yield from _parts(rest)
            rest = b""
    if rest:
        yield from _parts(rest)


def _parts(line: bytes) -> Iterator[str]:
    for start in range(0, max(1, len(line)), LONGEST_LINE):
        yield line[start : start + LONGEST_LINE].decode("utf-8", "replace")


def connect_to_parent() -> Connection:
    """What a process calls first that :class:`ChildProcess` has started.

    It ends with its parent from here on, whatever it is doing, and its output is written by lines.

    :returns: the connection to the parent
    """
    file, parent = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(file, False)
    _die_with_parent()
    threading.Thread(target=_watch, args=(file, parent), name="end of parent", daemon=True).start()
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    return Connection(file)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _watch(file: int, parent: int) -> None:
    """End this process when its parent has gone or has closed the connection, although a function may run for ever."""
    poll = select.poll()
    poll.register(file, getattr(select, "POLLRDHUP", select.POLLHUP))
    while os.getppid() == parent and not poll.poll(_PARENT_SECONDS * 1000):
        pass
    # What has ended by itself has had the time for it.
    threading.Event().wait(_END_SECONDS if os.getppid() == parent else 0.0)
    os._exit(1)
