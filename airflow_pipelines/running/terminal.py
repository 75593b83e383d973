"""The output of ``airflow-pipelines run``: log lines, changes, questions, and in a terminal a line with the progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.running.log_line import LogLine, LogSource
from airflow_pipelines.running.statistics_text import StatisticsText

FIRST_NEWS_S = 10.0
"""The number of seconds after which a wait that goes on is reported in a file or pipe; each further time is twice as long."""
_LOOK_S = 2.0
_STYLES: Final = {"+": "green", "-": "red", "~": "yellow", "@": "cyan"}


class TerminalPerson:
    """A person at a terminal. Without one, changes are approved only if the command line says so.

    :param console: the console to write to
    :param approves_all: True if every change is approved without a question
    """

    def __init__(self, console: Console, *, approves_all: bool) -> None:
        self._console = console
        self._approves_all = approves_all

    def tell(self, text: str) -> None:
        """See :class:`~airflow_pipelines.running.deploying.Person`."""
        self._console.print(Text(text), soft_wrap=True)

    @contextmanager
    def wait(self, text: str, describe: Callable[[], str]) -> Iterator[None]:
        """See :class:`~airflow_pipelines.running.deploying.Person`."""
        self.tell(text)
        ended = threading.Event()
        show = self._show_below if self._console.is_terminal else partial(self._show_lines, text)
        thread = threading.Thread(target=show, args=(describe, ended), name="wait", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _show_below(self, describe: Callable[[], str], ended: threading.Event) -> None:
        began = time.monotonic()
        with self._console.status("") as status:
            while not ended.wait(_LOOK_S):
                status.update(Text(_news(f"{time.monotonic() - began:.0f} s", describe)))

    def _show_lines(self, text: str, describe: Callable[[], str], ended: threading.Event) -> None:
        seconds = FIRST_NEWS_S
        passed = 0.0
        while not ended.wait(seconds - passed):
            self.tell(f"{text}: {_news(f'{seconds:.0f} s so far', describe)}")
            seconds, passed = 2 * seconds, seconds

    def approves(self, change: str, question: str) -> bool:
        """See :class:`~airflow_pipelines.running.deploying.Person`."""
        for line in change.splitlines():
            self._console.print(Text(line, _style(line)), soft_wrap=True)
        if self._approves_all:
            return True
        if not (self._console.is_terminal and sys.stdin.isatty()):
            self.tell("Nobody can be asked here: give --approve to have changes made without a question")
            return False
        return typer.confirm(question, err=True)


class TerminalScreen:
    """A view of the log lines, with the progress below them.

    In files and pipes the standard output has only the program's own standard output, as when it runs as a script.

    :param console: the console for everything else
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        # In a terminal everything goes through one console, so that the progress line stays below.
        self._output = console if console.is_terminal and sys.stdout.isatty() else Console(highlight=False)
        self._text = StatisticsText()
        self._live: Live | None = None

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Keep the progress below the lines while the context lasts."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def line(self, text: str) -> None:
        """See :class:`~airflow_pipelines.running.following.Screen`."""
        line = LogLine.of(text)
        console = self._output if line.source is LogSource.STDOUT else self._console
        console.print(Text(line.text, "dim" if line.source is LogSource.PIPELINE else ""), soft_wrap=True)

    def progress(self, statistics: PipelineStatistics) -> None:
        """See :class:`~airflow_pipelines.running.following.Screen`."""
        if self._live is not None:
            line = Text(self._text.line(statistics, time.monotonic()), "bold", no_wrap=True, overflow="ellipsis")
            self._live.update(line, refresh=True)


def _news(seconds: str, describe: Callable[[], str]) -> str:
    phase = describe()
    return f"{seconds}, {phase}" if phase else seconds


def _style(line: str) -> str:
    if "DROPS " in line or line.startswith("refused"):
        return "bold red"
    return _STYLES.get(line[:1], "")
