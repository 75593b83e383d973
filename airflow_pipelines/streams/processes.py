"""Processes in which the functions of programs run: their start, the connection to them, their output by lines, and their end."""

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
"""The number of last lines of its output that are in the error when a process has ended."""
LONGEST_LINE = 16_384
"""The number of bytes of output without an end of line after which they are passed on as one line."""
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
# Linux sends the parent-death signal when the thread that started the process ends, so one that never ends starts them all.
_STARTER = ThreadPoolExecutor(1, "process starter")


class ProcessEndedError(StreamProgramError):
    """An error raised because a process of a program is gone. The message says how it ended, and what it wrote last."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The settings with which a process of a program is started.

    :param executable: the interpreter
    :param paths: the first entries of its ``sys.path``
    :param folder: its working folder; None for that of this process
    :param environment: its environment variables; None for those of this process
    :param references: the values of the references of its program
    """

    executable: str = sys.executable
    paths: tuple[str, ...] = ()
    folder: str | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


class ChildProcess:
    """A process that was started, and this end of the connection to it. It ends when this process ends.

    :param module: the module that it runs, which begins with :func:`connect_to_parent`
    :param settings: the settings with which it is started
    :param on_line: a function that receives each line of its output, from a thread; a slow function blocks the process when it
        writes more
    :param on_error_line: a function that receives the lines of its standard error instead, if given
    :raises StreamProgramError: if it cannot be started, or would run other code than this process
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
        """The id of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True if the process runs."""
        return self._process.poll() is None

    def receive(self) -> Any:
        """Wait for the next message and return it.

        :returns: the message
        :raises EOFError: if the process has ended, even if a process that it has started still holds its end of the connection
        """
        if self.connection in wait([self.connection, *self._sentinels]) or self.connection.poll():
            return self.connection.recv()
        raise EOFError

    def diagnose_end(self) -> ProcessEndedError:
        """Return the error to raise when the connection has ended. Wait a moment for the end of the process, and kill it otherwise.

        :returns: an error that says how the process ended
        """
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._error("closed its connection without an end")
        self.kill()  # kills what it has started, which may hold its output open
        if code >= 0:
            advice = " A function of the program, or a library that it uses, ends its process: look for os._exit()."
            return self._error(f"ended with exit code {code}", advice)
        known = {each.value: each.name for each in signal.Signals}
        return self._error(f"was ended by {known.get(-code, f'signal {-code}')}", _ADVICE.get(-code, ""))

    def close(self, grace_seconds: float = _END_SECONDS) -> None:
        """End the process: close the connection first, so that it may end by itself, then kill it and whatever it has started.

        May be called again.

        :param grace_seconds: the number of seconds that the process has to end by itself
        """
        if self._closed:
            return
        self._closed = True
        with self._socket:
            # A shutdown wakes a thread that waits for a message; closing alone would not.
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self.kill()
        self.connection.close()
        while self._sentinels:
            os.close(self._sentinels.pop())

    def kill(self) -> None:
        """Kill the process, and whatever it has started, at once."""
        # Both errors only mean that all processes of the group are gone.
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
        # Import this copy of the package, whatever else the interpreter has.
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
        # A process group of its own, so that it can be killed with all that it starts.
        start_new_session=True,
    )


def lines_of(file: int) -> Iterator[str]:
    """Yield the lines that are written to a pipe, each as soon as it is complete.

    :param file: the file descriptor of the pipe
    :returns: lines without their ends, until all writers have closed the pipe; a very long line comes in parts
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
    """Connect to the parent process. This is the first call of a process that :class:`ChildProcess` has started.

    From here on the process ends with its parent, whatever it is doing, and its output is written by lines.

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
    """End this process when its parent is gone or has closed the connection, since a function may run for ever."""
    poll = select.poll()
    poll.register(file, getattr(select, "POLLRDHUP", select.POLLHUP))
    while os.getppid() == parent and not poll.poll(_PARENT_SECONDS * 1000):
        pass
    # Give the process time to end by itself while its parent lives.
    threading.Event().wait(_END_SECONDS if os.getppid() == parent else 0.0)
    os._exit(1)
