"""The versions of a relation in one step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.version import Version


@dataclass(frozen=True, slots=True)
class RelationVersions:
    """A relation in one step: its contents before, and the batches that the step adds to them."""

    before: Trace
    delta: tuple[Batch, ...] = ()

    @property
    def changed(self) -> bool:
        """True if the step adds anything."""
        return bool(self.delta)

    @property
    def after(self) -> Trace:
        """The contents after the step."""
        return replace(self.before, batches=(*self.before.batches, *self.delta))

    def batches(self, version: Version) -> tuple[Batch, ...]:
        """Return the batches of one version."""
        match version:
            case Version.DELTA:
                return self.delta
            case Version.BEFORE:
                return self.before.batches
            case Version.AFTER:
                return self.after.batches
