"""What planner tests take for Spark's answers is what Spark answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.sql.answers import Answers

TESTS = Path(__file__).parents[1]
FILES = sorted((TESTS / "sql").rglob("*.answers.json"))


@pytest.mark.core("sql/rewrite/test_make_deterministic.answers.json", "sql/rewrite/test_typed_expressions.answers.json")
@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(TESTS)) for file in FILES])
def test_spark_still_answers_so(sessions: SparkSessions, file: Path) -> None:
    answers = Answers.read(file)
    assert answers.answers
    now = answers.asked_anew(SparkAnalyzer(sessions.small))
    other = {question: now.get(question) for question, answer in answers.answers.items() if now.get(question) != answer}
    assert other == {}, "Spark answers otherwise now; `make answers` writes it down"
