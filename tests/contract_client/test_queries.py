"""The SQL of programs and ad-hoc queries, driven by the unmodified client of PyPI's package ``feldera``."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feldera import Pipeline
from feldera.rest.errors import FelderaAPIError

from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table t (id int not null primary key, v variant, at timestamp, clock time, r real, d double, u bigint unsigned)
    with ('materialized' = 'true');
create table log (line varchar);
create materialized view w as
    select id, typeof(v['a'][1]) as kind, cast(v['a'][2]['b'] as varchar) as b, r / (d - d) as quotient, element(array(id)) as one
    from t;
create index by_id on w(id);
"""
ROWS = [
    {
        "id": 1,
        "v": {"a": [1, {"b": "x"}]},
        "at": " 2026-01-02 03:04:05 ",
        "clock": " 03:04:05.25",
        "r": 1.5,
        "d": 2.0,
        "u": 2**64 - 1,
    },
    {"id": 2, "v": None, "at": None, "clock": None, "r": -1, "d": 0, "u": None},
]


@pytest.mark.core
def test_programs_and_queries(deploy: Callable[..., Pipeline], served_url: str, tmp_path: Path) -> None:
    pipeline = deploy(SQL)
    listener = pipeline.listen("w")
    pipeline.input_json("t", ROWS)
    pipeline.wait_for_completion(timeout_s=60)
    wanted = [
        {"id": 1, "kind": "BIGINT", "b": "x", "quotient": None, "one": 1},
        {"id": 2, "kind": "NULL", "b": None, "quotient": None, "one": 2},
    ]
    # Infinities have no form in JSON.
    assert list(pipeline.query("SELECT * FROM w ORDER BY id")) == wanted
    assert list(pipeline.query("SELECT quotient > 0 AS p FROM w ORDER BY id")) == [{"p": True}, {"p": False}]
    assert [(row["id"], row["kind"], row["insert_delete"]) for row in listener.to_dict()] == [(1, "BIGINT", 1), (2, "NULL", 1)]

    assert list(pipeline.query("SELECT v, at, clock FROM t ORDER BY id")) == [
        {"v": '{"a":[1,{"b":"x"}]}', "at": "2026-01-02T03:04:05", "clock": "03:04:05.25"},
        {"v": None, "at": None, "clock": None},
    ]
    looked_up = """SELECT json_contains(v, 'a') AS a, json_contains(v, 'x') AS x, json_get(v, 'a', 1) AS b, v -> 'a' ->> 0 AS first,
        json_get_str(v, 'a', 1, 'b') AS s, json_length(v, 'a') AS n, variantnull() AS j FROM t WHERE id = 1"""
    assert list(pipeline.query(looked_up)) == [
        {"a": True, "x": False, "b": '{"b":"x"}', "first": "1", "s": "x", "n": 2, "j": "null"}
    ]
    table = pa.Table.from_batches(list(pipeline.query_arrow("SELECT v, u, clock, id, id FROM t ORDER BY id")))
    assert table.column_names == ["v", "u", "clock", "id", "id"]
    assert [str(column.type) for column in table.columns] == ["string", "uint64", "time64[ns]", "int32", "int32"]
    assert table["v"].to_pylist() == ['{"a":[1,{"b":"x"}]}', None]
    prepared = "PREPARE p(INT) AS SELECT v ->> 'a' AS a, json_get_int(v, 'a', 0) AS i, MAP {'k': id} AS m FROM t WHERE id = $1;"
    assert list(pipeline.query(f"{prepared} EXECUTE p(1)")) == [{"a": '[1,{"b":"x"}]', "i": 1, "m": {"k": 1}}]
    pipeline.query_parquet("SELECT v, u FROM t ORDER BY id", str(tmp_path / "t.parquet"))
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [
        {"v": '{"a":[1,{"b":"x"}]}', "u": 2**64 - 1},
        {"v": None, "u": None},
    ]
    hashes = {pipeline.query_hash(f"SELECT id FROM t ORDER BY id {direction}") for direction in ("ASC", "DESC")}
    assert len(hashes) == 1
    assert re.fullmatch("[0-9A-F]{64}", *hashes)

    pipeline.execute("INSERT INTO log VALUES ('one'); INSERT INTO log SELECT 'two'", wait=True)
    assert "| 2     |" in pipeline.query_tabular("INSERT INTO log VALUES ('three'), ('four')")

    # Errors while a query runs are told in its result, all others by the status.
    assert "\nERROR: Division by zero" in "\n" + "".join(pipeline.query_tabular("SELECT 1 / (id - 1) AS x FROM t"))
    assert [list(row) for row in pipeline.query("SELECT MAP {1: 2} AS m")] == [["error"]]
    for wrong, says in (
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT nothing FROM t", "nothing"),
        ("SELECT * FROM log", "Tried to SELECT from a non-materialized source"),
        ("CREATE TABLE x (a INT)", "program"),
        ("SELECT 1; SELECT 2", "Only the last"),
        ("EXECUTE p(1)", "No statement p is prepared"),
    ):
        with pytest.raises(FelderaAPIError, match=says) as refused:
            list(pipeline.query(wrong))
        assert refused.value.error_code == "AdHocQueryError"

    # The same over a WebSocket, which the client does not use.
    from websockets.sync.client import connect

    with connect(f"{served_url.replace('http', 'ws')}/v0/pipelines/{pipeline.name}/query", proxy=None) as socket:
        socket.send('{"sql": "SELECT id FROM t ORDER BY id", "format": "json"}')
        lines = "".join(str(part) for part in socket).splitlines()
    assert [json.loads(line) for line in lines] == [{"id": 1}, {"id": 2}]
    assert (
        httpx.get(f"{served_url}/v0/pipelines/{pipeline.name}/query", params={"sql": "SELECT 7 AS n"}).text.splitlines()[3]
        == "| 7 |"
    )


def test_texts_of_char_columns_are_kept_as_they_come(deploy: Callable[..., Pipeline], served_url: str) -> None:
    pipeline = deploy(
        "create table t (id int, c char(5) default 'd') with ('materialized' = 'true');"
        "create materialized view v as select id, c, cast(c as char(3)) as padded from t;"
    )
    listener = pipeline.listen("v")
    pipeline.execute("INSERT INTO t VALUES (1, 'a'); INSERT INTO t (id) VALUES (2)")
    pipeline.input_json("t", [{"id": 3, "c": "b"}, {"id": 4}], wait=True)
    parquet = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([5], pa.int32()), "c": ["p"]}), parquet)
    for content, form in ((b"6,c\n", "csv"), (parquet.getvalue(), "parquet")):
        url = f"{served_url}/v0/pipelines/{pipeline.name}/ingress/t"
        assert httpx.post(url, params={"format": form}, content=content).is_success
    pipeline.wait_for_completion(timeout_s=60)
    wanted = [{"id": at, "c": c, "padded": f"{c}  "} for at, c in enumerate("adbdpc", 1)]
    query = "SELECT * FROM v ORDER BY id"
    assert pa.Table.from_batches(pipeline.query_arrow(query)).to_pylist() == wanted
    assert list(pipeline.query(query)) == wanted
    assert list(pipeline.query("SELECT id FROM t WHERE c = 'p'")) == [{"id": 5}]
    eventually(lambda: len(listener.to_pandas(clear_buffer=False)) == len(wanted))
    changes = sorted(listener.to_dict(), key=lambda row: row["id"])
    assert [{name: row[name] for name in ("id", "c", "padded")} for row in changes] == wanted
