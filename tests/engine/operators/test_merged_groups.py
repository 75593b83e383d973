"""Changes of groups and what was stored of them, merged in the driver; without Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DataType, DecimalType, DoubleType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.ways import accepted
from airflow_pipelines.engine.operators.merged_groups import MergedGroups, merged_groups
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.zsets import WEIGHT, Merge
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator
from airflow_pipelines.sql.plan.ir.expression import Expression

KEYS: Mapping[str, DataType] = {"k0": StringType(), "k1": DoubleType()}
ACCUMULATORS = (
    Accumulator("a0", "BIGINT", Expression("")),
    Accumulator("a1", "DECIMAL(38,2)", Expression("")),
    Accumulator("a2", "STRING", Expression(""), merge=Merge.MIN),
    Accumulator("a3", "BIGINT", Expression(""), merge=Merge.MAX),
    Accumulator(WEIGHT, "BIGINT", Expression("")),
)
KINDS: Mapping[str, DataType] = {"a0": LongType(), "a1": DecimalType(38, 2), "a2": StringType(), "a3": LongType()}
MOST = 2**63 - 1


def batch(*rows: tuple[Any, ...], keys: Mapping[str, DataType] = KEYS) -> Batch:
    schema = weighted(StructType([StructField(name, kind) for name, kind in {**keys, **KINDS}.items()]))
    arrow = arrow_schema(schema)
    columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(arrow)]
    return Batch.in_memory(schema, pa.table(columns, schema=arrow))


def cents(whole: int) -> Decimal:
    return Decimal(f"{whole}.00")


def merged(change: Batch, *stored: Batch, keys: Sequence[str] = tuple(KEYS)) -> MergedGroups | None:
    return accepted(lambda: merged_groups(change, stored, keys, ACCUMULATORS))


def groups(found: MergedGroups | None) -> dict[str, tuple[tuple[Any, ...], ...]]:
    """By the key what a group was, and what it becomes."""
    assert found is not None
    keys = pa.table(dict(found.keys)).to_pylist()
    versions = [pa.table(dict(part)).to_pylist() for part in (found.before, found.after)]
    by_key = {
        repr(tuple(key.values())): tuple(tuple(row.values()) for row in rows) for key, *rows in zip(keys, *versions, strict=True)
    }
    assert len(by_key) == len(keys), "a group comes once"
    return by_key


def test_each_touched_group_has_what_it_was_and_what_it_becomes() -> None:
    change = batch(
        ("a", 1.0, 2, cents(5), "m", None, 2),
        (None, math.nan, -1, cents(-3), "b", 7, -1),
        ("new", 1.0, 0, cents(0), None, None, 1),
    )
    stored = (
        batch(
            ("a", 1.0, 10, cents(100), "n", 3, 5), ("a", None, 99, cents(99), "z", 99, 99), (None, math.nan, 1, cents(4), "c", 1, 1)
        ),
        batch(("a", 1.0, -4, cents(-50), "l", 2, -1), ("", 1.0, 99, cents(99), "z", 99, 99)),
    )
    assert groups(merged(change, *stored)) == {
        repr(("a", 1.0)): ((6, cents(50), "l", 3, 4), (8, cents(55), "l", 3, 6)),
        repr((None, math.nan)): ((1, cents(4), "c", 1, 1), (0, cents(1), "b", 7, 0)),
        repr(("new", 1.0)): ((0, cents(0), None, None, 0), (0, cents(0), None, None, 1)),
    }


@pytest.mark.parametrize("weight", [1, -1])
def test_a_sum_that_could_be_too_large_is_left_to_spark(weight: int) -> None:
    small, large = (weight * number for number in (MOST // 2 - 1, MOST // 2))
    digits = weight * (10**36 // 2)
    for fits, first in (
        (True, (small, cents(0), None, MOST, 1)),
        (False, (large, cents(0), None, 0, 1)),
        (True, (0, Decimal(digits - weight), None, 0, 1)),
        (False, (0, Decimal(digits), None, 0, 1)),
    ):
        other = (0, cents(0), None, 0, 1)
        for change, stored in ((first, other), (other, first)):
            assert (merged(batch(("a", 1.0, *change)), batch(("a", 1.0, *stored))) is not None) is fits


def test_sums_of_nearly_all_digits() -> None:
    most = Decimal(10**36 // 2 - 1)
    found = groups(merged(batch(("a", 1.0, 0, most, None, 0, 1)), batch(("a", 1.0, 0, most, None, 0, 1))))
    assert found[repr(("a", 1.0))][1] == (0, Decimal(10**36 - 2), None, 0, 2)


def test_groups_that_arrow_does_not_know_are_left_to_spark() -> None:
    row = (0, cents(0), None, 0, 1)
    nested = {"k0": ArrayType(LongType())}
    assert merged(batch(([1], *row), keys=nested), batch(([1], *row), keys=nested), keys=("k0",)) is None
    assert merged(batch(row, keys={}), batch(row, keys={}), keys=()) is None


def test_keys_that_are_structs_in_memory_and_in_files(tmp_path: Path) -> None:
    kind = StructType([StructField("start", LongType()), StructField("name", StringType())])
    keys: Mapping[str, DataType] = {"k0": kind}
    nothing = (cents(0), None, None)
    there = [{"start": 1, "name": "a"}, {"start": 1, "name": None}, {"start": None, "name": None}, None]
    change = batch(*((key, 1, *nothing, 1) for key in there), keys=keys)
    store = BatchStore(tmp_path)
    memory = batch(
        *((key, 10 * at, *nothing, at) for at, key in enumerate(there, 1)), ({"start": 2, "name": "a"}, 9, *nothing, 9), keys=keys
    )
    file = Batch.in_files(memory.schema, memory.rows, store.write(memory.table), store, memory.insert_only)
    for stored in ((memory, memory), (file, memory), (file, file)):
        found = merged(change, *stored, keys=("k0",))
        assert found is not None
        assert found.keys["k0"].to_pylist() == there
        assert found.before["a0"].to_pylist() == [20, 40, 60, 80]
        assert found.after["a0"].to_pylist() == [21, 41, 61, 81]
        assert found.after[WEIGHT].to_pylist() == [3, 5, 7, 9]


def test_groups_of_which_nothing_is_stored() -> None:
    found = groups(merged(batch(("a", -0.0, 3, cents(1), "m", 7, 2))))
    assert found == {repr(("a", -0.0)): ((0, cents(0), None, None, 0), (3, cents(1), "m", 7, 2))}
    assert groups(merged(batch(("a", 0.0, 3, cents(1), "m", 7, 2)), batch(("a", -0.0, 1, cents(1), None, None, 1))))[
        repr(("a", 0.0))
    ] == ((1, cents(1), None, None, 1), (4, cents(2), "m", 7, 3))
