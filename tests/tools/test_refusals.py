"""The page of refusals says what the compiler does: each example is refused at a place of its own, each alternative accepted."""

from __future__ import annotations

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.program.safety import REFUSED_FUNCTIONS
from airflow_pipelines.sql.rewrite.refused import ADVICE
from airflow_pipelines.sql.syntax.refused_statements import REFUSALS
from tools.refusals import PAGE, NotRefusedError, Refusal, page, refused


def test_the_page_is_what_the_compiler_says_now(sessions: SparkSessions) -> None:
    assert PAGE.read_text() == page(sessions), "run `make docs`"


def test_all_that_is_refused_by_its_name_is_listed() -> None:
    text = PAGE.read_text()
    statements = [" ".join(words).upper() for words, _ in REFUSALS]
    foreign = [name.upper() for name in ADVICE]
    assert [name for name in (*statements, *sorted(REFUSED_FUNCTIONS), *foreign) if f"`{name}`" not in text] == []


def test_what_is_accepted_may_not_be_listed(sessions: SparkSessions) -> None:
    tables = "create table orders (id int);"
    with pytest.raises(NotRefusedError, match="all of them is not refused: SELECT id FROM orders;"):
        refused(Refusal("all of them", "SELECT id FROM orders;", None), tables, sessions)
    with pytest.raises(NotRefusedError, match=r"what to write instead of numbers is refused: .*nope"):
        refused(Refusal("numbers", "SELECT rand() AS r FROM orders;", "SELECT nope FROM orders;"), tables, sessions)
