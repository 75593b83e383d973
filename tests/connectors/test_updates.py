"""Updates among the changes of a view with an index."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors import changes
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.rows.formats.delta import JsonChanges, csv_changes
from airflow_pipelines.rows.formats.json import JsonOptions

DELTA = pa.table(
    {
        "v": ["new", "old", "gone", "come", "twice", "a", "b", "nil", "null"],
        "k": [1, 1, 2, 3, 4, 4, 4, None, None],
        "__weight": [1, -1, -1, 1, 2, -1, -1, -1, 1],
    }
)


def written(delta: pa.Table, update_format: str, key: tuple[str, ...] = ("k",)) -> list[Any]:
    writer = JsonChanges(JsonOptions.model_validate({"update_format": update_format}))
    return [json.loads(text) for table in ChangesInMemory(delta, key).tables() for text in writer.texts(table)]


def test_a_row_that_goes_and_one_that_comes_are_an_update() -> None:
    assert written(DELTA, "insert_delete") == [
        {"update": {"v": "null", "k": None}},
        {"update": {"v": "new", "k": 1}},
        {"delete": {"v": "gone", "k": 2}},
        {"insert": {"v": "come", "k": 3}},
        # The index is not unique here.
        {"delete": {"v": "a", "k": 4}},
        {"delete": {"v": "b", "k": 4}},
        {"insert": {"v": "twice", "k": 4}},
        {"insert": {"v": "twice", "k": 4}},
    ]
    debezium = [change["payload"] for change in written(DELTA, "debezium")]
    assert debezium[1] == {"op": "u", "before": {"v": "old", "k": 1}, "after": {"v": "new", "k": 1}}
    assert [change["op"] for change in debezium] == ["u", "u", "d", "c", "d", "d", "c", "c"]


def test_formats_without_updates_have_deletes_before_inserts() -> None:
    weights = [(change["data"]["v"], change["weight"]) for change in written(DELTA, "weighted")]
    assert weights[:4] == [("nil", -1), ("null", 1), ("old", -1), ("new", 1)]
    assert [change["__action"] for change in written(DELTA, "snowflake")][:4] == ["delete", "insert"] * 2
    [table] = ChangesInMemory(DELTA, ("k",)).tables()
    assert list(csv_changes(table))[:3] == ["nil,,-1\n", "null,,1\n", "old,1,-1\n"]


def test_keys_of_several_columns_and_of_nested_values() -> None:
    rows = {"a": [1, 1, 1, 1], "b": [[1], [1], [2], [3]], "v": [1, 2, 3, 4], "__weight": [-1, 1, -1, 1]}
    assert [list(change) for change in written(pa.table(rows), "insert_delete", ("a", "b"))] == [["update"], ["delete"], ["insert"]]
    kinds = written(pa.table(rows), "insert_delete", ("a",))
    assert [next(iter(change)) for change in kinds] == ["delete", "delete", "insert", "insert"]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_updates_are_found_across_tables(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    rng = random.Random(size)
    keys = [rng.randrange(40) for _ in range(100)]
    delta = pa.table({"k": keys, "v": range(100), "__weight": [rng.choice([-1, 1, 1, 2]) for _ in keys]})
    whole = written(delta, "debezium")
    assert sum(change["payload"]["op"] == "u" for change in whole) > 1
    monkeypatch.setattr(changes, "ROWS_AT_ONCE", size)
    assert written(delta, "debezium") == whole
