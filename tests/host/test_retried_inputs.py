"""Inputs whose source is gone for a while, or has no position, in a running pipeline."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.connectors.sources import NUMBER_INPUT, SOURCES, UNSEEKABLE_INPUT, Source
from tests.connectors.targets import registered
from tests.connectors.waits import set_waits
from tests.host.driver import Make, Pipeline


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """The source of the pipeline's input."""
    set_waits(monkeypatch, first_s=0.01, longest_s=0.05)
    SOURCES["one"] = made = Source(*range(1, 6))
    with registered(NUMBER_INPUT, UNSEEKABLE_INPUT):
        yield made


def program(transport: str = "number_test_input") -> str:
    declared = [{"name": "c", "transport": {"name": transport, "config": {"source": "one"}}, "max_batch_size": 1}]
    return (
        f"CREATE TABLE t (x INT) WITH ('materialized' = 'true', 'connectors' = '{json.dumps(declared)}');"
        "CREATE MATERIALIZED VIEW v AS SELECT SUM(x) AS s, COUNT(*) AS n FROM t;"
    )


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"it took too long: {what}"
        time.sleep(0.02)


def stats(pipeline: Pipeline) -> dict[str, Any]:
    wire: dict[str, Any] = pipeline.get("tables/t/connectors/c/stats").json()
    return wire


@pytest.mark.core
def test_rows_come_once_however_often_the_source_breaks_off(make: Make, source: Source) -> None:
    source.breaks_after = {0, 1, 3}
    pipeline = make(program())
    pipeline.start()
    pipeline.await_complete()
    assert pipeline.query("SELECT * FROM v") == [{"s": 15, "n": 5}]
    assert stats(pipeline)["metrics"]["num_transport_errors"] == 3
    assert stats(pipeline)["health"]["status"] == "Healthy"


def test_a_source_that_is_gone_holds_up_nothing_else(make: Make, source: Source) -> None:
    source.is_there = False
    source.has_end = False
    pipeline = make(program())
    pipeline.start()
    until(lambda: stats(pipeline)["health"]["status"] == "Unhealthy", "an error")
    assert stats(pipeline)["fatal_error"] is None
    pipeline.insert("t", {"x": 10})
    pipeline.checkpoint()
    pipeline.suspend()
    pipeline.start()
    assert pipeline.query("SELECT * FROM v") == [{"s": 10, "n": 1}]
    source.is_there = True
    until(lambda: pipeline.query("SELECT * FROM v") == [{"s": 25, "n": 6}], "the source's rows")
    assert stats(pipeline)["metrics"]["lag"] == {"records": 0, "bytes": None, "seconds": None}
    pipeline.checkpoint()
    assert source.committed[-1] == {"next": 5}


@pytest.mark.core
def test_no_checkpoint_in_the_middle_of_a_source_without_positions(make: Make, source: Source) -> None:
    source.has_end = False
    pipeline = make(program("unseekable_test_input"))
    pipeline.start()
    until(lambda: pipeline.query("SELECT n FROM v") == [{"n": 5}], "the source's rows")
    wanted = [{"UnsupportedInputEndpoint": "t.c"}]
    assert pipeline.stats()["suspend_error"] == {"Permanent": wanted}
    assert pipeline.stats()["permanent_checkpoint_errors"] == wanted
    answer = pipeline.post("checkpoint")
    assert answer.status_code >= 400
    assert "whose sources have no position to go on from: t.c" in answer.json()["message"]
    assert pipeline.post("suspend").status_code == 202
    last = pipeline.wait_for("Stopped")
    assert last.error is not None
    assert (last.error["error_code"], last.error["details"]["reasons"]) == ("SuspendError", wanted)


def test_a_source_without_positions_that_has_ended_is_no_obstacle(make: Make, source: Source) -> None:
    pipeline = make(program("unseekable_test_input"))
    pipeline.start()
    pipeline.await_complete()
    assert pipeline.stats()["suspend_error"] is None
    pipeline.suspend()
    pipeline.start()
    pipeline.await_complete()
    assert pipeline.query("SELECT * FROM v") == [{"s": 15, "n": 5}]
    assert source.opened[-1] == {"next": 5}
