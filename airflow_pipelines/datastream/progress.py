"""Display of the progress of a program on a terminal: elements per second, lag of event time, and size of state."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_pipelines.datastream.terminal_line import TerminalLine, can_show_line
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.progress_text import Progress, ProgressText

_EVERY = 0.5
_SIZE_EVERY = 5.0
_SHARE_OF_TIME = 0.01


class RunProgress:
    """The progress of a run, as a line of text.

    :param name: the name of the run; None for none
    :param now: the time in s
    """

    def __init__(self, name: str | None, now: float) -> None:
        self._prefix = "" if name is None else f"{name}: "
        self._text = ProgressText(now)
        self._state_bytes = 0
        self._next_size = now

    def line(self, runner: LocalRunner, now: float) -> str:
        """Return the line of text.

        :param runner: the run
        :param now: the time in s
        :returns: text without an end of line
        """
        progress = Progress(runner.elements_read, event_time=runner.event_time(), state_bytes=self._state(runner, now))
        return self._prefix + self._text.line(progress, now)

    def _state(self, runner: LocalRunner, now: float) -> int:
        """Return the size of the state. It is measured rarely, and more rarely if measuring takes long."""
        if now >= self._next_size:
            began = time.monotonic()
            self._state_bytes = runner.state_bytes()
            self._next_size = now + max(_SIZE_EVERY, (time.monotonic() - began) / _SHARE_OF_TIME)
        return self._state_bytes


class ProgressLine:
    """A line that shows the progress of a run twice a second.

    :param line: the terminal line; None to show nothing
    :param name: the name of the run
    """

    def __init__(self, line: TerminalLine | None, name: str | None) -> None:
        self._line = line
        self._progress = RunProgress(name, time.monotonic())
        # A program that ends at once needs no line.
        self._next = time.monotonic() + 2 * _EVERY

    def update(self, runner: LocalRunner) -> None:
        """Update the line if it is due.

        :param runner: the run
        """
        now = time.monotonic()
        if self._line is not None and now >= self._next:
            self._next = now + _EVERY
            self._line.show(self._progress.line(runner, now))


@contextmanager
def progress_line(name: str | None) -> Iterator[ProgressLine]:
    """Show a line below the output of a program while the context lasts, if the standard error is a terminal.

    :param name: the name of the run
    :returns: the line to update
    """
    if can_show_line(sys.stderr):
        with TerminalLine(sys.stderr).below_output() as line:
            yield ProgressLine(line, name)
    else:
        yield ProgressLine(None, name)
