"""Rows of any nested type through a running pipeline: a valid one never stops it, an invalid one is counted with its place."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from airflow_pipelines.connectors.http import parse_ingress
from tests.engine.ingested import records
from tests.host.driver import Pipeline
from tests.inprocess_host import InProcessHost

PROGRAM = """
CREATE TABLE t (
    k BIGINT NOT NULL PRIMARY KEY,
    r ROW(x INT NOT NULL, "Y y" VARCHAR),
    a ROW(n BIGINT NOT NULL, d DATE) ARRAY,
    m MAP<VARCHAR, ROW(y DOUBLE, b VARBINARY)>,
    n MAP<DATE, BIGINT ARRAY>,
    v VARIANT,
    d DECIMAL(38, 38),
    z TIMESTAMP,
    f REAL,
    u UUID,
    c CHAR(3)
);
CREATE MATERIALIZED VIEW seen AS SELECT * FROM t;
CREATE MATERIALIZED VIEW grouped AS SELECT r, a, f, COUNT(*) AS n, MAX(v IS NULL) AS w FROM t GROUP BY r, a, f;
CREATE MATERIALIZED VIEW joined AS SELECT x.k, y.r FROM t AS x LEFT JOIN t AS y ON x.u = y.u AND x.k <> y.k;
"""


@pytest.mark.core
def test_records_of_any_kind_never_stop_a_pipeline(make: Callable[..., Pipeline], warm_host: InProcessHost) -> None:
    pipeline = make(PROGRAM)
    pipeline.start()
    assert pipeline.deployment_id is not None
    schema = warm_host.fleet.get(pipeline.deployment_id).requests.serving().program.schemas["t"]
    taken = refused = 0

    @settings(
        max_examples=int(os.environ.get("INGEST_EXAMPLES", "8")),
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(records(schema, max_size=12))
    def push(operations: list[tuple[str, str]]) -> None:
        nonlocal taken, refused
        body = "\n".join(f'{{"{operation}":{row}}}' for operation, row in operations)
        parsed = parse_ingress(schema, body.encode(), "json")
        answer = pipeline.post("ingress/t", body, format="json")
        assert answer.status_code == (400 if parsed.num_errors else 200), answer.text
        if parsed.num_errors:
            found = [error["index"] for error in answer.json()["details"]["errors"]]
            assert found == [error.index for error in parsed.errors]
        taken += parsed.records
        refused += parsed.num_errors
        # An empty push behind it: its token covers what came before.
        pipeline.await_token(pipeline.post("ingress/t", "", format="json").json()["token"])

    push()
    # When rows are refused, Running is told once more with their number, after some seconds.
    assert list(dict.fromkeys(pipeline.statuses())) == ["Initializing", "Running"], pipeline.log
    assert pipeline.statuses()[-1] == "Running"
    stats = pipeline.stats()
    assert stats["global_metrics"]["total_processed_records"] == stats["global_metrics"]["total_input_records"] == taken
    [endpoint] = stats["inputs"]
    assert endpoint["metrics"]["num_parse_errors"] >= refused
    rows = pipeline.query("SELECT k, TO_JSON(v) AS v FROM t ORDER BY k")
    assert rows == pipeline.query("SELECT k, TO_JSON(v) AS v FROM seen ORDER BY k")
    assert pipeline.query("SELECT SUM(n) AS n FROM grouped") == [{"n": len(rows) or None}]
