"""Rows that views have before any input has come: who listens to a paused pipeline before it is resumed gets them, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.host.driver import Make, Pipeline

pytestmark = pytest.mark.core

_SQL = """
CREATE TABLE t (x INT) WITH ('materialized' = 'true');
CREATE MATERIALIZED VIEW k AS SELECT 1 AS one;
CREATE VIEW passing AS SELECT 2 AS two;
CREATE MATERIALIZED VIEW g AS SELECT COUNT(*) AS n FROM t;
"""
_COUNTED = [{"delete": {"n": 0}}, {"insert": {"n": 1}}]


def _until(chunks: Iterator[dict[str, Any]], last: dict[str, Any]) -> list[dict[str, Any]]:
    """The changes of a stream, until and with one of them."""
    found: list[dict[str, Any]] = []
    while last not in found:
        found += next(chunks)["json_data"]
    return found


def _resume(pipeline: Pipeline) -> None:
    assert pipeline.post("resume").status_code == 202
    pipeline.wait_for("Running")
    pipeline.insert("t", {"x": 1})


def test_listeners_of_a_paused_pipeline_miss_nothing(make: Make) -> None:
    pipeline = make(_SQL)
    pipeline.start("Paused", initial="paused")
    with (
        pipeline.listen("k") as k,
        pipeline.listen("passing") as passing,
        pipeline.listen("g") as g,
        pipeline.listen("g", format="csv") as g_csv,
        pipeline.listen("g", send_snapshot=True) as snapshot,
    ):
        _resume(pipeline)
        assert _until(k, {"insert": {"one": 1}}) == [{"insert": {"one": 1}}]
        assert _until(passing, {"insert": {"two": 2}}) == [{"insert": {"two": 2}}]
        assert _until(g, _COUNTED[-1]) == [{"insert": {"n": 0}}, *_COUNTED]
        assert _until(snapshot, _COUNTED[-1]) == [{"insert": {"n": 0}}, *_COUNTED], "once, as the snapshot"
        lines = (chunk["text_data"] for chunk in g_csv if chunk["text_data"])
        assert [next(lines), next(lines)] == ["0,1\n", "0,-1\n1,1\n"]


@pytest.mark.rest
def test_a_listener_that_comes_later_gets_what_comes_later(make: Make) -> None:
    """After the pipeline has been resumed, after a step that was forced while it was paused, and after a restart."""
    running = make(_SQL)
    running.start()
    with running.listen("g") as g:
        running.insert("t", {"x": 1})
        assert _until(g, _COUNTED[-1]) == _COUNTED
    running.suspend()
    running.start("Paused", initial="paused")
    with running.listen("g") as g:
        _resume(running)
        assert _until(g, {"insert": {"n": 2}}) == [{"delete": {"n": 1}}, {"insert": {"n": 2}}]
    forced = make(_SQL)
    forced.start("Paused", initial="paused")
    forced.ingest("t", {"insert": {"x": 1}}, force=True)
    with forced.listen("g") as g:
        _resume(forced)
        assert _until(g, {"insert": {"n": 2}}) == [{"delete": {"n": 1}}, {"insert": {"n": 2}}]


@pytest.mark.rest
def test_a_listener_gets_the_contents_of_a_view_that_a_change_has_added(make: Make) -> None:
    pipeline = make(_SQL)
    pipeline.start()
    pipeline.insert("t", {"x": 7})
    pipeline.suspend()
    pipeline.program += "CREATE MATERIALIZED VIEW more AS SELECT x, COUNT(*) AS n FROM t GROUP BY x;"
    pipeline.start("Paused", initial="paused", bootstrap_policy="allow")
    with pipeline.listen("more") as more, pipeline.listen("g") as g:
        _resume(pipeline)
        assert _until(more, {"insert": {"x": 1, "n": 1}}) == [{"insert": {"x": 7, "n": 1}}, {"insert": {"x": 1, "n": 1}}]
        assert _until(g, {"insert": {"n": 2}}) == [{"delete": {"n": 1}}, {"insert": {"n": 2}}], "it has not changed"


@pytest.mark.rest
def test_of_a_silent_change_a_listener_gets_nothing(make: Make) -> None:
    pipeline = make(_SQL)
    pipeline.start()
    pipeline.insert("t", {"x": 7})
    pipeline.suspend()
    pipeline.program += "CREATE MATERIALIZED VIEW more AS SELECT x FROM t;"
    pipeline.start("Paused", initial="paused", bootstrap_policy="allow", silent_bootstrap=True)
    with pipeline.listen("more") as more:
        _resume(pipeline)
        assert _until(more, {"insert": {"x": 1}}) == [{"insert": {"x": 1}}]
