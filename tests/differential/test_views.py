"""Fixed views, by theme, that equal Spark's batch answer after each of eight steps."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.differential.compare import Oracle, differences
from tests.differential.suite import THEMES, Theme


@pytest.fixture(scope="module")
def oracle(sessions: SparkSessions) -> Oracle:
    return Oracle(sessions)


def test_there_are_at_least_300_views() -> None:
    names = Counter(view.name for theme in THEMES for view in theme.views)
    assert len(names) >= 300
    assert max(names.values()) == 1, "a name that is given twice"


@pytest.mark.core("choices", slow_because="eight steps of all views of a theme, compared with Spark")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", THEMES, ids=[theme.name for theme in THEMES])
def test_views_equal_the_batch_answer_after_every_step(sessions: SparkSessions, oracle: Oracle, theme: Theme) -> None:
    wrong = {view.name for view in theme.views if view.wrong is not None}
    found = differences(theme, sessions, oracle)
    assert not {name: what for name, what in found.items() if name not in wrong}
    assert wrong <= found.keys(), "these are right now: remove their notes"
