"""What blocks compute for many rows: over distinct values, in pieces, by several threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.execution import row_queries as module
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.execution.selected_rows import select_rows
from airflow_pipelines.engine.execution.ways import accepted
from airflow_pipelines.engine.limits import Limits, PlanLimits
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.computed_columns import computed_columns
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.ir.version import Version
from tests.engine.asked import asked_of_spark

SCHEMA = weighted(
    StructType(
        [
            StructField("n", LongType()),
            StructField("few", StringType()),
            StructField("d", DecimalType(20, 3)),
            StructField("x", DoubleType()),
        ]
    )
)
COUNT = 6_000


def batch(count: int = COUNT) -> Batch:
    """Rows with a number of its own each, a text of twelve or none, a decimal of eight, and a double of three, zeros among them."""
    columns = [
        range(count),
        [None if at % 13 == 12 else f"text {at % 13}" for at in range(count)],
        [Decimal(at % 8) for at in range(count)],
        [(-0.0, 0.0, 1.5)[at % 3] for at in range(count)],
        [(1, 2, -1)[at % 3] for at in range(count)],
    ]
    schema = arrow_schema(SCHEMA)
    return Batch.in_memory(
        SCHEMA,
        pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema),
    )


def block(*texts: str, where: str | None = None) -> Select:
    scan = Scan("r", tuple(field.name for field in SCHEMA.fields[:-1]))
    return Select(
        (Source("r", scan),),
        tuple(Item(f"i{at}", Expression(text)) for at, text in enumerate(texts)),
        None if where is None else WhereClause(where),
    )


def context(sessions: SparkSessions, folder: Path, limits: Limits | None = None) -> Context:
    limits = limits or Limits()
    relations = {"r": RelationVersions(Trace(SCHEMA), (batch(1),))}
    return Context(sessions, BatchViews(sessions, limits), BatchStore(folder), relations, limits=limits)


BLOCKS = {
    "of few values": block("`r`.`n`", "UPPER(`r`.`few`)"),
    "of pairs of few values": block("CONCAT(`r`.`few`, `r`.`d`)", "`r`.`n`"),
    "of each row": block("`r`.`n` * 0.908", "`r`.`few`"),
    "of doubles with two zeros": block("`r`.`n`", "CAST(`r`.`x` AS STRING)"),
    "filtered by few values": block("`r`.`n`", "`r`.`d` + 1", where="`r`.`few` > 'text 5'"),
    "filtered by each row": block("`r`.`n`", "LENGTH(`r`.`few`)", where="`r`.`n` % 1000 BETWEEN 17 AND 400"),
    "filtered by nothing that is true": block("`r`.`n`", "`r`.`n` + 1", where="`r`.`few` = 'none'"),
    "filtered alone": block("`r`.`n`", where="`r`.`few` IS NULL OR `r`.`d` = 3"),
    "of no column": block("1 + 1", "`r`.`n`"),
}
LIMITS = {
    "whole": Limits(),
    "in pieces": Limits(plans=PlanLimits(piece_bytes=1_000)),
    "compiled": Limits(plans=PlanLimits(compiled_rows=0, piece_bytes=60_000)),
}


@pytest.mark.core
@pytest.mark.parametrize("limits", ["whole", *(pytest.param(name, marks=pytest.mark.rest) for name in ("in pieces", "compiled"))])
@pytest.mark.parametrize("name", BLOCKS)
def test_the_values_are_those_of_one_query_in_the_order_of_the_rows(
    sessions: SparkSessions, tmp_path: Path, name: str, limits: str
) -> None:
    rows, node = batch(), BLOCKS[name]
    found = select_rows(node, rows, context(sessions, tmp_path, LIMITS[limits]))
    expected = select_rows(node, rows, context(sessions, tmp_path, Limits(driver_rows=-1)))
    assert found is not None
    assert expected is not None
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.types == expected.schema.types


def computed(node: Select, rows: Batch, step: Context) -> Any:
    """Return the values that plans in the driver compute; None if they decline. There is no other way here."""
    split = computed_columns(node)
    assert split is not None
    block = split.block
    assert block is not None
    step = replace(step, limits=replace(step.limits, small_input=-1))
    query = module.RowQuery(lambda batch: str(step.over("r", batch).contents(block, Version.DELTA)), rows.schema, split.may_grow)
    return accepted(lambda: module.compute_values(query, rows.to_arrow().select(list(split.read)), step))


@pytest.mark.core
def test_few_values_are_evaluated_once_each(sessions: SparkSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    numbered = module._number_rows

    def spied(rows: pa.Table, *given: Any) -> Batch:
        sizes.append(rows.num_rows)
        return numbered(rows, *given)

    monkeypatch.setattr(module, "_number_rows", spied)
    computed(BLOCKS["of few values"], batch(), context(sessions, tmp_path))
    assert sizes == [13]
    sizes.clear()
    computed(BLOCKS["of pairs of few values"], batch(), context(sessions, tmp_path))
    assert sizes == [13 * 8]
    sizes.clear()
    computed(BLOCKS["of each row"], batch(), context(sessions, tmp_path))
    assert sum(sizes) == COUNT
    sizes.clear()
    # Arrow takes the zeros for equal, and their texts differ.
    computed(BLOCKS["of doubles with two zeros"], batch(), context(sessions, tmp_path))
    assert sum(sizes) == COUNT


@pytest.mark.core
def test_limits_of_rows_and_bytes_hold_on_both_sides(sessions: SparkSessions, tmp_path: Path) -> None:
    rows, node = batch(100), block("`r`.`n`", "REPEAT(`r`.`few`, 50)")
    at_most = context(sessions, tmp_path, Limits(driver_rows=100))
    assert computed(node, rows, at_most) is not None
    assert computed(node, rows, replace(at_most, limits=Limits(driver_rows=99))) is None
    # Each piece may have what the ones before it have left.
    many = batch(4_000)
    for most_bytes, is_none in ((16 << 20, False), (100_000, True)):
        limits = Limits(driver_bytes=most_bytes, plans=PlanLimits(piece_bytes=20_000))
        given = block("REPEAT(CONCAT(`r`.`few`, `r`.`n`), 50)")
        assert (computed(given, many, context(sessions, tmp_path, limits)) is None) is is_none


@pytest.mark.core
def test_values_that_many_rows_share_count_for_each_of_them(sessions: SparkSessions, tmp_path: Path) -> None:
    node = block("REPEAT(`r`.`few`, 50)", where="`r`.`few` <> 'text 3'")
    whole = computed(node, batch(), context(sessions, tmp_path)).columns.nbytes
    for most_bytes, is_none in ((2 * whole, False), (whole // 2, True)):
        step = context(sessions, tmp_path, Limits(driver_bytes=most_bytes))
        assert (computed(node, batch(), step) is None) is is_none


@pytest.mark.core
def test_what_unnests_or_takes_a_job_is_left_to_others(spark: SparkSession, tmp_path: Path) -> None:
    sessions = SparkSessions.of(spark)
    for session in sessions.each:
        session.udf.register("twice", lambda n: 2 * n, "bigint")
    step = context(sessions, tmp_path)
    assert computed(block("EXPLODE(ARRAY(`r`.`n`, 1))"), batch(3), step) is None
    assert computed(block("twice(`r`.`n`)"), batch(3), step) is None
    # The one query that is left is a job.
    found = select_rows(block("twice(`r`.`n`)"), batch(3), step)
    assert found is not None
    assert found["i0"].to_pylist() == [0, 2, 4]


def test_an_error_of_a_row_is_sparks_wherever_the_row_is(sessions: SparkSessions, tmp_path: Path) -> None:
    step = context(sessions, tmp_path, Limits(plans=PlanLimits(piece_bytes=1_000)))
    for bad in (0, COUNT // 2, COUNT - 1):
        with pytest.raises(SPARK_ERRORS, match="DIVIDE_BY_ZERO"):
            select_rows(block(f"1 DIV (`r`.`n` - {bad})"), batch(), step)
    # A row that the filter leaves out raises nothing, also where others have the same value.
    found = select_rows(block("1 DIV (`r`.`d` - 3)", where="`r`.`d` <> 3"), batch(), step)
    assert found is not None
    assert found.num_rows == COUNT * 7 // 8


@pytest.mark.core
def test_what_other_threads_evaluate_ends_before_an_error_is_raised(
    sessions: SparkSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_began, ended, numbered = threading.Event(), list[int](), module._number_rows

    def evaluate(rows: pa.Table, schema: StructType, first: int) -> Batch:
        if first == 0:
            assert other_began.wait(60)
            raise ValueError("the first piece")
        other_began.set()
        time.sleep(0.5)
        ended.append(first)
        return numbered(rows, schema, first)

    monkeypatch.setattr(module, "_number_rows", evaluate)
    monkeypatch.setattr(module, "_LANES", 2)
    with ThreadPoolExecutor(2) as threads:
        monkeypatch.setattr(module, "_threads", threads)
        with pytest.raises(ValueError, match="the first piece"):
            computed(BLOCKS["of each row"], batch(), context(sessions, tmp_path, Limits(plans=PlanLimits(piece_bytes=50_000))))
        assert len(ended) == 1


@pytest.mark.core
def test_no_rows_take_one_question(sessions: SparkSessions, tmp_path: Path) -> None:
    step = context(sessions, tmp_path)
    select_rows(BLOCKS["of each row"], batch(1), step)
    before = asked_of_spark(sessions.small.sparkContext)
    found = select_rows(BLOCKS["of each row"], batch(0), step)
    assert found is not None
    assert found.num_rows == 0
    assert found.column_names == ["i0", "i1", WEIGHT]
    assert asked_of_spark(sessions.small.sparkContext) - before == 1
