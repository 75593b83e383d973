"""Connectors as others declare them: rows that are made up, transports that are not there, arrays with bad elements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from feldera import Pipeline
from feldera.rest.errors import FelderaAPIError

pytestmark = pytest.mark.integration

Deploy = Callable[..., Pipeline]


def table(columns: str, *connectors: dict[str, Any]) -> str:
    declared = json.dumps(connectors).replace("'", "''")
    return f"create table t ({columns}) with ('materialized' = 'true', 'connectors' = '{declared}');"


def made_up(plan: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    return {"name": "made_up", "transport": {"name": "datagen", "config": {"seed": 1, "plan": plan}}, **options}


def test_made_up_rows(deploy: Deploy) -> None:
    fields = {
        "id": {"range": [1, 1000]},
        "name": {"strategy": "name"},
        "price": {"strategy": "uniform", "range": [10, 20]},
        "tags": {"range": [1, 3], "value": {"values": ["a", "b"]}},
        "attrs": {"range": [1, 2], "key": {"values": ["k"]}, "value": {"strategy": "zipf", "range": [0, 5]}},
        "pair": {"fields": {"x": {"scale": 2}, "y": {"values": [True]}}},
        "doc": {"values": [{"a": [1, 2]}, "text"]},
        "note": {"strategy": "sentence", "null_percentage": 50},
    }
    columns = (
        "id bigint not null primary key, name varchar not null, price decimal(5, 2), tags varchar array, attrs map<varchar, int>,"
        "pair row(x int, y boolean), doc variant, note varchar"
    )
    later = {"name": "later", "start_after": "first", "transport": {"name": "empty_input"}, "format": {"name": "json"}}
    limits = {"max_batch_size": 100, "max_worker_batch_size": 10, "max_queued_records": 500, "max_queued_bytes": 10_000}
    pipeline = deploy(table(columns, made_up([{"limit": 300, "fields": fields}], labels=["first"], **limits), later))
    pipeline.wait_for_completion(timeout_s=60)
    [counts] = pipeline.query(
        "select count(*) as n, max(id) as most, min(price) >= 10 and max(price) < 20 as priced, "
        "count(note) between 90 and 210 as noted from t"
    )
    assert counts == {"n": 300, "most": 300, "priced": True, "noted": True}
    [row] = pipeline.query("select tags, attrs, pair, doc from t where id = 2")
    assert row["tags"] == ["a", "b"]
    assert set(row["attrs"]) == {"k"}
    assert row["pair"] == {"x": 2, "y": True}
    assert row["doc"] == '"text"'
    assert pipeline.input_connector_stats("t", "made_up").metrics.end_of_input
    assert pipeline.input_connector_stats("t", "later").metrics.end_of_input


def test_five_numbers_are_forty_bytes(deploy: Deploy) -> None:
    pipeline = deploy(table("a int, b int, c int, d int, e int", made_up([{"limit": 1}])))
    pipeline.wait_for_completion(timeout_s=60)
    metrics = pipeline.stats().global_metrics
    assert (metrics.total_input_records, metrics.total_input_bytes) == (1, 40)


@pytest.mark.core("transport")
@pytest.mark.parametrize(
    ("connector", "text"),
    [
        ({"transport": {"name": "nats_input", "config": {"subject": "x"}}, "format": {"name": "avro"}}, "'nats_input' is not part"),
        (made_up([{"fields": {"nope": {}}}]), "has no column or field 'nope'"),
    ],
    ids=["transport", "plan"],
)
def test_what_compiles_and_cannot_start(create: Deploy, connector: dict[str, Any], text: str) -> None:
    pipeline = create(table("a int", connector))
    with pytest.raises(RuntimeError, match=text):
        pipeline.start(timeout_s=60)
    error = pipeline.deployment_error()
    assert error["error_code"].startswith("ConfigError.")
    assert text in error["message"]


def test_an_index_makes_updates_of_deletes_and_inserts(deploy: Deploy, served_url: str, tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("plain", "by_id", "buffered", "snow")}

    def output(name: str, update_format: str = "insert_delete", **options: Any) -> dict[str, Any]:
        config = {"update_format": update_format, "key_fields": ["id"]}
        transport = {"name": "file_output", "config": {"path": str(paths[name])}}
        return {"name": name, "transport": transport, "format": {"name": "json", "config": config}, **options}

    outputs = [
        output("plain", paused=True, start_after="never", preprocessor=[{"name": "of inputs"}]),
        output("by_id", index="I"),
        output("buffered", "debezium", index="i", enable_output_buffer=True, max_output_buffer_size_records=1000),
        output("snow", "snowflake"),
    ]
    pipeline = deploy(
        table("id int not null primary key, n int", made_up([{"limit": 3, "fields": {"n": {"values": [5]}}}], index="of outputs"))
        + f"create view v with ('connectors' = '{json.dumps(outputs)}') as select * from t; create index i on v(id);"
    )
    pipeline.wait_for_completion(timeout_s=60)
    url = f"{served_url}/v0/pipelines/{pipeline.name}/egress/v"
    wanted = {"format": {"name": "json", "config": {"array": True}}, "index": "i"}
    with requests.post(url, json=wanted, stream=True, timeout=30) as stream:
        chunks = stream.iter_lines()
        next(chunks)
        pipeline.input_json("t", [{"insert": {"id": 1, "n": 6}}, {"delete": {"id": 2}}], update_format="insert_delete")
        assert json.loads(next(chunks))["json_data"] == [{"update": {"id": 1, "n": 6}}, {"delete": {"id": 2, "n": 5}}]
    pipeline.checkpoint(wait=True)
    lines = {name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in paths.items()}
    first = [{"insert": {"id": number, "n": 5}} for number in range(3)]
    assert lines["by_id"] == [*first, {"update": {"id": 1, "n": 6}}, {"delete": {"id": 2, "n": 5}}]
    gone = [{"delete": {"id": 1, "n": 5}}, {"delete": {"id": 2, "n": 5}}]
    assert lines["plain"] == [*first, *gone, {"insert": {"id": 1, "n": 6}}]
    assert [change["__action"] for change in lines["snow"]] == ["insert"] * 3 + ["delete"] * 2 + ["insert"]
    # Written at the end of the input, then with the checkpoint.
    payloads = [change["payload"] for change in lines["buffered"]]
    assert payloads[3:] == [
        {"op": "u", "before": {"id": 1, "n": 5}, "after": {"id": 1, "n": 6}},
        {"op": "d", "before": {"id": 2, "n": 5}, "after": None},
    ]
    assert pipeline.output_connector_stats("v", "by_id").metrics.transmitted_records == 5
    for body, status in (({**wanted, "index": "nope"}, 400), ({**wanted, "index": 1}, 400)):
        assert requests.post(url, json=body, timeout=30).status_code == status


def test_all_bad_elements_of_an_array_are_listed(deploy: Deploy) -> None:
    pipeline = deploy("create table \"T\" (\"a/b\" int not null) with ('materialized' = 'true');")
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.input_json('"T"', [{"a/b": 1}, {"a/b": "x"}, {}])
    assert refused.value.error_code == "ParseErrors"
    assert refused.value.details["num_errors"] == 2
    assert list(pipeline.query('select count(*) as n from "T"')) == [{"n": 0}]
