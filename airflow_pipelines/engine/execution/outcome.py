"""The outcome of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast

from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.program.names import quote
from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.stage import Stage

TOUCHES_MOST: Final = Reason("the step changes so much that computing everything anew costs less than finding what it touches")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes of a stage's relation and of its states.

    :param delta: the rows that the stage inserts into and deletes from its relation
    :param states: the rows that are added to the stage's states, by name
    :param consolidated: True if no two rows of the delta are known to be equal except for their weights
    :param strategy: the strategy that computed the delta, if it is not that of the stage
    :param reason: the reason why the relation was recomputed, if it was
    :param unobserved: the number of rows that were computed and not kept, because the relation has no consumers; the delta is then
        empty
    """

    delta: Batch
    states: Mapping[str, Batch] = field(default_factory=dict)
    consolidated: bool = False
    strategy: str | None = None
    reason: Reason | None = None
    unobserved: int = 0


@lru_cache(maxsize=1024)
def struct_of(columns: ColumnTypes) -> StructType:
    """Return the Spark schema of named and typed columns. It is cached, because Spark's parser takes some milliseconds for it."""
    if not columns:
        return StructType([])
    return cast(StructType, StructType.fromDDL(", ".join(f"{quote(name)} {kind}" for name, kind in columns)))


def stage_schema(stage: Stage) -> StructType:
    """Return the Spark schema of a stage's result, without the weight."""
    return struct_of(stage.columns)
