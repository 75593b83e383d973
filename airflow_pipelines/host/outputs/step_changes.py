"""What a step gives an output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.connectors.changes import Changes, changes_of
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.connector_state import KeptStep

STEPS_OF_RUN: Final = 10**12
"""A run of a pipeline has fewer steps than this."""


@dataclass(frozen=True, slots=True)
class StepChanges:
    """The changes of one step to one relation, or its contents for an output that begins with them.

    :param step: the number of the step
    :param epoch: that of the run that committed the step first. A step that is computed again after its first result was lost has
        the number of that one, and the epoch of another run
    :param delta: rows with weights
    :param columns: those to show
    :param since: of the changes of several steps the first one, None of those of one. It is not stored: what waits over a restart
        is waited for as a whole
    """

    step: int
    epoch: int
    delta: Batch
    columns: tuple[str, ...]
    since: int | None = None

    @property
    def first_step(self) -> int:
        """The oldest step whose changes these are."""
        return self.step if self.since is None else self.since

    @property
    def number(self) -> int:
        """Greater than those of all changes that came before, in this and in earlier runs; the same for the same changes."""
        return self.epoch * STEPS_OF_RUN + self.step

    def in_order(self, session: SparkSession, key: Sequence[str]) -> Changes:
        """The changes in the order in which outputs get them.

        :param session: sorts those of a delta that is in files
        :param key: the columns of the output's index
        """
        delta = self.delta
        if delta.table is None and delta.rows <= DEFAULT_LIMITS.small_rows:
            # Less work than a job of Spark.
            delta = replace(delta, table=delta.to_arrow())
        return changes_of(delta, self.columns, session, key)

    def in_files(self, store: BatchStore) -> StepChanges:
        """The same changes, whose rows are in no memory any more.

        :param store: has the files
        """
        flushed = self.delta.flush(store)
        return replace(self, delta=replace(flushed, table=None)) if flushed.files else self

    def kept(self, store: BatchStore) -> tuple[StepChanges, KeptStep]:
        """The same changes on disk, and what a checkpoint keeps of them.

        :param store: has the files
        """
        flushed = replace(self, delta=self.delta.flush(store))
        schema = json.loads(self.delta.schema.json())
        return flushed, KeptStep(self.step, self.epoch, schema, self.columns, flushed.delta.to_manifest())

    @classmethod
    def from_kept(cls, kept: KeptStep, store: BatchStore) -> StepChanges:
        """What :meth:`kept` described.

        :raises StorageError: naming the file, when one is missing or damaged
        """
        schema = StructType.fromJson(dict(kept.schema))
        return cls(kept.step, kept.epoch, Batch.from_manifest(kept.delta, schema, store), kept.columns)


def shown_number(number: int) -> str:
    """A :attr:`StepChanges.number` for people."""
    epoch, step = divmod(number, STEPS_OF_RUN)
    return f"step {step} of run {epoch}"
