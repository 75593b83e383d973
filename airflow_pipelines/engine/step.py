"""An evaluated step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_pipelines.engine.arrival_order import without_sequence
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.lateness import Late
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.step_stats import StepStats


@dataclass(frozen=True, slots=True)
class Step:
    """An evaluated step that is not published yet. Deltas without rows are left out, and so are large ones without a consumer.

    :param number: the step's number
    :param table_deltas: the deltas by table; that of the system view reports late rows
    :param view_deltas: the deltas by view
    :param snapshot: the contents after the step
    :param stats: the statistics of the step
    :param rejected: the rejected changes
    :param late: the rows of tables and views that were left out because they were behind a waterline
    :param quiet: True if only time has advanced: no contents and no state have changed, and the number stays the same
    """

    number: int
    table_deltas: Mapping[str, Batch]
    view_deltas: Mapping[str, Batch]
    snapshot: Snapshot
    stats: StepStats
    rejected: tuple[Rejected, ...] = ()
    late: tuple[Late, ...] = ()
    quiet: bool = False

    @property
    def deltas(self) -> dict[str, Batch]:
        """The deltas of tables and views, as code outside of the engine sees them."""
        tables = {name: without_sequence(delta) for name, delta in self.table_deltas.items()}
        return {**tables, **self.view_deltas}
