"""The analyzer of planner tests: a table of Spark's answers, or Spark itself when the table is written anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from tests.sql.answers import Answers, Question, RecordingAnalyzer, Relations, TableAnalyzer

_RECORDED: dict[Path, tuple[Relations, dict[Question, Any]]] = {}


@pytest.fixture
def analyzer(request: pytest.FixtureRequest) -> Iterator[Analyzer]:
    """An analyzer that knows the ``RELATIONS`` of the test's module."""
    module = Path(request.path)
    if not request.config.getoption("--ask-spark"):
        yield TableAnalyzer(_answers(Answers.file_of(module)).answers)
        return
    from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer

    relations, answers = _RECORDED.setdefault(module, (request.module.RELATIONS, {}))
    spark = SparkAnalyzer(request.getfixturevalue("sessions").small)
    spark.declare(relations)
    recording = RecordingAnalyzer(spark, {})
    yield recording
    answers.update(recording.answers)


@cache
def _answers(file: Path) -> Answers:
    return Answers.read(file)


def pytest_sessionfinish(exitstatus: int) -> None:
    """Write down what Spark answered."""
    if exitstatus == pytest.ExitCode.OK:
        for module, (relations, answers) in _RECORDED.items():
            Answers(relations, answers).write(Answers.file_of(module))
