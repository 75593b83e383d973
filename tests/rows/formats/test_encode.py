"""Rows as text, and back again."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.formats.csv import CsvParser
from airflow_pipelines.rows.formats.encode import encode_csv, encode_rows
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import col, relation
from tests.tiers import examples


def encoded(value: Any, kind: pa.DataType) -> str:
    (text,) = encode_rows(pa.table({"x": pa.array([value], kind)}))
    assert text.startswith('{"x":')
    return text[5:-1]


def test_each_type_has_its_form() -> None:
    assert encoded(Decimal("97"), pa.decimal128(5, 2)) == "97.00"
    assert encoded(Decimal("0.0000000001"), pa.decimal128(38, 10)) == "0.0000000001"
    assert encoded(math.nan, pa.float64()) == encoded(math.inf, pa.float64()) == encoded(-math.inf, pa.float32()) == "null"
    assert encoded(0.1, pa.float32()) == "0.1"
    assert encoded(1e300, pa.float64()) == "1e+300"
    assert encoded(dt.date(2025, 1, 2), pa.date32()) == '"2025-01-02"'
    assert encoded(dt.datetime(2025, 1, 2, 3, 4, 5), pa.timestamp("us")) == '"2025-01-02 03:04:05"'
    assert encoded(dt.datetime(2025, 1, 2, 3, 4, 5, 60), pa.timestamp("us")) == '"2025-01-02 03:04:05.000060"'
    assert (
        encoded(dt.datetime(2025, 1, 2, 3, 4, 5, tzinfo=dt.UTC), pa.timestamp("us", "Europe/Rome")) == '"2025-01-02 03:04:05+00:00"'
    )
    for unit in ("us", "ns"):
        assert encoded(dt.time(3, 4, 5), pa.time64(unit)) == '"03:04:05"'
        assert encoded(dt.time(3, 4, 0, 250_000), pa.time64(unit)) == '"03:04:00.25"'
    assert encoded(dt.time(3, 40), pa.time32("s")) == '"03:40:00"'
    assert encoded(b"\x00\xff", pa.binary()) == "[0,255]"
    assert encoded('é"\n', pa.string()) == '"é\\"\\n"'
    assert encoded([(5, Decimal(1)), (None, None)][:1], pa.map_(pa.int64(), pa.decimal128(5, 1))) == '{"5":1.0}'
    assert (
        encoded({"a": [1, None], "b": None}, pa.struct([("a", pa.list_(pa.int8())), ("b", pa.string())]))
        == '{"a":[1,null],"b":null}'
    )
    assert encoded(True, pa.bool_()) == "true"
    assert encoded(None, pa.null()) == encoded(None, pa.string()) == "null"
    assert encoded("x", pa.dictionary(pa.int8(), pa.string())) == '"x"'


def test_slices_of_nested_columns() -> None:
    table = pa.table(
        {
            "l": pa.array([[1], None, [2, 3], []], pa.list_(pa.int8())),
            "m": pa.array([[("a", 1)], None, [("b", 2)], []], pa.map_(pa.string(), pa.int8())),
            "s": pa.array([{"x": 1}, None, {"x": None}, {"x": 2}], pa.struct([("x", pa.int8())])),
        }
    )
    assert list(encode_rows(table.slice(2, 2))) == ['{"l":[2,3],"m":{"b":2},"s":{"x":null}}', '{"l":[],"m":{},"s":{"x":2}}']
    assert list(encode_rows(table.slice(1, 1))) == ['{"l":null,"m":null,"s":null}']


def test_csv_fields() -> None:
    table = pa.table(
        {"a": ['x,"y"', None, "null"], "b": pa.array([[1], None, []], pa.list_(pa.int8())), "d": [dt.date(2025, 1, 2), None, None]}
    )
    assert list(encode_csv(table)) == ['"x,""y""",[1],2025-01-02\n', ",,\n", "null,[],\n"]


# Round trips

_MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALAR_VALUES: dict[str, tuple[ColumnType, st.SearchStrategy[Any]]] = {
    "b": (ColumnType("BOOLEAN"), st.booleans()),
    "i8": (ColumnType("TINYINT"), st.integers(-128, 127)),
    "i16": (ColumnType("SMALLINT"), st.integers(-(2**15), 2**15 - 1)),
    "i32": (ColumnType("INTEGER"), st.integers(-(2**31), 2**31 - 1)),
    "i64": (ColumnType("BIGINT"), st.integers(-(2**63), 2**63 - 1)),
    "r": (ColumnType("REAL"), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "f": (ColumnType("DOUBLE"), st.floats(allow_nan=False, allow_infinity=False)),
    "dec": (ColumnType("DECIMAL", precision=38, scale=9), st.decimals(-(10**28), 10**28, places=9, allow_nan=False)),
    "s": (ColumnType("VARCHAR"), _TEXT),
    "d": (ColumnType("DATE"), st.dates()),
    "t": (ColumnType("TIME"), st.times()),
    "ts": (ColumnType("TIMESTAMP"), _MOMENTS),
    "tz": (ColumnType("TIMESTAMP_TZ"), _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    "u": (ColumnType("UUID"), st.uuids().map(str)),
    "bin": (ColumnType("VARBINARY"), st.binary(max_size=5)),
}
# A VARIANT's decimal has no zeros at its end, so that one without a fraction is written like an integer.
_FRACTIONS = st.decimals(-(10**10), 10**10, places=3, allow_nan=False).filter(lambda value: value % 1)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | _TEXT | _FRACTIONS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


def _kinds() -> st.SearchStrategy[tuple[ColumnType, st.SearchStrategy[Any]]]:
    scalars = st.sampled_from(sorted(SCALAR_VALUES)).map(lambda name: SCALAR_VALUES[name])

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            inner.map(lambda pair: (ColumnType("ARRAY", component=pair[0]), st.lists(st.none() | pair[1], max_size=3))),
            st.tuples(st.sampled_from(["i8", "s", "d", "dec", "u"]), inner).map(
                lambda pair: (
                    ColumnType("MAP", key=SCALAR_VALUES[pair[0]][0], value=pair[1][0]),
                    st.dictionaries(SCALAR_VALUES[pair[0]][1], st.none() | pair[1][1], max_size=3).map(
                        lambda entries: list(entries.items())
                    ),
                )
            ),
            st.tuples(inner, inner).map(
                lambda pair: (
                    ColumnType("STRUCT", fields=(("x", pair[0][0]), ("y", pair[1][0]))),
                    st.fixed_dictionaries({"x": st.none() | pair[0][1], "y": st.none() | pair[1][1]}),
                )
            ),
        )

    variants = st.just((ColumnType("VARIANT"), _JSON.filter(lambda value: value is not None).map(variant.encode)))
    return st.one_of(scalars, variants, st.recursive(scalars, nested, max_leaves=4))


@st.composite
def tables(draw: st.DrawFn) -> tuple[RelationSchema, pa.Table]:
    kinds = draw(st.lists(_kinds(), min_size=1, max_size=4))
    schema = relation(*(col(f"c{number}", kind) for number, (kind, _) in enumerate(kinds)))
    count = draw(st.integers(1, 3))
    columns = [draw(st.lists(st.none() | values, min_size=count, max_size=count)) for _, values in kinds]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema.arrow, strict=True)]
    return schema, pa.Table.from_arrays(arrays, schema=schema.arrow)


def test_the_greatest_real_comes_back() -> None:
    schema = relation(col("r", "REAL"))
    table = pa.table({"r": pa.array([3.4028234663852886e38, -3.4028234663852886e38], pa.float32())})
    parsed = JsonParser(schema, JsonOptions(update_format="raw")).parse("\n".join(encode_rows(table)).encode())
    assert parsed.changes is not None
    assert parsed.changes.rows.column("r").to_pylist() == table.column("r").to_pylist()
    parsed = CsvParser(schema).parse("".join(encode_csv(table)).encode())
    assert parsed.changes is not None
    assert parsed.changes.rows.column("r").to_pylist() == table.column("r").to_pylist()


@settings(max_examples=examples("FORMAT_EXAMPLES", 80), deadline=None)
@given(tables())
def test_json_gives_the_same_rows_back(case: tuple[RelationSchema, pa.Table]) -> None:
    schema, table = case
    lines = list(encode_rows(table))
    assert all(isinstance(json.loads(line), dict) for line in lines)
    parsed = JsonParser(schema, JsonOptions(update_format="raw")).parse("\n".join(lines).encode())
    assert parsed.errors == ()
    assert parsed.changes is not None
    assert parsed.changes.rows.drop_columns(["__op"]).to_pylist() == table.to_pylist()


@settings(max_examples=examples("FORMAT_EXAMPLES", 80), deadline=None)
@given(tables())
def test_csv_gives_the_same_rows_back_but_for_null_strings(case: tuple[RelationSchema, pa.Table]) -> None:
    schema, table = case
    for place, column in enumerate(schema.columns):
        if column.type.name == "VARCHAR":
            # CSV cannot tell NULL from the empty string, nor from the JSON null.
            table = table.set_column(
                place, table.schema.field(place), pa.array([value or "" for value in table.column(place).to_pylist()])
            )
        if column.type.name == "VARIANT":
            values = [None if value == variant.encode(None) else value for value in table.column(place).to_pylist()]
            table = table.set_column(place, table.schema.field(place), pa.array(values, schema.arrow.field(place).type))
    text = "".join(encode_csv(table))
    if len(schema.columns) == 1:
        # A single empty field is an empty line, which CSV readers skip.
        text = "".join((line if line != "\n" else '""\n') for line in encode_csv(table))
    parsed = CsvParser(schema).parse(text.encode())
    assert parsed.errors == ()
    assert parsed.changes is not None
    assert parsed.changes.rows.drop_columns(["__op"]).to_pylist() == table.to_pylist()
