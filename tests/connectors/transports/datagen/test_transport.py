"""Plans one after the other: limits, rates, seeds, and going on from a position."""

from __future__ import annotations

import time
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ChunkInTransaction, InputChunk
from airflow_pipelines.connectors.transports.datagen.options import DatagenOptions
from airflow_pipelines.connectors.transports.datagen.transport import Datagen
from tests.connectors.relations import NESTED, SCALARS, col, relation

NUMBERS = relation(*(col(f"n{place}", "INTEGER") for place in range(5)))


def source(position: dict[str, Any] | None = None, schema: Any = NUMBERS, **options: Any) -> Datagen:
    made = Datagen(DatagenOptions.model_validate(options), schema)
    made.open(position)
    return made


def rows(chunk: InputChunk | None) -> list[dict[str, Any]]:
    return [] if chunk is None or chunk.changes is None else chunk.changes.rows.to_pylist()


def all_of(made: Datagen, most: int = 100_000) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        chunk = made.read(most, 1)
        assert chunk is not None
        assert chunk.records <= most
        found += rows(chunk)
        if chunk.end_of_input:
            return found


def test_one_plan_comes_after_the_other() -> None:
    made = source(plan=[{"limit": 2}, {"limit": 0}, {"limit": 3, "fields": {"n0": {"range": [7, 100]}}}])
    assert [row["n0"] for row in all_of(made)] == [0, 1, 7, 8, 9]


def test_a_row_counts_eight_bytes_for_a_number() -> None:
    chunk = source(plan=[{"limit": 1}]).read(10, 1)
    assert chunk is not None
    assert (chunk.records, chunk.size_bytes, chunk.end_of_input) == (1, 40, True)
    text = source(schema=relation(col("s", "VARCHAR")), plan=[{"limit": 1, "fields": {"s": {"values": ["abc"]}}}]).read(10, 1)
    assert text is not None
    assert text.size_bytes == 3
    assert source(schema=NESTED, plan=[{"limit": 5}]).read(10, 1) is not None


def test_without_a_limit_there_is_no_end() -> None:
    made = source()
    for _ in range(3):
        chunk = made.read(25_000, 1)
        assert chunk is not None
        assert (chunk.records, chunk.end_of_input) == (25_000, False)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_seed_gives_the_same_rows_however_they_are_read(workers: int) -> None:
    fields = {name: {"strategy": "uniform", "null_percentage": 10} for name in SCALARS.column_names if name != "i64"}
    options: dict[str, Any] = {
        "seed": 5,
        "plan": [{"limit": 60, "worker_chunk_size": 7, "fields": fields}, {"limit": 30, "fields": fields}],
    }
    wanted = all_of(source(schema=SCALARS, **options))
    assert all_of(source(schema=SCALARS, workers=workers, **options), most=4) == wanted
    assert all_of(source(schema=SCALARS, **{**options, "seed": 6})) != wanted


def test_a_restart_goes_on_with_the_row_that_would_have_come() -> None:
    plan = [{"limit": 20, "fields": {"n0": {"strategy": "uniform"}}}, {"limit": 5}]
    made = source(plan=plan)
    first = made.read(8, 1)
    # Read ahead, and lost with the process.
    ahead = made.read(100, 1)
    assert first is not None
    again = source(first.position, plan=plan)
    rest = all_of(again)
    assert rest[:12] == rows(ahead)
    assert len(rest) == 17
    assert all_of(source({"seed": first.position["seed"], "plan": 2, "row": 0}, plan=plan)) == []


def test_a_rate_limits_rows_in_chunks() -> None:
    made = source(plan=[{"rate": 40, "worker_chunk_size": 4, "limit": 12}])
    begun = time.monotonic()
    first = made.read(1000, 0)
    assert first is not None
    assert first.records == 4
    assert made.read(1000, 0.01) is None
    assert len(all_of(made)) == 8
    assert time.monotonic() - begun >= 0.19


def test_a_transaction_has_so_many_rows_and_the_last_one_what_is_left() -> None:
    made = source(plan=[{"limit": 5}, {"limit": 2}], transaction_size=3)
    chunks = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = made.read(2, 1.0)
        assert chunk is not None
        chunks.append(chunk)
    more, last = ChunkInTransaction.MORE, ChunkInTransaction.LAST
    assert [(chunk.records, chunk.transaction) for chunk in chunks] == [
        (2, more), (1, last), (2, more), (1, last), (1, last),
    ]  # fmt: skip


def test_closing_ends_a_wait_at_once() -> None:
    made = source(plan=[{"rate": 1}])
    assert made.read(10, 1) is not None
    made.close()
    begun = time.monotonic()
    assert made.read(10, 5) is None
    assert time.monotonic() - begun < 2
