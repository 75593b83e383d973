"""Fixtures of tests that read sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.streams.processes import ProcessSettings
from airflow_pipelines.streams.reading.client import ReadingProcess
from tests.streams.reading.programs import ROOT, program

Start = Callable[[Callable[[StreamExecutionEnvironment], None]], ReadingProcess]


@pytest.fixture
def lines() -> list[str]:
    """What the program writes."""
    return []


@pytest.fixture
def start(processes: None, lines: list[str]) -> Iterator[Start]:
    """Starts processes that read the sources of programs."""
    started: list[ReadingProcess] = []

    def begin(define: Callable[[StreamExecutionEnvironment], None]) -> ReadingProcess:
        started.append(ReadingProcess(program(define), ProcessSettings(paths=(ROOT,)), lambda _, line: lines.append(line)))
        return started[-1]

    yield begin
    for process in started:
        process.close()
