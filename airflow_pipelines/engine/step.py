"""An evaluated step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_pipelines.engine.arrival_order import without_sequence
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.step_stats import StepStats
from airflow_pipelines.engine.time.lateness import Late


@dataclass(frozen=True, slots=True)
class Step:
    """An evaluated step that nobody sees yet. Deltas without rows are left out, and large ones without a consumer.

    ``late``: rows of tables and views that were left out because they were behind a waterline; ``table_deltas`` has what the system
    view gains by them.
    """

    number: int
    table_deltas: Mapping[str, Batch]
    view_deltas: Mapping[str, Batch]
    snapshot: Snapshot
    stats: StepStats
    rejected: tuple[Rejected, ...] = ()
    late: tuple[Late, ...] = ()
    quiet: bool = False
    """Whether nothing but time has moved: no contents and no state have changed, and the step's number is the one before's."""

    @property
    def deltas(self) -> dict[str, Batch]:
        """The deltas of tables and views, as those outside of the engine see them."""
        tables = {name: without_sequence(delta) for name, delta in self.table_deltas.items()}
        return {**tables, **self.view_deltas}
