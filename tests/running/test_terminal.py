from __future__ import annotations

import io
import sys
import threading
import time

import pytest
import typer
from rich.console import Console

from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.running import terminal
from airflow_pipelines.running.terminal import TerminalPerson, TerminalScreen

STATISTICS = PipelineStatistics.from_dict({"global_metrics": {"total_processed_records": 1234}})


def console(is_terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=is_terminal, width=100, highlight=False, color_system=None), out


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_the_progress_is_below_the_lines_of_a_terminal_and_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    shown, out = console(is_terminal=True)
    screen = TerminalScreen(shown)
    with screen.showing():
        screen.progress(STATISTICS)
        screen.line("2026-05-01T00:00:00Z INFO [p] stdout: [not markup] alert")
        screen.progress(STATISTICS)
    text = out.getvalue()
    assert "1,234 elements, 0/s" in text
    assert "[not markup] alert\n" in text
    assert text.index("1,234 elements") < text.index("[not markup]") < text.rindex("1,234 elements")
    assert text.endswith("\x1b[2K"), "the line is erased"


def test_a_file_gets_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    shown, out = console(is_terminal=False)
    screen = TerminalScreen(shown)
    with screen.showing():
        screen.progress(STATISTICS)
        screen.line("2026-05-01T00:00:00Z INFO [p] stdout: " + "x" * 300)
        screen.line("2026-05-01T00:00:00Z INFO [p] running")
    assert capsys.readouterr().out == "x" * 300 + "\n", "no line is broken"
    assert out.getvalue() == "2026-05-01T00:00:00Z INFO [p] running\n"


@pytest.mark.parametrize("answer", [True, False])
def test_somebody_at_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(typer, "confirm", lambda question, **_: answer if question == "Go on?" else None)
    shown, out = console(is_terminal=True)
    assert TerminalPerson(shown, approves_all=False).approves("+ view [v]\n- limit", "Go on?") is answer
    assert "+ view [v]\n- limit\n" in out.getvalue()


def test_where_nobody_is_nothing_is_approved_unless_that_was_said() -> None:
    shown, out = console(is_terminal=False)
    assert TerminalPerson(shown, approves_all=False).approves("+ view v", "Go on?") is False
    assert "give --approve" in out.getvalue()
    assert TerminalPerson(shown, approves_all=True).approves("+ " + "v" * 200, "Go on?") is True
    assert "+ " + "v" * 200 + "\n" in out.getvalue(), "no line is broken"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_wait_that_goes_on_is_reported(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    monkeypatch.setattr(terminal, "FIRST_NEWS_S", 0.02)
    monkeypatch.setattr(terminal, "_LOOK_S", 0.02)
    shown, out = console(is_terminal)
    looked = threading.Event()

    def describe() -> str:
        looked.set()
        return "a host for it comes up"

    with TerminalPerson(shown, approves_all=False).wait("Starting 'p'", describe):
        assert looked.wait(10)
        time.sleep(0.2)
    shown_at_end = out.getvalue()
    time.sleep(0.1)
    assert out.getvalue() == shown_at_end, "the report ends with the wait"
    text = out.getvalue()
    assert text.startswith("Starting 'p'\n")
    assert ("0 s, a host for it comes up" if is_terminal else "Starting 'p': 0 s so far, a host for it comes up\n") in text


def test_a_short_wait_is_one_line() -> None:
    shown, out = console(is_terminal=False)
    with TerminalPerson(shown, approves_all=False).wait("Starting 'p'", lambda: "no"):
        pass
    assert out.getvalue() == "Starting 'p'\n"
