"""Rows that are added up by group in the driver, next to what Python says of the same rows; without Spark."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.execution.ways import accepted
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.operators import column_totals as tested
from airflow_pipelines.engine.operators.column_totals import ColumnTotals
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator, Aggregate, ColumnTotal, Total
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source

COLUMNS: Mapping[str, DataType] = {
    "k": StringType(),
    "x": DoubleType(),
    "n": IntegerType(),
    "b": LongType(),
    "d": DecimalType(27, 2),
    "t": TimestampNTZType(),
    "l": ArrayType(IntegerType()),
}
TYPES: Mapping[str, DataType] = {
    "BIGINT": LongType(),
    "STRING": StringType(),
    "TIMESTAMP_NTZ": TimestampNTZType(),
    "DECIMAL(38,0)": DecimalType(38, 0),
    "DECIMAL(38,2)": DecimalType(38, 2),
    "DECIMAL(27,2)": DecimalType(27, 2),
}
SCHEMA = weighted(StructType([StructField(name, kind) for name, kind in COLUMNS.items()]))
DEFAULT = Limits()
MOST, LEAST = 2**63 - 1, -(2**63)
LARGE = Decimal("9" * 25 + ".99")
ROWS: Sequence[tuple[Any, ...]] = (
    ("a", 0.0, 1, MOST, LARGE, datetime(2026, 1, 1), [1]),
    ("a", 0.0, 2**31 - 1, MOST, LARGE, datetime(1, 1, 1), None),
    ("a", 0.0, 2**31 - 1, MOST, -LARGE, None, []),
    ("a", math.nan, None, LEAST, None, None, None),
    ("a", math.nan, None, None, None, None, None),
    (None, 0.0, -(2**31), LEAST, LARGE, datetime(9999, 12, 31, 23, 59, 59, 999999), None),
    (None, 0.0, -(2**31), LEAST, LARGE, None, None),
    ("", None, 0, 0, Decimal("0.00"), None, None),
    ("b", 1.5, None, None, None, None, None),
)
ACCUMULATORS = (
    Accumulator("a0", "BIGINT", Expression(""), column_total=ColumnTotal(Total.ROWS)),
    Accumulator("a1", "BIGINT", Expression(""), column_total=ColumnTotal(Total.VALUES, Expression("c_n"))),
    Accumulator("a2", "BIGINT", Expression(""), column_total=ColumnTotal(Total.SUM, Expression("c_n"))),
    Accumulator("a3", "DECIMAL(38,0)", Expression(""), column_total=ColumnTotal(Total.SUM, Expression("c_b"))),
    Accumulator("a4", "DECIMAL(38,2)", Expression(""), column_total=ColumnTotal(Total.SUM, Expression("c_d"))),
    Accumulator("a5", "TIMESTAMP_NTZ", Expression(""), merge=Merge.MIN, column_total=ColumnTotal(Total.MIN, Expression("c_t"))),
    Accumulator("a6", "DECIMAL(27,2)", Expression(""), merge=Merge.MAX, column_total=ColumnTotal(Total.MAX, Expression("c_d"))),
    Accumulator("a7", "STRING", Expression(""), merge=Merge.MAX, column_total=ColumnTotal(Total.MAX, Expression("c_k"))),
)
BELOW = Select((Source("r", Scan("r", tuple(COLUMNS))),), tuple(Item(f"i_{name}", Expression(f"`r`.`{name}`")) for name in COLUMNS))
INPUT = Select((Source("s", BELOW),), tuple(Item(f"c_{name}", Expression(f"`s`.`i_{name}`")) for name in COLUMNS))


def aggregate(
    keys: Sequence[str] = ("k",), accumulators: Sequence[Accumulator] = ACCUMULATORS, rows: Select = INPUT
) -> tuple[Aggregate, StructType]:
    items = tuple(Item(f"k{at}", Expression(f"c_{key}" if key in COLUMNS else key)) for at, key in enumerate(keys))
    node = Aggregate(rows, items, ("string",) * len(items), (), tuple(accumulators), ())
    columns = [StructField(f"k{at}", COLUMNS.get(key, LongType())) for at, key in enumerate(keys)]
    columns += [StructField(each.name, TYPES[each.type]) for each in accumulators]
    return node, weighted(StructType(columns))


def delta(rows: Sequence[tuple[Any, ...]] = ROWS, weight: int = 1) -> Batch:
    arrow = arrow_schema(SCHEMA)
    columns = zip(*((*row, weight) for row in rows), strict=True)
    arrays = [pa.array(values, column.type) for values, column in zip(columns, arrow, strict=True)]
    return Batch.in_memory(SCHEMA, pa.table(arrays, schema=arrow))


def column_totals(node: Aggregate, schema: StructType, context: Context) -> Batch | None:
    totals = ColumnTotals.of(node)
    if totals is None or totals.needs_spark or totals.relation is None:
        return None
    return accepted(lambda: tested.column_totals(totals, context.relations[totals.relation].delta, schema, context))


@pytest.fixture
def store(tmp_path: Path) -> BatchStore:
    return BatchStore(tmp_path)


def context(store: BatchStore, *batches: Batch, limits: Limits = DEFAULT) -> Context:
    relations = {"r": RelationVersions(Trace(SCHEMA), batches)}
    return Context(cast(Any, None), cast(Any, None), store, relations, limits=limits)


def in_files(store: BatchStore, batch: Batch) -> Batch:
    return Batch.in_files(SCHEMA, batch.rows, store.write(batch.table), store, batch.insert_only)


def groups(batch: Batch | None) -> dict[Any, tuple[Any, ...]]:
    assert batch is not None
    assert not batch.files
    rows = [tuple(row.values()) for row in batch.to_arrow().to_pylist()]
    assert len({repr(row[0]) for row in rows}) == len(rows), "a group comes once"
    return {"NaN" if row[0] != row[0] else row[0]: row[1:] for row in rows}


def expected(rows: Sequence[tuple[Any, ...]] = ROWS) -> dict[Any, tuple[Any, ...]]:
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)

    def of(members: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        k, _, n, b, d, t, _ = ([value for value in values if value is not None] for values in zip(*members, strict=True))
        sums = len(n), sum(n), sum(b), sum(d, Decimal(0))
        return (len(members), *sums, min(t, default=None), max(d, default=None), max(k, default=None), len(members))

    return {key: of(members) for key, members in found.items()}


@pytest.mark.parametrize("at_a_time", [1, 2, 100])
@pytest.mark.parametrize("files", [False, True])
def test_sums_beyond_64_bits_and_groups_without_values(
    store: BatchStore, monkeypatch: pytest.MonkeyPatch, files: bool, at_a_time: int
) -> None:
    monkeypatch.setattr(tested, "_ROWS_AT_A_TIME", at_a_time)
    halves = [delta(ROWS[:4]), delta(ROWS[4:])]
    batches = [in_files(store, halves[0]), halves[1]] if files else halves
    node, schema = aggregate()
    assert groups(column_totals(node, schema, context(store, *batches))) == expected()


def test_keys_of_floating_point_numbers_are_one_zero_one_nan_and_null(store: BatchStore) -> None:
    node, schema = aggregate(("x",), ACCUMULATORS[:1])
    assert groups(column_totals(node, schema, context(store, delta()))) == {0.0: (5, 5), "NaN": (2, 2), None: (1, 1), 1.5: (1, 1)}


def test_only_keys(store: BatchStore) -> None:
    node, schema = aggregate(("k", "n"), ())
    found = column_totals(node, schema, context(store, delta()))
    assert found is not None
    assert sorted(found.to_arrow().to_pylist(), key=repr) == sorted(
        [
            {"k0": "a", "k1": 1, WEIGHT: 1},
            {"k0": "a", "k1": 2**31 - 1, WEIGHT: 2},
            {"k0": "a", "k1": None, WEIGHT: 2},
            {"k0": None, "k1": -(2**31), WEIGHT: 2},
            {"k0": "", "k1": 0, WEIGHT: 1},
            {"k0": "b", "k1": None, WEIGHT: 1},
        ],
        key=repr,
    )


@pytest.mark.parametrize(
    ("limits", "is_for_spark"),
    [
        (Limits(read_rows=len(ROWS)), False),
        (Limits(read_rows=len(ROWS) - 1), True),
        (Limits(driver_rows=4), False),
        (Limits(driver_rows=3), True),
        (Limits(driver_bytes=3), True),
    ],
)
def test_too_many_rows_or_groups_are_for_spark(store: BatchStore, limits: Limits, is_for_spark: bool) -> None:
    node, schema = aggregate()
    assert (column_totals(node, schema, context(store, delta(), limits=limits)) is None) is is_for_spark


@pytest.mark.parametrize(
    ("keys", "accumulators", "rows"),
    [
        pytest.param((), ACCUMULATORS, INPUT, id="no keys"),
        pytest.param(("c_n % 2",), ACCUMULATORS, INPUT, id="a key that is computed"),
        pytest.param(("l",), ACCUMULATORS[:1], INPUT, id="a key that Arrow cannot group by"),
        pytest.param(("k",), (Accumulator("a0", "BIGINT", Expression("SUM(c_n * 2)")),), INPUT, id="a value that is computed"),
        pytest.param(
            ("k",),
            ACCUMULATORS,
            Select(INPUT.sources, tuple(Item(item.name, Expression(f"{item.text} + 1")) for item in INPUT.items)),
            id="a column that is computed",
        ),
        pytest.param(("k",), ACCUMULATORS, Select(INPUT.sources, INPUT.items, where=WhereClause("`s`.`i_n` > 0")), id="a filter"),
        pytest.param(("k",), ACCUMULATORS, Select(INPUT.sources * 2, INPUT.items), id="a join"),
        pytest.param(
            ("k",), ACCUMULATORS, Select(INPUT.sources, INPUT.items, laterals=(LateralView("LATERAL VIEW"),)), id="an unnesting"
        ),
    ],
)
def test_what_needs_an_expression_is_for_spark(
    store: BatchStore, keys: Sequence[str], accumulators: Sequence[Accumulator], rows: Select
) -> None:
    node, schema = aggregate(keys, accumulators, rows)
    assert column_totals(node, schema, context(store, delta())) is None


def test_rows_that_go_and_rows_that_come_several_times(store: BatchStore) -> None:
    node, schema = aggregate(accumulators=ACCUMULATORS[:5])
    first = groups(column_totals(node, schema, context(store, delta(ROWS[:5]), delta(ROWS[2:7], -1), delta(ROWS[5:], 2))))

    def sums(rows: Sequence[tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
        return {key: (*values[:5], values[-1]) for key, values in expected(rows).items()}

    parts = [(1, sums(ROWS[:5])), (-1, sums(ROWS[2:7])), (2, sums(ROWS[5:]))]
    nothing = (0, 0, 0, 0, Decimal("0.00"), 0)
    for key in dict.fromkeys(row[0] for row in ROWS):
        totals = [[weight * value for value in part.get(key, nothing)] for weight, part in parts]
        assert first[key] == tuple(map(sum, zip(*totals, strict=True)))
    assert column_totals(node, schema, context(store, delta(ROWS, 30_000))) is None, "too many for few rows"


def _windows(at: datetime | None, length: int, slide: int) -> list[tuple[datetime, datetime]]:
    """The windows of a time: each starts at a multiple of the slide in seconds since the epoch."""
    if at is None:
        return []
    number = (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    last = number - number % (slide * 10**6)
    starts = [last - before * slide * 10**6 for before in range(-(-length // slide))]
    times = [datetime(1970, 1, 1) + timedelta(microseconds=start) for start in starts if number < start + length * 10**6]
    return [(start, start + timedelta(seconds=length)) for start in times]


@pytest.mark.parametrize(("length", "slide"), [(10, 10), (10, 2), (7, 3), (3, 2)])
def test_rows_are_in_all_of_their_windows(store: BatchStore, length: int, slide: int) -> None:
    draw = random.Random(length)
    moments = [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2026, 1, 1, 0, 0, 4), None]
    gains = [
        (draw.choice(["a", "b", None]), None, draw.choice([None, 1, 2**31 - 1]), draw.choice([MOST, None]), None, at, None)
        for at in [*moments, *(datetime(2026, 1, 1) + timedelta(microseconds=draw.randrange(2 * 10**7)) for _ in range(60))]
    ]
    accumulators = (*ACCUMULATORS[:4], *ACCUMULATORS[5:6])
    node, schema = aggregate(("k", f"window(c_t, '{length} seconds', '{slide} seconds')"), accumulators)
    kind = StructType([StructField("start", TimestampNTZType()), StructField("end", TimestampNTZType())])
    schema = StructType([schema.fields[0], StructField("k1", kind), *schema.fields[2:]])
    expected: dict[tuple[Any, ...], list[Any]] = {}
    for weight, rows in ((1, gains), (-1, gains[::3])):
        for k, _, n, b, _, at, _ in rows:
            for window in _windows(at, length, slide):
                sums = expected.setdefault((k, *window), [0, 0, 0, 0, []])
                sums[:4] = (
                    sums[0] + weight,
                    sums[1] + weight * (n is not None),
                    sums[2] + weight * (n or 0),
                    sums[3] + weight * (b or 0),
                )
                sums[4].append(at)
    found = column_totals(node, schema, context(store, delta(gains), delta(gains[::3], -1)))
    assert found is not None
    own = {
        (row["k0"], row["k1"]["start"], row["k1"]["end"]): [*(row[f"a{at}"] for at in range(4)), row["a5"], row[WEIGHT]]
        for row in found.to_arrow().to_pylist()
    }
    assert own == {key: [*sums[:4], min(sums[4]), sums[0]] for key, sums in expected.items()}
    assert found.rows == len(own), "a group comes once"


@pytest.mark.parametrize(("limits", "is_for_spark"), [(Limits(read_rows=25), False), (Limits(read_rows=24), True)])
def test_groups_in_too_many_windows_are_for_spark(store: BatchStore, limits: Limits, is_for_spark: bool) -> None:
    node, schema = aggregate(("window(c_t, '10 seconds', '2 seconds')",), ACCUMULATORS[:1])
    kind = StructType([StructField("start", TimestampNTZType()), StructField("end", TimestampNTZType())])
    schema = StructType([StructField("k0", kind), *schema.fields[1:]])
    # Five groups, in five windows each.
    rows = [("a", None, None, None, None, datetime(2026, 1, 1, 0, 0, 2 * at), None) for at in range(5)]
    found = column_totals(node, schema, context(store, delta(rows), limits=limits))
    assert (found is None) is is_for_spark
