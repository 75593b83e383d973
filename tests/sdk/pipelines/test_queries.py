"""Ad-hoc queries: lazy, exact, and whole or not at all."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from airflow_pipelines import (
    PipelineAPIError,
)
from tests.scripted import STATS, Scripted, metrics, pipeline_of, problem, up

QUERY = "GET pipelines/p/query"


def test_query_is_lazy_and_exact(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b'{"a": 1, "b": 97.00, "c": null, "s": "x\xe2\x80\xa8y"}\n{"a": 2, "b": 1e400, "c": 0.1, "s": ""}\n')
    rows = pipeline.query("select * from v where x = 'ü'")
    assert not service.requests
    assert list(rows) == [
        {"a": 1, "b": Decimal("97.00"), "c": None, "s": "x\u2028y"},
        {"a": 2, "b": Decimal("1e400"), "c": Decimal("0.1"), "s": ""},
    ]
    [(params, _)] = service.asked(QUERY)
    assert unquote_plus(params["sql"]) == "select * from v where x = 'ü'"
    assert params["format"] == "json"


def test_a_query_that_fails_after_some_rows_is_an_error(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b'{"a": 1}\n{"error": "the host was lost"}\n')
    rows = pipeline.query("select a from v")
    assert next(rows) == {"a": 1}
    with pytest.raises(PipelineAPIError, match="the query failed: the host was lost"):
        next(rows)
    service.on(QUERY, b"+---+\n| a |\n+---+\n| 1 |\nERROR: the host was lost\n")
    lines = pipeline.query_tabular("select a from v")
    assert [next(lines) for _ in range(4)] == ["+---+\n", "| a |\n", "+---+\n", "| 1 |\n"]
    with pytest.raises(PipelineAPIError, match="the query failed: the host was lost"):
        next(lines)
    service.on(QUERY, b'{"error": "x"}\n{"error": "y"}\n')
    assert list(pipeline.query("select error from log")) == [{"error": "x"}, {"error": "y"}]


def test_a_long_text_goes_in_a_body(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    long = f"select '{'ü' * 2_000}' as c from v"
    post = QUERY.replace("GET", "POST")
    service.on(post, b'{"c": 1}\n').on(STATS, metrics(1, 1, 1))
    assert list(pipeline.query(long)) == [{"c": 1}]
    pipeline.execute(long)
    pipeline.query_parquet(long, str(tmp_path / "result"))
    pipeline.query_hash(long)
    asked = service.asked(post)
    assert [params["format"] for params, _ in asked] == ["json", "text", "parquet", "hash"]
    assert all(body == {"sql": long} and "sql" not in params for params, body in asked)
    assert not service.asked(QUERY)


def test_query_parquet_writes_all_or_nothing(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b"PAR1")
    pipeline.query_parquet("select 1", str(tmp_path / "result"))
    assert (tmp_path / "result.parquet").read_bytes() == b"PAR1"
    service.on(QUERY, problem(400, "AdHocQueryError", "no such table"))
    with pytest.raises(PipelineAPIError, match="no such table"):
        pipeline.query_parquet("select 1", str(tmp_path / "result.parquet"))
    assert [path.name for path in tmp_path.iterdir()] == ["result.parquet"]


def test_execute_waits_until_views_have_seen_the_change(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b"+-------+").on(STATS, metrics(5, 5, 3), metrics(9, 5, 4), metrics(9, 9, 5))
    pipeline.execute("insert into t values (1)")
    assert len(service.asked(STATS)) == 3


def test_execute_within_a_transaction_does_not_wait_for_its_commit(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    collecting = {"transaction_status": "TransactionInProgress", "transaction_id": 1}
    service.on(QUERY, b"+-------+").on(STATS, metrics(5, 4, 3, **collecting), metrics(5, 5, 3, **collecting))
    pipeline.execute("insert into t values (1)", timeout_s=5)
    assert len(service.asked(STATS)) == 2
    # A commit that is under way is waited for.
    committing = {"transaction_status": "CommitInProgress", "transaction_id": 1}
    service.on(STATS, metrics(5, 5, 3, **committing), metrics(5, 5, 5))
    pipeline.execute("insert into t values (1)", timeout_s=5)
    assert len(service.asked(STATS)) == 4
