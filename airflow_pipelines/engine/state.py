"""States of operators: the rows that a stage keeps between steps besides its relation's contents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import VERSION, WEIGHTS_ADD_UP, Merge


@dataclass(frozen=True, slots=True)
class StateSchema:
    """The columns of a state, and the rules by which they merge.

    A state is a trace: each step adds rows to it, and rows of the same key become one by the rules in ``merges``. Weights add up. A
    row exists while its weight is not 0. So a step adds a new key with the weight 1, changes a known one with the weight 0 and
    removes one with the weight -1. A state with :attr:`Merge.NEWEST` also has a column for the version of a row; a step adds at
    most one row per key to it. :attr:`Merge.MIN` and :attr:`Merge.MAX` are for states that never lose a key.

    :param columns: the columns without the weight and the version
    :param merges: the merge rule of each column; all other columns are the key
    """

    columns: StructType
    merges: Mapping[str, Merge] = field(default_factory=dict)

    def empty(self) -> Trace:
        """Return the state before its first rows."""
        if not self._has_versions:
            return Trace(weighted(self.columns), merges={**self.merges, **WEIGHTS_ADD_UP})
        columns = StructType([*self.columns.fields, StructField(VERSION, LongType())])
        return Trace(weighted(columns), merges={**self.merges, VERSION: Merge.MAX, **WEIGHTS_ADD_UP})

    def batch(self, rows: pa.Table, version: int) -> Batch:
        """Return the batch that a step adds to the state.

        :param rows: the state's columns and the weight
        :param version: a version greater than that of all rows in the state
        """
        if self._has_versions:
            rows = rows.append_column(VERSION, pa.array([version] * rows.num_rows, pa.int64()))
        schema = self.empty().schema
        return Batch.in_memory(schema, rows.select([column.name for column in schema.fields]))

    @property
    def _has_versions(self) -> bool:
        return Merge.NEWEST in self.merges.values()


@dataclass(frozen=True, slots=True)
class Kept:
    """The states and contents of a stage before the step.

    :param states: the stage's states by name; None before its first evaluation
    :param contents: the contents of the stage's relation, where they are kept
    """

    states: Mapping[str, Trace] | None = None
    contents: Trace | None = None

    def state(self, name: str) -> Trace | None:
        """Return one state, or None before the first evaluation."""
        return None if self.states is None else self.states[name]
