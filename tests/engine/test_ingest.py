"""What comes in, of any nested type: a valid row is stored, an invalid one is named, and nothing stops a step."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_pipelines.connectors.formats.json import JsonOptions, JsonParser
from airflow_pipelines.connectors.formats.parquet import ParquetParser
from airflow_pipelines.connectors.formats.parsed import Parsed
from airflow_pipelines.engine.arrow import arrow_schema, row_keys
from airflow_pipelines.engine.batch import WEIGHT, weighted
from airflow_pipelines.engine.normalise import Normaliser
from airflow_pipelines.engine.required import missing_part
from airflow_pipelines.engine.schema import RelationSchema, arrow_type
from airflow_pipelines.sql.program import Column, Table
from airflow_pipelines.sql.types import ColumnType

Row = dict[str, Any]
_SCALARS = {
    "BIGINT": st.integers(-2, 2),
    "VARCHAR": st.sampled_from(["", "a", "é"]),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5]),
    "BOOLEAN": st.booleans(),
}
_FLAGS = st.booleans()


def _nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    return st.one_of(
        st.builds(lambda flag, part: ColumnType("ARRAY", flag, component=part), _FLAGS, inner),
        st.builds(lambda flag, x, y: ColumnType("STRUCT", flag, fields=(("x", x), ("y", y))), _FLAGS, inner, inner),
        st.builds(lambda flag, value: ColumnType("MAP", flag, key=ColumnType("VARCHAR", False), value=value), _FLAGS, inner),
    )


KINDS = st.recursive(st.builds(ColumnType, st.sampled_from(sorted(_SCALARS)), _FLAGS), _nested, max_leaves=4)


def _values(kind: ColumnType) -> st.SearchStrategy[Any]:
    """Values as JSON has them, with NULLs also where the type allows none."""
    if kind.fields is not None:
        return st.none() | st.fixed_dictionaries({name: _values(inner) for name, inner in kind.fields})
    if kind.component is not None:
        return st.none() | st.lists(_values(kind.component), max_size=2)
    if kind.value is not None:
        return st.none() | st.dictionaries(st.sampled_from(["b", "a"]), _values(kind.value), max_size=2)
    return st.none() | _SCALARS[kind.name]


def _valid(kind: ColumnType, value: Any) -> bool:
    if value is None:
        return kind.nullable
    if kind.fields is not None:
        return all(_valid(inner, value[name]) for name, inner in kind.fields)
    if kind.component is not None:
        return all(_valid(kind.component, item) for item in value)
    return kind.value is None or all(_valid(kind.value, item) for item in value.values())


def _arrow(kind: ColumnType, value: Any) -> Any:
    """A JSON value as pyarrow takes it."""
    if value is None:
        return None
    if kind.fields is not None:
        return {name: _arrow(inner, value[name]) for name, inner in kind.fields}
    if kind.component is not None:
        return [_arrow(kind.component, item) for item in value]
    return [(key, _arrow(kind.value, item)) for key, item in value.items()] if kind.value is not None else value


@st.composite
def histories(draw: st.DrawFn) -> tuple[RelationSchema, list[list[tuple[str, Row]]]]:
    """A table with a key, and steps of operations on its rows."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=2))
    columns = (Column("k", ColumnType("BIGINT", False)), *(Column(f"c{at}", kind) for at, kind in enumerate(kinds)))
    rows = st.fixed_dictionaries({"k": st.integers(0, 2), **{column.name: _values(column.type) for column in columns[1:]}})
    operations = st.tuples(st.sampled_from(["insert", "insert", "delete"]), rows)
    steps = draw(st.lists(st.lists(operations, min_size=1, max_size=4), min_size=1, max_size=3))
    return RelationSchema("t", columns), steps


class Stored:
    """A table in memory, in the types of batches."""

    def __init__(self, schema: RelationSchema) -> None:
        self.schema = schema
        self.rows: list[Row] = []

    def take(self, parsed: Parsed) -> None:
        """One step."""
        table = Table("t", self.schema.columns, primary_key=("k",))
        normaliser = Normaliser(table, self.schema, self._lookup)
        if parsed.changes is None:
            return
        delta = normaliser.delta([parsed.changes])
        assert not normaliser.rejected
        for row in delta.to_pylist():
            weight = row.pop(WEIGHT)
            if weight > 0:
                self.rows.append(row)
            else:
                self.rows.remove(row)

    def _lookup(self, wanted: Any, names: Sequence[str]) -> Any:
        keys = set(row_keys(wanted.select(names)))
        schema = arrow_schema(weighted(self.schema.spark))
        plain = pa.Table.from_pylist([{**row, WEIGHT: 1} for row in self.rows], schema=schema)
        stored = pa.table([_as_spark_writes(column.combine_chunks()) for column in plain.columns], schema=schema)
        return stored.filter(pa.array([key in keys for key in row_keys(stored.select(names))], pa.bool_()))


