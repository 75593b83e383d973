"""The page of constructs says what the planner does."""

from __future__ import annotations

import re

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tools.constructs import PAGE, page


def test_the_page_is_what_the_planner_says_now(sessions: SparkSessions) -> None:
    assert PAGE.read_text() == page(sessions), "run `make docs`"


def test_whatever_is_recomputed_says_why() -> None:
    stages = [line.rpartition(" | ")[2] for line in PAGE.read_text().splitlines() if line.count(" | ") > 1]
    recomputed = [text for text in stages if re.search(r"\bfull\b|recomputing", text)]
    assert recomputed
    assert [text for text in recomputed if re.search(r"(\bfull|recomputing)(?! \()", text)] == []
