"""Ending of calls of a user's function that compute for ever, and warnings about calls that wait for long.

A second thread samples the running thread now and then. This costs the calls themselves nothing, and it also finds a call that
never gives a result, which no counter could detect.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from airflow_pipelines.streams.errors import FunctionTimeLimitError
from airflow_pipelines.streams.failures import is_machinery, last_given, note_element
from airflow_pipelines.streams.operators.async_wait import AsyncWaitOperator
from airflow_pipelines.streams.operators.base import Operator
from airflow_pipelines.streams.operators.sink import SinkOperator
from airflow_pipelines.streams.operators.source import SourceOperator

_log = logging.getLogger("airflow_pipelines.streams")
_LOOKS = 10
_IDLE_LOOKS = 3
_SHORTEST_PAUSE = 0.02
_LONGEST_PAUSE = 5.0


class _Interruption(BaseException):
    """The exception that interrupts a running call.

    It is not an ``Exception``, so that a function that retries after every error does not catch it.
    """


@dataclass
class _Call:
    frame: FrameType
    operator: str
    since: float
    cpu_before: float
    was_told: bool = False


class CallWatch:
    """A watch over the calls of functions for elements and timers. Sources, sinks and requests may wait as long as they like.

    :param limit_seconds: the number of seconds that one call may compute
    """

    def __init__(self, limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._pause = min(max(limit_seconds / _LOOKS, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self._pid = 0
        self._thread: int | None = None
        self._call: _Call | None = None
        self._interrupts = False

    def __enter__(self) -> None:
        """Watch the calls of the current thread until the context ends."""
        with self._lock:
            self._thread = threading.get_ident()
            if self._watcher is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._watcher = threading.Thread(target=self._watch, name="stream-calls", daemon=True)
                self._watcher.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the watch.

        :raises FunctionTimeLimitError: if a call was interrupted because it exceeded the limit; replaces the error of the call
        """
        try:
            self._end()
        except _Interruption:
            self._end()
        if isinstance(error, _Interruption):
            raise self._error(trace) from None

    def _end(self) -> None:
        with self._lock:
            thread, self._thread, self._call = self._thread, None, None
            interrupts, self._interrupts = self._interrupts, False
        if thread is not None and interrupts:
            _take_interruption(thread)

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _watch(self) -> None:
        idle = 0
        while not self._closed.wait(self._pause):
            with self._lock:
                idle = idle + 1 if self._thread is None else 0
                if idle == _IDLE_LOOKS:
                    self._watcher = None
                    return
                if self._thread is not None:
                    self._look(self._thread)

    def _look(self, thread: int) -> None:
        frame = sys._current_frames().get(thread)
        running_call = None if frame is None else _find_running_call(frame)
        if running_call is None:
            self._call = None
            return
        now, cpu = time.monotonic(), _cpu_seconds(thread)
        if self._call is None or self._call.frame is not running_call[0]:
            self._call = _Call(*running_call, now, cpu)
            return
        seconds = now - self._call.since
        if cpu - self._call.cpu_before > self._limit:
            self._interrupts = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interruption))
        elif seconds > self._limit and not self._call.was_told:
            self._call.was_told = True
            _log.warning(
                "One call of %r has gone on for %.0f s, and the program waits for it: it is in %s",
                self._call.operator,
                seconds,
                _place(_find_innermost(frame, self._call.frame)),
            )

    def _error(self, trace: TracebackType | None) -> FunctionTimeLimitError:
        """Return the error for an interrupted call, with the operator and the element."""
        operator: FrameType | None = None
        call: TracebackType | None = None
        while trace is not None:
            if isinstance(trace.tb_frame.f_locals.get("self"), Operator):
                operator, call = trace.tb_frame, None
            elif operator is not None and call is None and not is_machinery(trace.tb_frame.f_code.co_filename):
                call = trace
            trace = trace.tb_next
        name = "a function" if operator is None else repr(operator.f_locals["self"].name)
        place = "" if call is None else f", in {_place(call.tb_frame)}"
        error = FunctionTimeLimitError(
            f"One call of {name} has computed for more than {self._limit:g} s{place}. A function must end for each element; if"
            " it needs this long, raise the setting execution.call-time-limit-seconds."
        ).with_traceback(call)
        if operator is not None:
            known, element = _element(operator)
            if known:
                note_element(error, operator.f_locals["self"].name, element)
        return error


def _find_running_call(frame: FrameType) -> tuple[FrameType, str] | None:
    """Return the outermost frame of the user's code that an operator has called, and the name of the operator.

    :returns: None if no user code runs, or if the operator is one that may wait
    """
    call: FrameType | None = None
    current: FrameType | None = frame
    while current is not None:
        if not _is_machinery(current):
            call = current
        else:
            operator = current.f_locals.get("self")
            if isinstance(operator, Operator):
                may_wait = isinstance(operator, SourceOperator | SinkOperator | AsyncWaitOperator)
                return None if call is None or may_wait else (call, operator.name)
        current = current.f_back
    return None


def _find_innermost(frame: FrameType | None, call: FrameType) -> FrameType:
    """Return the innermost frame that is in the same file as the call, which is where the user's code runs."""
    current = frame
    while current is not None and current is not call:
        if current.f_code.co_filename == call.f_code.co_filename:
            return current
        current = current.f_back
    return call


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_name}() of {frame.f_code.co_filename}, line {frame.f_lineno}"


def _element(frame: FrameType) -> tuple[bool, Any]:
    """Return the element for which an operator was calling its function, after a flag that says if it is known."""
    known = frame.f_locals
    if "value" in known:
        return True, known["value"]
    if "values" in known and "batch" in known:
        return True, last_given(known["batch"].values, known["values"])
    return False, None


def _is_machinery(frame: FrameType) -> bool:
    return is_machinery(frame.f_code.co_filename)


def _take_interruption(thread: int) -> None:
    """Receive, in its own thread, an interruption that was still pending when the call ended.

    It is not enough to cancel it by setting none in its place: Python 3.11 then keeps looking for one, which slows the thread down,
    and blocks it for ever under a profiler.
    """
    with contextlib.suppress(_Interruption):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interruption))
        while True:
            time.sleep(0)


def _cpu_seconds(thread: int) -> float:
    """Return the CPU time of a thread in seconds, or 0.0 where it cannot be read: no call is then interrupted."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return 0.0
    return time.clock_gettime(time.pthread_getcpuclockid(thread))
