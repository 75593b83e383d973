"""Distinct rows and where each row finds its own."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.engine.execution import distinct_rows as module
from airflow_pipelines.engine.execution.distinct_rows import distinct_rows

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "n": (pa.int64(), st.sampled_from([None, 0, 1, -(2**63), 2**63 - 1])),
    "s": (pa.string(), st.sampled_from([None, "", "a", "a\0", "ä"])),
    "d": (pa.decimal128(38, 2), st.sampled_from([None, Decimal("0.00"), Decimal("-" + "9" * 36 + ".99")])),
    "b": (pa.bool_(), st.sampled_from([None, True, False])),
}


@given(st.data(), st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True), st.integers(0, 60), st.booleans())
def test_each_row_finds_the_row_that_equals_it(data: st.DataObject, names: list[str], count: int, chunked: bool) -> None:
    columns = {name: data.draw(st.lists(COLUMNS[name][1], min_size=count, max_size=count)) for name in names}
    table = pa.table({name: pa.array(values, COLUMNS[name][0]) for name, values in columns.items()})
    if chunked and count > 1:
        table = pa.concat_tables([table.slice(0, count // 2), table.slice(count // 2)])
    found = distinct_rows(table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    if found is None:
        assert 2 * len(set(rows)) > count or count == 0
        return
    distinct = [tuple(row.values()) for row in found.rows.to_pylist()]
    assert len(set(distinct)) == len(distinct)
    assert [distinct[place] for place in found.places] == rows
    assert found.rows.schema == table.schema


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0.0, -0.0] * 9),
        pa.array([[1], [1]] * 9),
        pa.array([{"f": 1}] * 9),
        pa.nulls(9),
        pa.array(["a", "a"] * 9).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_values_that_equal_others_and_may_be_told_apart_are_left_alone(column: pa.Array) -> None:
    assert distinct_rows(pa.table({"x": column})) is None
    assert distinct_rows(pa.table({"n": pa.array([1] * len(column)), "x": column})) is None


def test_rows_without_columns_have_nothing_to_find() -> None:
    assert distinct_rows(pa.table({})) is None


def test_columns_whose_values_are_mostly_distinct_are_given_up_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, draws = datetime(2026, 1, 1), random.Random(7)
    times = pa.array([begin + timedelta(milliseconds=at // 9) for at in range(90_000)], pa.timestamp("us"))
    few = pa.array([draws.randrange(9_000) for _ in range(90_000)])
    many = pa.array(range(90_000))
    # Neighbours share their time, though rows far from each other do not.
    found = distinct_rows(pa.table({"t": times}))
    assert found is not None
    assert found.rows.num_rows == 10_000
    assert distinct_rows(pa.table({"n": few})) is not None
    encoded, sizes = module._encoded, []
    monkeypatch.setattr(module, "_encoded", lambda column: sizes.append(len(column)) or encoded(column))
    assert distinct_rows(pa.table({"n": many})) is None
    assert distinct_rows(pa.table({"t": times, "n": many})) is None
    assert max(sizes) <= 4_000, "all rows were looked at"
