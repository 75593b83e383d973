"""The page of constructs says what the planner does."""

from __future__ import annotations

from airflow_pipelines.engine.sessions import SparkSessions
from tools.constructs import PAGE, page


def test_the_page_is_what_the_planner_says_now(sessions: SparkSessions) -> None:
    assert PAGE.read_text() == page(sessions), "run `make docs`"
