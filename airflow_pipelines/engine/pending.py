"""Table changes that wait to be evaluated together in one step: those that a transaction has collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_pipelines.engine.lateness import Late
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.trace import Trace


@dataclass(frozen=True, slots=True)
class Pending:
    """Normalised changes of tables on top of a snapshot. Immutable.

    :param deltas: the sum of the changes so far, by table
    :param late: the rows that were left out because they were behind a waterline
    :param arrived: the number of rows that have arrived
    """

    deltas: Mapping[str, Trace] = field(default_factory=dict)
    late: tuple[Late, ...] = ()
    arrived: int = 0

    @property
    def is_empty(self) -> bool:
        """True if a step over the changes would have nothing to do."""
        return not self.deltas and not self.late

    def on(self, base: Snapshot) -> Snapshot:
        """Return a snapshot with the changes applied to its tables. Its views do not change.

        :param base: the snapshot on which the changes are based
        """
        changed = {
            name: replace(delta, batches=(*base.traces[name].batches, *delta.batches)) if name in base.traces else delta
            for name, delta in self.deltas.items()
        }
        return replace(base, traces={**base.traces, **changed})


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of collecting changes.

    :param pending: all pending changes
    :param rejected: the rejected changes
    """

    pending: Pending
    rejected: tuple[Rejected, ...]