ROW = ColumnType("STRUCT", fields=(("x", ColumnType("BIGINT", False)),))
TWICE = RelationSchema("t", (Column("k", ColumnType("BIGINT", False)), Column("r", ROW)))
"""A struct that may be NULL, with a field that may not."""


@settings(max_examples=150, deadline=None)
@example((TWICE, [[("insert", {"k": 1, "r": None})]] * 2))
@given(histories())
def test_json_changes(history: tuple[RelationSchema, list[list[tuple[str, Row]]]]) -> None:
    schema, steps = history
    stored, expected = Stored(schema), dict[int, Row]()
    for operations in steps:
        text = "\n".join(json.dumps({operation: row}) for operation, row in operations)
        parsed = JsonParser(schema, JsonOptions()).parse(text.encode())
        good = [(operation, row) for operation, row in operations if _all_valid(schema, row)]
        assert len(parsed.errors) == len(operations) - len(good)
        stored.take(parsed)
        for operation, row in good:
            if operation == "insert":
                expected[row["k"]] = row
            else:
                expected.pop(row["k"], None)
        assert _shown(stored) == _comparable(schema, expected)


def _as_spark_writes(array: Any) -> Any:
    """The same values, with NULL for each field of a struct that is NULL."""
    if not pa.types.is_struct(array.type):
        return array
    parts = [_as_spark_writes(pc.struct_field(array, [at])) for at in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())


@settings(max_examples=100, deadline=None)
@given(histories())
def test_parquet_files(history: tuple[RelationSchema, list[list[tuple[str, Row]]]]) -> None:
    schema, steps = history
    stored, expected = Stored(schema), dict[int, Row]()
    arrow = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in schema.columns])
    for operations in steps:
        rows = [row for _, row in operations]
        given_rows = [{column.name: _arrow(column.type, row[column.name]) for column in schema.columns} for row in rows]
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(given_rows, schema=arrow), sink)
        parsed = ParquetParser(schema).parse(sink.getvalue())
        good = [row for row in rows if _all_valid(schema, row)]
        assert len(parsed.errors) == len(rows) - len(good)
        stored.take(parsed)
        expected |= {row["k"]: row for row in good}
        assert _shown(stored) == _comparable(schema, expected)


def _all_valid(schema: RelationSchema, row: Row) -> bool:
    return all(_valid(column.type, row[column.name]) for column in schema.columns)


def _shown(stored: Stored) -> list[str]:
    return sorted(repr(row) for row in stored.rows)


def _comparable(schema: RelationSchema, rows: dict[int, Row]) -> list[str]:
    """The rows as they are stored: zeros without a sign, maps by key."""
    return sorted(
        repr({column.name: _canonical(column.type, row[column.name]) for column in schema.columns}) for row in rows.values()
    )


def _canonical(kind: ColumnType, value: Any) -> Any:
    if value is None:
        return None
    if kind.fields is not None:
        return {name: _canonical(inner, value[name]) for name, inner in kind.fields}
    if kind.component is not None:
        return [_canonical(kind.component, item) for item in value]
    if kind.value is not None:
        return sorted((key, _canonical(kind.value, item)) for key, item in value.items())
    return value + 0.0 if kind.name == "DOUBLE" else value


@pytest.mark.parametrize(
    ("kind", "values", "path"),
    [
        (ColumnType("BIGINT"), [None, 1], None),
        (ColumnType("STRUCT", fields=(("x", ColumnType("BIGINT", False)),)), [None, {"x": 1}], None),
        (ColumnType("STRUCT", fields=(("x", ColumnType("BIGINT", False)),)), [{"x": 1}, {"x": None}], ".x"),
        (ColumnType("ARRAY", component=ColumnType("BIGINT", False)), [[1], None, []], None),
        (ColumnType("ARRAY", component=ColumnType("BIGINT", False)), [[1], [2, None]], "[]"),
        (
            ColumnType("MAP", key=ColumnType("VARCHAR"), value=ColumnType("STRUCT", fields=(("y", ColumnType("BIGINT", False)),))),
            [[("a", None)], None, [("b", {"y": None})]],
            "[].y",
        ),
    ],
)
def test_a_missing_part_has_a_path(kind: ColumnType, values: list[Any], path: str | None) -> None:
    array = pa.array([*values, *values], arrow_type(kind))
    assert missing_part(array, kind) == path
    assert missing_part(array.slice(len(values)), kind) == path
    assert missing_part(pa.chunked_array([array.slice(1), array.slice(0, 0)]), kind) == path
