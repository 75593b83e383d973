"""LATENESS: the distance by which a row may be behind the greatest value seen so far, and reports of late rows."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.values.text import as_text, order, scalar
from airflow_pipelines.program.names import SYSTEM_VIEW, quote
from airflow_pipelines.program.system_view import ERROR_VIEW_COLUMNS
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.schema import RelationSchema

Waterlines = Mapping[str, Mapping[str, str]]
"""The waterline of each column that has lateness, by relation and column, as text; none before the first row."""
REPORTED = 1000
"""The number of late rows of one relation and step that are reported one by one; the rest is counted."""
ERROR_VIEW = RelationSchema(SYSTEM_VIEW, ERROR_VIEW_COLUMNS)
"""The schema of the system view."""


@dataclass(frozen=True, slots=True)
class LateColumn:
    """A column with lateness.

    :param bound: the bound as Spark SQL text without names
    """

    relation: str
    column: str
    bound: str


@dataclass(frozen=True, slots=True)
class Late:
    """Rows of a relation that came too late in one step (a pyarrow Table of its columns), and the waterlines they were behind."""

    relation: str
    rows: pa.Table
    waterlines: Mapping[str, str]


def late_rows(rows: pa.Table, waterlines: Mapping[str, str]) -> ArrowColumn:
    """Return a boolean mask of the rows of a pyarrow Table that are below a waterline of one of its columns. NULL is never late."""
    mask = pa.array([False] * rows.num_rows)
    for column, text in waterlines.items():
        below = pc.less(rows[column], scalar(text, rows[column].type))
        mask = pc.or_(mask, pc.fill_null(below, False))
    return mask


class Bounds:
    """The bounds of a program's late columns as numbers, which are read from Spark once."""

    def __init__(self, columns: Sequence[LateColumn], session: SparkSession) -> None:
        self.columns = tuple(columns)
        self.relations = frozenset(column.relation for column in columns)
        self._session = session
        self._values: tuple[Any, ...] | None = None

    def advance(self, before: Waterlines, deltas: Mapping[str, Batch]) -> Waterlines:
        """Return the waterlines after deltas.

        The waterline of a late column is the greatest value seen minus its bound. It never falls.
        """
        after = {relation: dict(columns) for relation, columns in before.items()}
        for column, bound in zip(self.columns, self._bounds(), strict=True):
            delta = deltas.get(column.relation)
            greatest = None if delta is None else _find_greatest(delta, column.column)
            if greatest is None:
                continue
            reached = _subtract_bound(greatest, bound)
            if reached is None:
                continue
            known = after.setdefault(column.relation, {})
            old = known.get(column.column)
            if old is None or order(scalar(old, greatest.type)) < order(reached):
                known[column.column] = as_text(reached)
        return after

    def _bounds(self) -> tuple[Any, ...]:
        if self._values is None:
            texts = ", ".join(column.bound for column in self.columns)
            self._values = tuple(self._session.sql(f"SELECT {texts}").collect()[0]) if self.columns else ()
        return self._values


def _find_greatest(delta: Batch, column: str) -> pa.Scalar | None:
    """Return the greatest value of a column in a delta, as an Arrow scalar."""
    parts = [delta.table[column]] if delta.table is not None else []
    if not parts and delta.store is not None:
        parts = [pq.read_table(delta.store.open(name), columns=[column], partitioning=None)[column] for name in delta.files]
    maxima = [greatest for part in parts if (greatest := pc.max(part)).is_valid]
    return max(maxima, key=order, default=None)


def _subtract_bound(greatest: pa.Scalar, bound: Any) -> pa.Scalar | None:
    """Return a value minus a bound, or None if the type has no value that low, so that no row can be below it."""
    if pa.types.is_floating(greatest.type) and math.isnan(greatest.as_py()):
        # Arrow's max ignores NaN unless all values are NaN.
        return None
    try:
        return _subtract(greatest, bound)
    except (OverflowError, pa.ArrowInvalid):
        return None


def _subtract(greatest: pa.Scalar, bound: Any) -> pa.Scalar:
    value = greatest.as_py()
    if isinstance(bound, datetime.timedelta):
        if isinstance(value, datetime.datetime):
            return pa.scalar(value - bound, greatest.type)
        # Round up to whole days, so that the waterline is rather too low.
        days = -((-bound) // datetime.timedelta(days=1))
        return pa.scalar(value - datetime.timedelta(days=days), greatest.type)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return pa.scalar(value - datetime.timedelta(days=int(bound)), greatest.type)
    if isinstance(value, float):
        return pa.scalar(value - float(bound), greatest.type)
    if isinstance(value, Decimal):
        return pa.scalar(value - Decimal(str(bound)), greatest.type)
    return pa.scalar(value - int(-(-Decimal(str(bound)) // 1)), greatest.type)


def reports(late: Sequence[Late], session: SparkSession) -> Batch | None:
    """Return the delta of the system view that reports late rows, or None if there are none."""
    names: list[str] = []
    messages: list[str] = []
    metadata: list[str] = []
    for part in late:
        behind = ", ".join(f"{column} < {value}" for column, value in part.waterlines.items())
        for row in part.rows.slice(0, REPORTED).to_pylist():
            row.pop(WEIGHT, None)
            names.append(part.relation)
            messages.append(f"Late value: {behind}")
            metadata.append(json.dumps(row, default=str))
        if part.rows.num_rows > REPORTED:
            names.append(part.relation)
            messages.append(f"{part.rows.num_rows - REPORTED} more late values: {behind}")
            metadata.append("null")
    if not names:
        return None
    texts = session.createDataFrame(pa.table({"n": names, "m": messages, "j": metadata}))
    columns = [quote(column.name) for column in ERROR_VIEW_COLUMNS]
    items = ("n", "m", "PARSE_JSON(j)")
    frame = texts.selectExpr(*(f"{item} AS {column}" for item, column in zip(items, columns, strict=True)), f"1L AS {WEIGHT}")
    return Batch.in_memory(weighted(spark_schema(ERROR_VIEW)), collected(frame))
