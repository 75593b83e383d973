"""The changes that a step gives to an output."""

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
"""The limit of a run's steps: every run has fewer."""


@dataclass(frozen=True, slots=True)
class StepChanges:
    """The changes of one step to one relation, or the relation's contents for an output that begins with them.

    :param step: the number of the step
    :param epoch: the epoch of the run that committed the step first. A step that is computed again after its first result was lost
        has the same step number, and the epoch of another run
    :param delta: rows with weights
    :param columns: the columns to show
    :param since: the first step of changes that span several steps, or None for those of one step. It is not stored: after a
        restart, waiting changes are delivered as a whole
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
        """The number of the changes: greater than all earlier ones, also of earlier runs, and the same for the same changes."""
        return self.epoch * STEPS_OF_RUN + self.step

    def in_order(self, session: SparkSession, key: Sequence[str]) -> Changes:
        """Return the changes in the order in which outputs get them.

        :param session: the session that sorts a delta in files
        :param key: the columns of the output's index
        """
        delta = self.delta
        if delta.table is None and delta.rows <= DEFAULT_LIMITS.small_rows:
            # This is less work than a Spark job.
            delta = replace(delta, table=delta.to_arrow())
        return changes_of(delta, self.columns, session, key)

    def in_files(self, store: BatchStore) -> StepChanges:
        """Return the same changes with the rows spilled from memory to files.

        :param store: the store of the files
        """
        flushed = self.delta.flush(store)
        return replace(self, delta=replace(flushed, table=None)) if flushed.files else self

    def to_kept(self, store: BatchStore) -> tuple[StepChanges, KeptStep]:
        """Return the same changes on disk, and the state of them for a checkpoint.

        :param store: the store of the files
        """
        flushed = replace(self, delta=self.delta.flush(store))
        schema = json.loads(self.delta.schema.json())
        return flushed, KeptStep(self.step, self.epoch, schema, self.columns, flushed.delta.to_manifest())

    @classmethod
    def from_kept(cls, kept: KeptStep, store: BatchStore) -> StepChanges:
        """Return the changes that :meth:`to_kept` described.

        :raises StorageError: if a file is missing or damaged; names the file
        """
        schema = StructType.fromJson(dict(kept.schema))
        return cls(kept.step, kept.epoch, Batch.from_manifest(kept.delta, schema, store), kept.columns)


def shown_number(number: int) -> str:
    """Return a :attr:`StepChanges.number` as text for people."""
    epoch, step = divmod(number, STEPS_OF_RUN)
    return f"step {step} of run {epoch}"
