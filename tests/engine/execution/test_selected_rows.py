"""Blocks over rows in memory: what they pass on and compute is what Spark gives for the whole block."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    YearMonthIntervalType,
)

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.execution.selected_rows import select_rows
from airflow_pipelines.engine.execution.ways import Declined, accepted
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source
from airflow_pipelines.sql.plan.passes.join_graphs import join_graph
from tests.engine.asked import asked_of_spark

pytestmark = pytest.mark.core

SCHEMA = weighted(
    StructType(
        [
            StructField("n", IntegerType()),
            StructField("x", DoubleType()),
            StructField("d", DecimalType(38, 2)),
            StructField("t", StringType()),
            StructField("at", TimestampNTZType()),
            StructField("l", ArrayType(IntegerType())),
            StructField("m", MapType(StringType(), LongType())),
            StructField("s", StructType([StructField("f", IntegerType()), StructField("g", StringType())])),
            StructField("months", YearMonthIntervalType()),
        ]
    )
)
LARGE, LEAST = (Decimal(sign + "9" * 36 + ".99") for sign in ("", "-"))
ROWS: Sequence[tuple[Any, ...]] = (
    (1, 0.0, LARGE, "a", datetime(2026, 1, 1), [1, None, 3], [("k", 1)], {"f": 1, "g": "x"}, 14, 1),
    (2, math.nan, LEAST, "", datetime(1, 1, 1), [], [], {"f": None, "g": None}, -1, 1),
    (2, math.nan, LEAST, "", datetime(1, 1, 1), [], [], {"f": None, "g": None}, -1, 1),
    (None, None, None, None, None, None, None, None, None, -2),
    (-(2**31), -math.inf, Decimal("0.00"), "ä\U0001f600\0b", datetime(9999, 12, 31, 23, 59, 59, 999999), [7], None, None, 0, 3),
)
COLUMNS = tuple(field.name for field in SCHEMA.fields[:-1])
RELATION = Scan("r", COLUMNS)
PASSED = tuple(f"`r`.`{name}`" for name in COLUMNS)


def over(node: Linear, *texts: str, alias: str = "r", where: str | None = None, laterals: tuple[str, ...] = ()) -> Select:
    return Select(
        (Source(alias, node),),
        tuple(Item(f"i{at}", Expression(text)) for at, text in enumerate(texts)),
        None if where is None else WhereClause(where),
        tuple(map(LateralView, laterals)),
    )


def batch(rows: Sequence[tuple[Any, ...]] = ROWS) -> Batch:
    schema = arrow_schema(SCHEMA)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    table = pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema)
    return Batch.in_memory(SCHEMA, table)


def context(sessions: SparkSessions, folder: Path, rows: Batch, limits: Limits | None = None) -> Context:
    relations = {"r": RelationVersions(Trace(SCHEMA), (rows,))}
    limits = limits or Limits()
    return Context(sessions, BatchViews(sessions, limits), BatchStore(folder), relations, limits=limits)


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


EXPLODED = over(RELATION, "`r`.`n`", "EXPLODE(`r`.`l`)", "`r`.`t`")
NODES = {
    "columns alone": over(RELATION, *reversed(PASSED)),
    "a column twice": over(RELATION, "`r`.`s`", "`r`.`s`", "`r`.`n`"),
    "alternatives": over(RELATION, "`r`.`t`", where="`r`.`n` > 1 OR `r`.`t` < 'b' OR `r`.`x` IS NULL"),
    "a negation": over(RELATION, "`r`.`t`", where="NOT (`r`.`n` = 1 AND `r`.`t` <> 'a')"),
    "no columns": over(RELATION),
    "all kinds, and something computed": over(RELATION, *PASSED, "`r`.`n` * 2L", "CONCAT(`r`.`t`, '!')", "`r`.`s`.`f`"),
    "computed only": over(RELATION, "`r`.`d` + 0", "`r`.`x` + 1", "1", "CAST(NULL AS STRING)"),
    "a filter": over(RELATION, *PASSED, where="`r`.`x` > 0"),
    "a filter that is NULL": over(RELATION, *PASSED, where="`r`.`n` > NULL"),
    "a filter that takes all": over(RELATION, "`r`.`months`", where="TRUE"),
    "a filter and something computed": over(RELATION, "`r`.`at`", "DATE_FORMAT(`r`.`at`, 'yyyy')", where="`r`.`t` = ''"),
    "no columns but a filter": over(RELATION, where="`r`.`n` = 2"),
    "unnested in a lateral view": over(
        RELATION, "`e`.`x`", "`r`.`s`", "`r`.`n` + `e`.`x`", laterals=("LATERAL VIEW OUTER EXPLODE(`r`.`l`) `e` AS `x`",)
    ),
    "unnested by a generator": EXPLODED,
    "unnested below, where nobody asks for the value": over(EXPLODED, "`q`.`i2`", "`q`.`i0`", alias="q"),
    "a filter over something computed below": over(
        over(RELATION, "`r`.`n` % 2", "`r`.`m`", "`r`.`n`"), "`q`.`i1`", "`q`.`i2` + 1", alias="q", where="`q`.`i0` = 0"
    ),
}


PLAIN = {
    "whole numbers": over(RELATION, *PASSED, where="`r`.`n` >= 1 AND `r`.`n` < 2"),
    "numbers on both sides": over(RELATION, "`r`.`t`", where="`r`.`n` BETWEEN 0 AND 2 AND `r`.`n` = `r`.`n`"),
    "decimals": over(RELATION, "`r`.`d`", "`r`.`n`", where="`r`.`d` > 0.00"),
    "texts": over(RELATION, "`r`.`x`", where="`r`.`t` IN ('a', 'b')"),
    "alternatives": over(RELATION, "`r`.`t`", where="`r`.`n` > 1 OR `r`.`t` < 'b' OR `r`.`x` IS NULL"),
    "a negation": over(RELATION, "`r`.`t`", where="NOT (`r`.`n` = 1 AND `r`.`t` <> 'a')"),
    "no columns": over(RELATION, where="`r`.`d` <= 5"),
}


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[3:4], ()], ids=["rows", "one row", "a row of NULL that goes", "no rows"])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_filters_need_no_spark(sessions: SparkSessions, tmp_path: Path, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    node, given = replace(PLAIN[name], join_graph=join_graph(PLAIN[name])), batch(rows)
    found = select_rows(node, given, Context(cast(Any, None), cast(Any, None), BatchStore(tmp_path)))
    step = context(sessions, tmp_path, given)
    expected = step.collect(str(step.printer(Mode.SMALL).delta(node, frozenset({"r"}))), Mode.SMALL)
    assert found.schema.types == expected.schema.types
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize(
    "where", ["`r`.`n` > 1 AND `r`.`x` > 1", "`r`.`x` > 1", "`r`.`t` RLIKE 'a'", "`r`.`n` % 2 = 1 OR `r`.`n` < 0"]
)
def test_a_filter_that_is_not_plain_goes_to_spark_whole(sessions: SparkSessions, tmp_path: Path, where: str) -> None:
    node = over(RELATION, "`r`.`t`", where=where)
    node, given = replace(node, join_graph=join_graph(node)), batch()
    step = context(sessions, tmp_path, given)
    before = asked_of_spark(sessions.small.sparkContext)
    found = select_rows(node, given, step)
    assert asked_of_spark(sessions.small.sparkContext) == before + 1
    expected = step.collect(str(step.printer(Mode.SMALL).delta(node, frozenset({"r"}))), Mode.SMALL)
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[3:4], ()], ids=["rows", "one row", "a row of NULL that goes", "no rows"])
@pytest.mark.parametrize("name", NODES)
def test_what_a_block_gives_is_what_spark_gives(
    sessions: SparkSessions, tmp_path: Path, name: str, rows: Sequence[tuple[Any, ...]]
) -> None:
    node, given = NODES[name], batch(rows)
    step = context(sessions, tmp_path, given)
    found = select_rows(node, given, step)
    assert found.column_names == [*node.columns, WEIGHT]
    expected = step.collect(str(step.printer(Mode.SMALL).delta(node, frozenset({"r"}))), Mode.SMALL)
    assert [field.type for field in found.schema] == [field.type for field in expected.schema]
    assert in_order(found) == in_order(expected)


def test_the_same_over_other_rows_and_several_chunks(sessions: SparkSessions, tmp_path: Path) -> None:
    node = NODES["a filter and something computed"]
    for rows in (ROWS, ROWS[2:], ROWS[:0], ROWS[::-1]):
        table = pa.concat_tables([batch(rows).to_arrow(), batch(ROWS[1:2]).to_arrow()])
        given = Batch.in_memory(SCHEMA, table)
        found = select_rows(node, given, context(sessions, tmp_path, given))
        wanted = [row for row in (*rows, ROWS[1]) if row[3] == ""]
        assert [tuple(row.values()) for row in found.to_pylist()] == [(row[4], "0001", row[-1]) for row in wanted]


def test_columns_alone_are_the_same_memory(tmp_path: Path) -> None:
    given = batch()
    without_spark = Context(cast(Any, None), cast(Any, None), BatchStore(tmp_path))
    found = select_rows(NODES["columns alone"], given, without_spark)
    assert found["i0"].chunk(0).buffers()[-1].address == given.to_arrow()["months"].chunk(0).buffers()[-1].address


def test_more_rows_than_may_come_are_left_to_others(sessions: SparkSessions, tmp_path: Path) -> None:
    given = batch(ROWS[:1])
    for fan_out, is_none in ((3, False), (2, True)):
        step = context(sessions, tmp_path, given, Limits(fan_out=fan_out))
        assert (accepted(functools.partial(select_rows, EXPLODED, given, step)) is None) is is_none


def test_what_is_in_files_is_left_to_others(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    rows = batch(ROWS[:2])
    in_files = Batch.in_files(SCHEMA, rows.rows, store.write(rows.to_arrow()), store, insert_only=True)
    with pytest.raises(Declined):
        select_rows(NODES["columns alone"], in_files, Context(cast(Any, None), cast(Any, None), store))
