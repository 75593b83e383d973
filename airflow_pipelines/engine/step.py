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
    """An evaluated step that is not published yet. Deltas without rows are left out, and large ones without a consumer.

    :param number: the step's number
    :param table_deltas: by table; the system view has what it gains by late rows
    :param view_deltas: by view
    :param snapshot: the contents after the step
    :param stats: what it took to evaluate the step
    :param rejected: changes that were left out
    :param late: rows of tables and views that were left out because they were behind a waterline
    :param quiet: whether nothing but time has moved: no contents and no state have changed, and the number stays
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
        """The deltas of tables and views, as those outside of the engine see them."""
        tables = {name: without_sequence(delta) for name, delta in self.table_deltas.items()}
        return {**tables, **self.view_deltas}
