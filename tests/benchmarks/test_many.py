"""Several clients on several pipelines of one host see their own rows, and no errors."""

from __future__ import annotations

from airflow_pipelines import Pipeline
from airflow_pipelines.sdk.client import PipelineClient
from benchmarks.many import Calls, bring_up, work
from tools.model import require

SECONDS = 3.0


def test_clients_work_on_pipelines_of_one_host_without_errors(served_url: str) -> None:
    client = PipelineClient(served_url)
    names = bring_up(client, 3)
    try:
        calls = work(lambda: PipelineClient(served_url), names, 4, SECONDS)
    finally:
        for name in names:
            pipeline = Pipeline.get(name, client)
            pipeline.stop(force=True, timeout_s=60)
            pipeline.delete(clear_storage=True)
    assert calls.errors == {}
    found = {item.name: item.value for item in calls.measurements()}
    assert found["many.step.calls"] >= 4
    assert 0 < found["many.query.s_median"] <= found["many.query.s_p99"]


def test_errors_are_counted_by_the_kind_of_call() -> None:
    calls = Calls()
    for rows in (10, 20):
        with calls.timed("query"):
            require(rows == 10, f"{rows} rows")
    assert calls.errors == {"query": ["wrong: 20 rows"]}
    found = {item.name: item.value for item in calls.measurements()}
    assert (found["many.query.calls"], found["many.query.errors"]) == (1, 1)
    assert [(figures.kind, figures.calls, figures.errors) for figures in calls.figures()] == [("query", 1, 1)]
    assert calls.table().row_count == 1
