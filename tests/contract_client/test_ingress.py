"""Rows over HTTP ingress, in each format and with each way to write changes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests
from feldera import Pipeline
from feldera.rest.errors import FelderaAPIError

pytestmark = pytest.mark.integration

Deploy = Callable[..., Pipeline]

PROGRAM = """
create table t (id int not null, name varchar default lower('NO') || 'ne', at timestamp) with ('materialized' = 'true');
create table d (id int, name varchar default upper('d'), o bigint default cast(connector_metadata()['offset'] as bigint),
    at timestamp not null default now()) with ('materialized' = 'true');
create table keyed (id int not null primary key, name varchar, n int) with ('materialized' = 'true');
create table "Raw/1" (line varchar) with ('materialized' = 'true');
create table blobs (bytes varbinary) with ('materialized' = 'true');
"""


@pytest.mark.core(slow_because="a pipeline takes rows in each format, and each of them is waited for")
def test_formats(deploy: Deploy, served_url: str) -> None:
    pipeline = deploy(PROGRAM)
    url = f"{served_url}/v0/pipelines/{pipeline.name}"

    def push(table: str, body: str | bytes, **params: Any) -> requests.Response:
        answer = requests.post(f"{url}/ingress/{table}", body, params=params, timeout=60)
        last = answer
        if not answer.ok:
            # An error has no token: the rows that could be read are processed when a later request is.
            last = requests.post(f"{url}/ingress/d", "[]", params={"format": "json", "array": "true"}, timeout=60)
        pipeline.wait_for_token(last.json()["token"])
        return answer

    def contents(query: str) -> list[dict[str, Any]]:
        return list(pipeline.query(query))

    # CSV is the default: no header, in the order of the columns; options of other formats are passed over.
    assert push("t", "1,one,2024-01-01 00:00:00\n2,,NULL,more\n", update_format="raw", array="true", mode="lines").ok
    assert contents("select * from t order by id") == [
        {"id": 1, "name": "one", "at": "2024-01-01T00:00:00"},
        {"id": 2, "name": "", "at": None},
    ]
    few = push("t", "3,three\n4,four,null\n")
    assert (few.status_code, few.json()["error_code"]) == (400, "ParseErrors")
    assert few.json()["message"].startswith("Errors parsing input data (1 errors):")
    assert contents("select id from t where id > 2") == [{"id": 4}], "the row that could be read"
    # JSON: rows or changes, objects or lists, one after the other or in arrays.
    changes = '{"insert": {"ID": 5, "unknown": 1}} {"insert": [6, "six", "2024-01-01T01:00:00+01:00"]}'
    changes += '\n{"delete": {"id": 4, "name": "four"}}'
    assert push("t", changes, format="json", delimiter="|").ok
    assert contents("select * from t where id > 2 order by id") == [
        {"id": 5, "name": "none", "at": None},
        {"id": 6, "name": "six", "at": "2024-01-01T00:00:00"},
    ]
    assert push("t", '[{"id": 7}, {"id": 8}][{"id": 9}]', format="json", update_format="raw", array="true").ok
    assert push("t", '{"weight": 2, "data": {"id": 10}}', format="json", update_format="weighted").ok
    assert contents("select count(*) as n from t where id > 6") == [{"n": 5}]
    bad = push("t", '[{"id": 11}, {}, {"id": "x"}][{"id": 12}]', format="json", update_format="raw", array="true")
    assert (bad.status_code, bad.json()["details"]["num_errors"], len(bad.json()["details"]["errors"])) == (400, 2, 2)
    assert contents("select id from t where id > 10") == [{"id": 12}], "the other array"
    # A key: inserts replace, updates change a part, what is not there is passed over.
    pipeline.input_json(
        "keyed", [{"insert": {"id": 1, "name": "a", "n": 1}}, {"insert": {"id": 1, "name": "b", "n": 2}}], "insert_delete"
    )
    changes = [{"update": {"id": 1, "n": 3}}, {"update": {"id": 8, "n": 3}}, {"delete": {"id": 9}}]
    pipeline.input_json("keyed", changes, update_format="insert_delete")
    assert contents("select * from keyed") == [{"id": 1, "name": "b", "n": 3}]
    assert not any(one.metrics.num_parse_errors for one in pipeline.stats().inputs if one.endpoint_name.startswith("keyed."))
    debezium = '{"payload": {"op": "u", "before": {"id": 1, "name": "b", "n": 3}, "after": {"id": 2, "name": "c", "n": 4}}}'
    assert push("keyed", debezium, format="json", update_format="debezium", json_flavor="debezium_mysql").ok
    assert contents("select * from keyed") == [{"id": 2, "name": "c", "n": 4}]
    # Bytes as they are, and Parquet.
    assert push("%22Raw%2F1%22", "a,b\n\nc", format="raw", mode="lines").ok
    assert contents('select * from "Raw/1" order by line') == [{"line": ""}, {"line": "a,b"}, {"line": "c"}]
    assert push("blobs", b"\xff\x00\n", format="raw").ok
    assert contents("select * from blobs") == [{"bytes": [255, 0, 10]}]
    written = io.BytesIO()
    pq.write_table(pa.table({"name": ["p"], "id": pa.array([20], pa.int32())}), written)
    assert push("T", written.getvalue(), format="parquet").ok
    assert contents("select * from t where id = 20") == [{"id": 20, "name": "p", "at": None}]

    # What is missing is the DEFAULT, of rows that are pushed as of those that a statement inserts.
    pipeline.input_json("d", {"id": 1})
    pipeline.execute("insert into d (id) values (2)")
    assert contents("select id, name, o from d order by id") == [{"id": n, "name": "D", "o": None} for n in (1, 2)]
    assert contents("select count(*) as n from d where at between now() - interval 1 minute and now()") == [{"n": 2}]

    for table, status, params in (
        ("nope", 404, {}),
        ("%22T%22", 404, {}),
        ("t", 400, {"format": "jsom"}),
        ("t", 400, {"format": "json", "update_format": "nope"}),
        ("t", 400, {"format": "json", "array": "perhaps"}),
    ):
        assert push(table, "", **params).status_code == status

    # While the pipeline is paused rows come in by force only, and what counts is what tables got.
    before = pipeline.stats().global_metrics.total_processed_records
    pipeline.pause()
    with pytest.raises(RuntimeError, match="is paused"):
        pipeline.input_json("t", {"id": 30})
    pipeline.input_json("t", {"id": 30}, force=True, wait=False)
    pipeline.resume()
    pipeline.wait_for_idle(idle_interval_s=0.5, timeout_s=60)
    metrics = pipeline.stats().global_metrics
    assert metrics.total_processed_records == metrics.total_input_records == before + 1
    names = {stats.endpoint_name for stats in pipeline.stats().inputs}
    assert all(".api-ingress-" in name for name in names)
    assert metrics.pipeline_complete
    with pytest.raises(FelderaAPIError, match="is NOT NULL"):
        pipeline.input_json("t", {"id": None})
