from __future__ import annotations

import io
import logging
import os
import pty
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

import pytest

from airflow_pipelines.datastream.terminal_line import TerminalLine, can_show_line


@dataclass
class Terminal:
    """A pseudo terminal, and what somebody who looks at it sees."""

    stream: TextIO
    reader: int
    lines: list[str] = field(default_factory=lambda: [""])

    def shows(self, *lines: str) -> bool:
        """Whether these lines are seen, as soon as the terminal has passed on what was written to it."""
        deadline = time.monotonic() + 10
        while self.lines != list(lines) and time.monotonic() < deadline:
            if select.select([self.reader], [], [], 0.1)[0]:
                self._see(os.read(self.reader, 100_000).decode())
        return self.lines == list(lines)

    def _see(self, text: str) -> None:
        while text:
            if text.startswith("\x1b[K"):
                text, self.lines[-1] = text[3:], ""
            elif text.startswith("\r\n"):
                text = text[2:]
                self.lines.append("")
            elif text.startswith("\r"):
                text = text[1:]
                assert text.startswith("\x1b[K"), "the line is left without being erased"
            else:
                self.lines[-1] += text[0]
                text = text[1:]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 40))
    with os.fdopen(writer, "w") as stream:
        yield Terminal(stream, reader)
    os.close(reader)


def test_the_line_stays_below_what_is_printed_and_logged(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(terminal.stream)
    logger = logging.getLogger("terminal_line_of_a_test")
    logger.addHandler(handler)
    monkeypatch.setattr("airflow_pipelines.datastream.terminal_line._SHOW_EVERY", 0.0)
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    with TerminalLine(terminal.stream).below_output() as line:
        line.show("10/s")
        assert terminal.shows("10/s")
        sys.stdout.write("printed\n")
        assert terminal.shows("printed", "10/s")
        logger.warning("logged")
        assert terminal.shows("printed", "logged", "10/s")
        line.show("20/s")
        sys.stderr.writelines(["a\n", "b"])
        sys.stderr.flush()
        assert terminal.shows("printed", "logged", "a", "b")
        line.show("30/s")
        assert terminal.shows("printed", "logged", "a", "b")
        sys.stdout.write("c\n")
        assert terminal.shows("printed", "logged", "a", "bc", "30/s")
        assert sys.stdout.fileno() == terminal.stream.fileno()
        assert terminal.shows("printed", "logged", "a", "bc", "")
    logger.warning("after")
    assert sys.stdout is sys.stderr is terminal.stream
    assert handler.stream is terminal.stream
    assert terminal.shows("printed", "logged", "a", "bc", "after", "")
    logger.removeHandler(handler)


def test_the_line_is_taken_away_by_an_error(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", terminal.stream)

    def fail() -> None:
        with TerminalLine(terminal.stream).below_output() as line:
            line.show("10/s")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sys.stdout is terminal.stream
    assert terminal.shows("")


def test_a_line_that_is_wider_than_the_terminal_is_cut(terminal: Terminal) -> None:
    TerminalLine(terminal.stream).show("x" * 100)
    assert terminal.shows("x" * 39)


def test_output_that_goes_elsewhere_is_left_alone(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stdout", elsewhere)
    with TerminalLine(terminal.stream).below_output() as line:
        assert sys.stdout is elsewhere
        line.show("10/s")
        print("printed")  # noqa: T201
        assert terminal.shows("10/s")
    assert elsewhere.getvalue() == "printed\n"


def test_there_is_a_line_only_where_somebody_looks(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    tty.setraw(terminal.reader)
    assert can_show_line(terminal.stream)
    assert not can_show_line(io.StringIO())
    monkeypatch.setenv("CI", "true")
    assert not can_show_line(terminal.stream)
    monkeypatch.delenv("CI")
    monkeypatch.setenv("TERM", "dumb")
    assert not can_show_line(terminal.stream)


def test_handlers_that_look_up_standard_error_each_time_are_left_alone(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("last_resort_of_a_test")
    assert logging.lastResort is not None
    logger.addHandler(logging.lastResort)
    monkeypatch.setattr("airflow_pipelines.datastream.terminal_line._SHOW_EVERY", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    with TerminalLine(terminal.stream).below_output() as line:
        line.show("10/s")
        logger.warning("logged")
        assert terminal.shows("logged", "10/s")
    logger.removeHandler(logging.lastResort)
