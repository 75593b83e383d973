"""Conditions of a block that Arrow decides in the driver, exactly as Spark decides them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType

from airflow_pipelines.engine.spark.arrow_frames import evaluable_type
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.expressions.columns import ColumnName
from airflow_pipelines.rows.expressions.evaluation import can_evaluate, is_true
from airflow_pipelines.sql.plan.ir.join_graph import Conjunct, SourceColumn


def can_decide(conjunct: Conjunct, kinds: Mapping[SourceColumn, DataType]) -> bool:
    """Return True if Arrow decides a condition as Spark does, whatever the values of the columns are.

    :param conjunct: the condition
    :param kinds: the types of all columns
    """
    return bool(conjunct.columns) and _can_decide(conjunct, tuple((column, kinds[column]) for column in sorted(conjunct.columns)))


@functools.lru_cache(maxsize=4_096)
def _can_decide(conjunct: Conjunct, kinds: tuple[tuple[SourceColumn, DataType], ...]) -> bool:
    types = {column: evaluable_type(kind) for column, kind in kinds}
    return can_evaluate(conjunct.tree, {column: kind for column, kind in types.items() if kind is not None})


def holds(conjuncts: Sequence[Conjunct], values: Mapping[SourceColumn, pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
    """Return for which rows all of some conditions that :func:`can_decide` are true.

    :param conjuncts: the conditions, at least one
    :param values: the columns that they read
    """
    columns: dict[ColumnName, ArrowColumn] = {(alias, name): column for (alias, name), column in values.items()}
    rows = len(next(iter(values.values())))
    decided = [is_true(conjunct.tree, columns, rows) for conjunct in conjuncts]
    mask: npt.NDArray[np.bool_] = np.asarray(functools.reduce(pc.and_, decided))
    return mask
