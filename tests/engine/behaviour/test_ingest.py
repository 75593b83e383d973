"""What comes in, of any nested type: a valid row is stored, an invalid one is named, and nothing stops a step."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_pipelines.connectors.http import parse_ingress
from airflow_pipelines.engine.batch import WEIGHT, weighted
from airflow_pipelines.engine.normalise import Normaliser
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.parquet import parquet_parser
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.required_parts import missing_part
from airflow_pipelines.rows.schema import Column, RelationSchema, arrow_type
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import row_keys
from tests.engine import ingested
from tests.tiers import examples

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
    return RelationSchema("t", columns, ("k",)), steps


class Stored:
    """A table in memory, in the types of batches."""

    def __init__(self, schema: RelationSchema) -> None:
        self.schema = schema
        self.rows: list[Row] = []

    def take(self, parsed: Parsed) -> None:
        """One step, in which nothing is left out."""
        assert self.accept(parsed) == 0

    def accept(self, *all_parsed: Parsed) -> int:
        """One step; returns how many changes were left out."""
        table = Table("t", self.schema.columns, primary_key=self.schema.primary_key or None)
        normaliser = Normaliser(table, self.schema, self._lookup)
        changes = [parsed.changes for parsed in all_parsed if parsed.changes is not None]
        if not changes:
            return 0
        for row in normaliser.delta(changes).to_pylist():
            weight = row.pop(WEIGHT)
            if weight > 0:
                self.rows += [row] * weight
            for _ in range(-weight):
                del self.rows[[repr(stored) for stored in self.rows].index(repr(row))]
        return sum(rejected.count for rejected in normaliser.rejected)

    def _lookup(self, wanted: Any, names: Sequence[str]) -> Any:
        keys = set(row_keys(wanted.select(names)))
        schema = arrow_schema(weighted(spark_schema(self.schema)))
        plain = pa.Table.from_pylist([{**row, WEIGHT: 1} for row in self.rows], schema=schema)
        stored = pa.table([_as_spark_writes(column.combine_chunks()) for column in plain.columns], schema=schema)
        return stored.filter(pa.array([key in keys for key in row_keys(stored.select(names))], pa.bool_()))


ROW = ColumnType("STRUCT", fields=(("x", ColumnType("BIGINT", False)),))
TWICE = RelationSchema("t", (Column("k", ColumnType("BIGINT", False)), Column("r", ROW)), ("k",))
"""A struct that may be NULL, with a field that may not."""


@settings(max_examples=examples("INGEST_EXAMPLES", 150), deadline=None)
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


@settings(
    max_examples=examples("INGEST_EXAMPLES", 60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(ingested.histories())
def test_each_record_of_any_type_is_taken_or_named_whatever_comes_with_it(
    history: tuple[RelationSchema, list[list[tuple[str, str]]]],
) -> None:
    schema, steps = history
    at_once, one_by_one = Stored(schema), Stored(schema)
    for operations in steps:
        texts = [f'{{"{operation}":{row}}}' for operation, row in operations]
        alone = [parse_ingress(schema, text.encode(), "json") for text in texts]
        bad = [at for at, parsed in enumerate(alone) if parsed.num_errors]
        together = parse_ingress(schema, "\n".join(texts).encode(), "json")
        assert [error.index for error in together.errors] == bad
        assert together.records == len(texts) - len(bad)
        as_array = parse_ingress(schema, f"[{','.join(texts)}]".encode(), "json", {"array": "true"})
        assert as_array.records == (0 if bad else len(texts)), "an array is taken or refused as a whole"
        left_out = at_once.accept(together)
        left_out_alone = sum(one_by_one.accept(parsed) for parsed in alone)
        rows = parse_ingress(schema, _csv(schema, operations).encode(), "csv")
        assert rows.records + rows.num_errors == len([operation for operation, _ in operations if operation == "insert"])
        assert [at_once.accept(rows), one_by_one.accept(rows)] == [0, 0]
        if schema.primary_key:
            assert left_out == left_out_alone
            assert sorted(map(repr, at_once.rows)) == sorted(map(repr, one_by_one.rows))


def _csv(schema: RelationSchema, operations: Sequence[tuple[str, str]]) -> str:
    """The inserts as CSV: nested values as JSON, texts as they are."""
    sink = io.StringIO()
    writer = csv.writer(sink)
    for operation, text in operations:
        if operation == "insert":
            row = json.loads(text)
            cells = [row.get(column.name) for column in schema.columns]
            writer.writerow(
                "" if cell is None else cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells
            )
    # Half a surrogate cannot be written to a file.
    return sink.getvalue().replace("\ud800", "?")


@pytest.mark.parametrize("kind", ["BIGINT", "VARCHAR", "VARIANT"])
@pytest.mark.parametrize("depth", [150, 330, 480, 900, 5000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"x":', "}")])
def test_a_record_that_is_nested_too_deeply_costs_itself_only(kind: str, depth: int, opening: str, closing: str) -> None:
    schema = RelationSchema("t", (Column("k", ColumnType("BIGINT", False)), Column("c", ColumnType(kind))), ("k",))
    deep = opening * depth + "1" + closing * depth
    fits = kind == "VARIANT" and depth == 150
    body = f'{{"insert":{{"k":1,"c":{deep}}}}}\n{{"insert":{{"k":2,"c":null}}}}'.encode()
    parsed = parse_ingress(schema, body, "json")
    assert (parsed.records, [error.index for error in parsed.errors]) == ((2, []) if fits else (1, [0]))
    assert Stored(schema).accept(parsed) == 0
    refused = parse_ingress(schema, b"[" + body.replace(b"\n", b",") + b"]", "json", {"array": "true"})
    assert refused.records == (2 if fits else 0)
    quoted = deep.replace('"', '""')
    parsed = parse_ingress(schema, f'1,"{quoted}"\n2,\n'.encode(), "csv")
    assert (parsed.records, [error.index for error in parsed.errors]) == ((2, []) if fits or kind == "VARCHAR" else (1, [1]))


def test_maps_with_keys_of_any_type() -> None:
    for key, good, twice in (
        (ColumnType("ARRAY", False, component=ColumnType("REAL")), '{"[0]": 1, "[1.5]": 2}', '{"[0]": 1, "[-0.0]": 2}'),
        (ColumnType("STRUCT", False, fields=(("a", ColumnType("DATE")),)), """{"{\\"a\\": \\"2026-01-02\\"}": 1}""", None),
        (ColumnType("DOUBLE", False), '{"0": 1, "1": 2}', '{"0.0": 1, "-0.0": 2}'),
        (ColumnType("ARRAY", False, component=ColumnType("BIGINT")), '{"[]": 1}', '{"null": 1}'),
    ):
        columns = (Column("k", ColumnType("BIGINT", False)), Column("c", ColumnType("MAP", key=key, value=ColumnType("BIGINT"))))
        schema = RelationSchema("t", columns, ("k",))
        parsed = parse_ingress(schema, f'{{"insert": {{"k": 1, "c": {good}}}}}'.encode(), "json")
        assert (parsed.records, parsed.errors) == (1, ())
        assert Stored(schema).accept(parsed) == 0
        if twice is not None:
            refused = parse_ingress(schema, f'{{"insert": {{"k": 1, "c": {twice}}}}}'.encode(), "json")
            assert "has a key twice" in refused.errors[0].message or "key must not be NULL" in refused.errors[0].message


def _as_spark_writes(array: Any) -> Any:
    """The same values, with NULL for each field of a struct that is NULL."""
    if not pa.types.is_struct(array.type):
        return array
    parts = [_as_spark_writes(pc.struct_field(array, [at])) for at in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())


@settings(max_examples=examples("INGEST_EXAMPLES", 100), deadline=None)
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
        parsed = parquet_parser(schema).parse(sink.getvalue())
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
