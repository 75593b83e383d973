"""What evaluating a stage gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.sql.plan.ir.nodes import ColumnTypes, Stage
from airflow_pipelines.sql.syntax.identifiers import quote


@dataclass(frozen=True, slots=True)
class Outcome:
    """A stage's ``delta``, and what its state (if it keeps one) gains.

    ``netted``: it is known that no two rows of the delta are equal but for their weights. ``strategy``: how it was computed, where
    that is not what the stage says of itself. ``unheard``: the number of rows that were computed and not kept, because nobody takes
    them; then the delta has none.
    """

    delta: Batch
    state: Batch | None = None
    netted: bool = False
    strategy: str | None = None
    unheard: int = 0


@lru_cache(maxsize=1024)
def struct_of(columns: ColumnTypes) -> StructType:
    """The Spark schema of named and typed columns. Remembered, because Spark's parser takes some milliseconds for it."""
    if not columns:
        return StructType([])
    return cast(StructType, StructType.fromDDL(", ".join(f"{quote(name)} {kind}" for name, kind in columns)))


def stage_schema(stage: Stage) -> StructType:
    """The Spark schema of a stage's result, without the weight."""
    return struct_of(stage.columns)
