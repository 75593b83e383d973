"""Says on a terminal how far a program has come: elements per second, how far event time is behind, how large its state is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_pipelines.datastream.terminal_line import TerminalLine, can_show_line
from airflow_pipelines.streams.elements import MAX_TIMESTAMP
from airflow_pipelines.streams.local import LocalRunner

_EVERY = 0.5
_SIZE_EVERY = 5.0
_SHARE_OF_TIME = 0.01
_UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (0.0, "s"))


class Progress:
    """What is worth saying of a run, as a line of text.

    :param name: of the run; None for none
    :param now: the time in s
    """

    def __init__(self, name: str | None, now: float) -> None:
        self._prefix = "" if name is None else f"{name}: "
        self._last = (now, 0)
        self._state_bytes = 0
        self._next_size = now

    def line(self, runner: LocalRunner, now: float) -> str:
        """The line.

        :param runner: the run
        :param now: the time in s
        :returns: text without an end of line
        """
        before, elements = self._last
        self._last = (now, runner.elements_read)
        rate = max(runner.elements_read - elements, 0) / max(now - before, 0.001)
        parts = [f"{runner.elements_read:,} elements", f"{rate:,.0f}/s"]
        watermark = runner.event_time()
        if watermark is not None:
            at_end = watermark >= MAX_TIMESTAMP
            parts.append("event time at its end" if at_end else f"event time {_duration(time.time() - watermark / 1000)} behind")
        state = self._state(runner, now)
        if state:
            parts.append(f"state {_size(state)}")
        return self._prefix + ", ".join(parts)

    def _state(self, runner: LocalRunner, now: float) -> int:
        """The size of the state. It is looked for rarely, and more rarely where that takes long."""
        if now >= self._next_size:
            began = time.monotonic()
            self._state_bytes = runner.state_bytes()
            self._next_size = now + max(_SIZE_EVERY, (time.monotonic() - began) / _SHARE_OF_TIME)
        return self._state_bytes


class ProgressLine:
    """Shows the progress of a run twice a second.

    :param line: where it is shown; None for nowhere
    :param name: of the run
    """

    def __init__(self, line: TerminalLine | None, name: str | None) -> None:
        self._line = line
        self._progress = Progress(name, time.monotonic())
        # A program that ends at once needs no line.
        self._next = time.monotonic() + 2 * _EVERY

    def update(self, runner: LocalRunner) -> None:
        """Show the line when it is time to.

        :param runner: the run
        """
        now = time.monotonic()
        if self._line is not None and now >= self._next:
            self._next = now + _EVERY
            self._line.show(self._progress.line(runner, now))


@contextmanager
def progress_line(name: str | None) -> Iterator[ProgressLine]:
    """A line below what a program prints while the context lasts, when the standard error is a terminal.

    :param name: of the run
    :returns: the line, to be updated
    """
    if can_show_line(sys.stderr):
        with TerminalLine(sys.stderr).below_output() as line:
            yield ProgressLine(line, name)
    else:
        yield ProgressLine(None, name)


def _duration(seconds: float) -> str:
    seconds = max(seconds, 0.0)
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= 2 * size)
    return f"{seconds / (size or 1.0):,.1f} {unit}"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} GB"
