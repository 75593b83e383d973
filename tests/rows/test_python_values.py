"""Arrow's own conversion is the model of :func:`python_values`: the same objects, and the same errors, for columns of any type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.rows.python_values import MapsAsDicts, python_rows, python_values

_LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(max_size=5),
    pa.large_string(): st.text(max_size=5),
    pa.string_view(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.large_binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("s"): st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    pa.timestamp("ns"): st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    pa.timestamp("us", "Europe/Berlin"): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    pa.time64("us"): st.times(),
    pa.time32("s"): st.times().map(lambda time: time.replace(microsecond=0)),
    pa.duration("us"): st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000)),
    pa.decimal128(38, 9): st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**20), max_value=10**20),
    pa.decimal128(10, 0): st.integers(-(10**9), 10**9).map(Decimal),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["pear", "plum"]),
}
Typed = tuple[pa.DataType, st.SearchStrategy[Any]]


def _lists(item: Typed) -> Typed:
    kind, values = item
    return pa.list_(kind), st.lists(st.none() | values, max_size=3)


def _maps(item: Typed) -> Typed:
    kind, values = item
    return pa.map_(pa.string(), kind), st.dictionaries(st.text(max_size=3), st.none() | values, max_size=3)


def _structs(items: list[Typed]) -> Typed:
    fields = {f"f{number}": item for number, item in enumerate(items)}
    kind = pa.struct([(name, kind) for name, (kind, _) in fields.items()])
    return kind, st.fixed_dictionaries({name: st.none() | values for name, (_, values) in fields.items()})


def _nested(items: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return items.map(_lists) | items.map(_maps) | st.lists(items, max_size=3).map(_structs)


_TYPES = st.recursive(st.sampled_from(list(_LEAVES.items())), _nested, max_leaves=4)


@st.composite
def _columns(draw: st.DrawFn) -> pa.ChunkedArray:
    kind, values = draw(_TYPES)
    chunks = []
    for _ in range(draw(st.integers(0, 2))):
        array = pa.array(draw(st.lists(st.none() | values, min_size=9, max_size=30)), kind)
        start = draw(st.integers(0, len(array)))
        chunks.append(array.slice(start, draw(st.integers(0, len(array)))))
    return pa.chunked_array(chunks, kind)


@given(_columns(), st.sampled_from([None, "strict"]))
def test_a_column_becomes_the_objects_that_arrow_makes_of_it(column: pa.ChunkedArray, maps: MapsAsDicts) -> None:
    assert repr(python_values(column, maps)) == repr(column.to_pylist(maps_as_pydicts=maps))
    for chunk in column.chunks:
        assert repr(python_values(chunk, maps)) == repr(chunk.to_pylist(maps_as_pydicts=maps))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2_932_897] * 10, pa.date32()),
        pa.array([-(2**40)] * 10, pa.timestamp("s")),
        pa.array([2**60] * 10, pa.timestamp("us")),
        pa.array([0] * 9 + [-(2**63)], pa.timestamp("us")),
        pa.Array.from_buffers(pa.string(), 10, [None, pa.array(range(11), pa.int32()).buffers()[1], pa.py_buffer(b"\xff" * 10)]),
        pa.array([[("a", 1), ("a", 2)]] * 10, pa.map_(pa.string(), pa.int64())),
        pa.StructArray.from_arrays([pa.array(range(10))] * 2, ["a", "a"]),
    ],
    ids=["date", "seconds", "microseconds", "least number", "text", "map", "struct"],
)
def test_a_column_without_objects_fails_as_it_does_with_arrow(column: pa.Array) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 (each type has its own)
        column.to_pylist(maps_as_pydicts="strict")
    with pytest.raises(type(expected.value)) as actual:
        python_values(column, "strict")
    assert str(actual.value) == str(expected.value)


def test_lists_belong_to_the_caller() -> None:
    column = pa.array([[1, 2], [3]] * 10)
    python_values(column)[0].append(7)
    assert python_values(column)[0] == [1, 2]


def test_rows_without_columns_are_empty() -> None:
    assert python_rows(pa.table({"n": [1, 2]}).select([])) == [(), ()]
