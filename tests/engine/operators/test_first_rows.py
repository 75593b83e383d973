"""The first rows by order within groups, compared with Spark's order of each type and with the definition of the ranks."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.engine.operators.first_rows import can_rank, first_rows
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.ir.ranking import OrderColumn, RankFunction, Ranking

DAY = datetime.date(2025, 3, 9)
TIMES = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2025, 3, 9), datetime.datetime(1, 1, 1)]
VALUES: dict[str, pa.Array] = {
    "tinyint": pa.array([-128, 127, 0, -1], pa.int8()),
    "bigint": pa.array([-(2**63), 2**63 - 1, 0, -1], pa.int64()),
    "boolean": pa.array([True, False, True]),
    "float": pa.array([0.1, -math.inf, math.nan, math.inf, 0.0, -0.1, 1e-45], pa.float32()),
    "double": pa.array([5e-324, math.nan, -math.inf, math.inf, -1.5, 0.0, 2.0, 1e308, -1e308]),
    "decimal": pa.array([Decimal("-9.99"), Decimal("10.00"), Decimal("9.00"), Decimal("0.00")], pa.decimal128(20, 2)),
    "long decimal": pa.array([Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(1)], pa.decimal128(38, 0)),
    "text": pa.array(["", "a", "B", "a ", "ä", "\ufeff", "\U0001f600", "\uffff", "ab", "\x00", "Z" * 40]),
    "binary": pa.array([b"", b"\x7f", b"\x80", b"\xff", b"\x00", b"\x7f\x00"]),
    "date": pa.array([DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31)]),
    "timestamp": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array(TIMES, pa.timestamp("us")),
    "day-time interval": pa.array([datetime.timedelta(days=-1), datetime.timedelta(0), datetime.timedelta(days=9)]),
}
ORDERS = [(descending, nulls_first) for descending in (False, True) for nulls_first in (False, True)]


@pytest.mark.core
def test_values_of_each_type_are_ordered_as_spark_orders_them(sessions: SparkSessions) -> None:
    count = max(map(len, VALUES.values()))
    # Some values twice, and NULL.
    columns = {f"c{at}": pa.concat_arrays([values, values.slice(0, 2)]) for at, values in enumerate(VALUES.values())}
    padded = {name: pa.concat_arrays([values, pa.nulls(count + 3 - len(values), values.type)]) for name, values in columns.items()}
    table = pa.table(padded).append_column("id", pa.array(range(count + 3), pa.int64()))
    table = pa.concat_tables([table.slice(0, 4), table.slice(4)])
    expected = [
        f"RANK() OVER (ORDER BY {name} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}) AS r_{name}_{at}"
        for name in padded
        for at, (descending, first) in enumerate(ORDERS)
    ]
    frame = sessions.small.createDataFrame(table.combine_chunks())
    rows = frame.selectExpr("id", *expected).orderBy("id").collect()
    for name, kind in zip(padded, VALUES, strict=True):
        for at, (descending, nulls_first) in enumerate(ORDERS):
            ranking = Ranking(RankFunction.RANK, (), (OrderColumn(name, descending, nulls_first),))
            assert can_rank(table.schema, ranking)
            found = first_rows(table, ranking, count + 3)
            places = dict(zip(found.rows.tolist(), found.places.tolist(), strict=True))
            assert [places[row["id"]] for row in rows] == [row[f"r_{name}_{at}"] for row in rows], (kind, descending, nulls_first)


@pytest.mark.parametrize("kind", VALUES)
def test_rows_of_a_key_are_one_group_whatever_its_type(kind: str) -> None:
    values = pa.concat_arrays([VALUES[kind], pa.nulls(1, VALUES[kind].type)])
    different = len(values.unique())
    table = pa.table({"k": pa.chunked_array([values, values, values]), "x": pa.array(range(3 * len(values)), pa.int64())})
    order = (OrderColumn("x", descending=True, nulls_first=False),)
    found = first_rows(table, Ranking(RankFunction.ROW_NUMBER, ("k",), order), 1)
    assert len(found.rows) == different
    firsts = table.take(pa.array(found.rows)).to_pylist()
    last = {repr(row["k"]): row["x"] for row in table.to_pylist()}
    assert {repr(row["k"]): row["x"] for row in firsts} == last


def test_types_of_which_arrow_has_another_order_are_left_to_spark() -> None:
    for kind in (pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.map_(pa.string(), pa.string()), pa.null()):
        order = (OrderColumn("x", descending=False, nulls_first=True),)
        assert not can_rank(pa.schema({"x": kind, "k": pa.int64()}), Ranking(RankFunction.RANK, ("k",), order))
        by_key = (OrderColumn("k", descending=False, nulls_first=True),)
        assert not can_rank(pa.schema({"x": kind, "k": pa.int64()}), Ranking(RankFunction.RANK, ("x",), by_key))


def _expected(rows: Sequence[tuple[Any, ...]], ranking: Ranking, most: int) -> dict[int, int]:
    """The places up to ``most`` by their definition: how many rows, or different ones, come before."""
    names = ("k", "t", "a", "b", "c")

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for part in ranking.order:
            value = row[names.index(part.name)]
            number = 0 if value is None else value if not isinstance(value, str) else "abc".index(value)
            found += [(value is not None) == part.nulls_first, -number if part.descending else number]
        return tuple(found)

    places = {}
    for at, row in enumerate(rows):
        of_group = [(key(other), place) for place, other in enumerate(rows) if other[:2] == row[:2]]
        match ranking.function:
            case RankFunction.ROW_NUMBER:
                before = sum(other < (key(row), at) for other in of_group)
            case RankFunction.RANK:
                before = sum(other < key(row) for other, _ in of_group)
            case RankFunction.DENSE_RANK:
                before = len({other for other, _ in of_group if other < key(row)})
        if before < most:
            places[at] = before + 1
    return places


FEW = st.sampled_from([None, 0, 1])
ORDER = st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans())
FAR = st.sampled_from([None, 0, 1, 1 - 2**63, 2**63 - 1])
"""Numbers too far apart to be made one with another number."""
ROW = st.tuples(FEW, st.sampled_from([None, "x", ""]), FAR, st.sampled_from([None, "a", "b", "c"]), FEW)


@given(
    rows=st.lists(ROW, max_size=25),
    function=st.sampled_from(RankFunction),
    order=st.lists(
        st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), min_size=1, max_size=3, unique_by=lambda o: o[0]
    ),
    most=st.integers(1, 4),
    cut=st.integers(0, 25),
)
def test_first_rows_are_those_of_the_definition(
    rows: list[tuple[Any, ...]], function: RankFunction, order: list[tuple[str, bool, bool]], most: int, cut: int
) -> None:
    kinds = (pa.int32(), pa.string(), pa.int64(), pa.string(), pa.int64())
    whole = pa.table({n: pa.array([r[at] for r in rows], kind) for at, (n, kind) in enumerate(zip("ktabc", kinds, strict=True))})
    # In two pieces, as the rows of two batches are.
    table = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    ranking = Ranking(function, ("k", "t"), tuple(OrderColumn(*part) for part in order))
    found = first_rows(table, ranking, most)
    places = dict(zip(found.rows.tolist(), found.places.tolist(), strict=True))
    assert len(places) == len(found.rows)
    assert places == _expected(rows, ranking, most)
    if not found.equals:
        names = [part.name for part in ranking.order]
        firsts = table.take(pa.array(found.rows)).select(["k", "t", *names]).to_pylist()
        assert len({tuple(row.values()) for row in firsts}) == len(firsts), "equal rows are told of"
