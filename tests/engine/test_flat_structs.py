"""STRUCTs come back as they were, and equal ones are one group."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.engine.flat_structs import can_group_flat, with_structs, without_structs
from airflow_pipelines.rows.zsets import WEIGHT, consolidate_groupable

INNER = pa.struct([pa.field("a", pa.int64()), pa.field("a b", pa.string(), nullable=False)])
KIND = pa.struct([pa.field("start", pa.timestamp("us")), pa.field("inner", INNER)])
VALUES: list[Any] = [
    None,
    {"start": None, "inner": None},
    {"start": None, "inner": {"a": None, "a b": ""}},
    {"start": None, "inner": {"a": 1, "a b": "x"}},
]
SCHEMA = pa.schema([("k", KIND), ("v", KIND), (WEIGHT, pa.int64())])


def _table(values: list[Any]) -> pa.Table:
    return pa.table([pa.array(values, KIND), pa.array(values, KIND), pa.array([1] * len(values), pa.int64())], schema=SCHEMA)


@pytest.mark.parametrize("values", [VALUES, [], [None], VALUES[3:]])
def test_structs_come_back_as_they_were(values: list[Any]) -> None:
    table = _table(values)
    for whole in (table, pa.concat_tables([table, table]), table.slice(1)):
        for kept in ((), ("v",)):
            flat = without_structs(whole, kept)
            assert not any(pa.types.is_struct(column.type) for column in flat.schema if column.name not in kept)
            again = with_structs(flat, SCHEMA, kept)
            again.validate(full=True)
            assert again.schema == SCHEMA
            assert again.to_pylist() == whole.to_pylist()


def test_equal_structs_are_one_group_and_null_is_no_struct_of_nulls() -> None:
    table = pa.concat_tables([_table(VALUES), _table(VALUES[1:])])
    merged = with_structs(consolidate_groupable(without_structs(table, ())), SCHEMA, ())
    assert [row[WEIGHT] for row in merged.to_pylist()] == [1, 2, 2, 2]
    assert [row["k"] for row in merged.to_pylist()] == VALUES


def test_what_arrow_cannot_group_by_is_told() -> None:
    assert can_group_flat(pa.schema([("k", KIND), ("n", pa.int64()), ("empty", pa.struct([]))]))
    assert not can_group_flat(pa.schema([("k", pa.struct([("a", pa.list_(pa.int64()))]))]))
    assert not can_group_flat(pa.schema([("k", pa.map_(pa.string(), pa.int64()))]))
    assert not can_group_flat(pa.schema([("k", pa.struct([("a", pa.null())]))]))
