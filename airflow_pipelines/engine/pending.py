"""Changes of tables that wait to be evaluated together, in one step: what a transaction has collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.time.lateness import Late
from airflow_pipelines.engine.trace import Trace


@dataclass(frozen=True, slots=True)
class Pending:
    """Normalised changes of tables on top of a snapshot. Never changed.

    :param deltas: the sum of the changes so far, by table
    :param late: the rows that were left out because they were behind a waterline
    :param arrived: how many rows have arrived
    """

    deltas: Mapping[str, Trace] = field(default_factory=dict)
    late: tuple[Late, ...] = ()
    arrived: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether a step over it would have nothing to do."""
        return not self.deltas and not self.late

    def on(self, base: Snapshot) -> Snapshot:
        """The tables of a snapshot as they are after the changes; its views are as they were.

        :param base: the snapshot that the changes are on top of
        """
        changed = {
            name: replace(delta, batches=(*base.traces[name].batches, *delta.batches)) if name in base.traces else delta
            for name, delta in self.deltas.items()
        }
        return replace(base, traces={**base.traces, **changed})


@dataclass(frozen=True, slots=True)
class Collected:
    """What collecting some changes gave.

    :param pending: all changes that wait
    :param rejected: the changes that were left out
    """

    pending: Pending
    rejected: tuple[Rejected, ...]
