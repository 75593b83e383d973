"""The record of the steps of an output in an Iceberg table: snapshot summaries, committed together with the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from airflow_pipelines.connectors.base import ConnectorFailure

_OUTPUT: Final = "airflow-pipelines.output"
_STEP: Final = "airflow-pipelines.step"
_EPOCH: Final = "airflow-pipelines.epoch"
_LAST_TS: Final = "airflow-pipelines.last-ts"
_ALL_OURS: Final = "airflow-pipelines.all-ours"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The entry of an output in the summary of a snapshot that it made.

    :param snapshot_id: the snapshot
    :param step: the last step of the output in the table
    :param epoch: the epoch of the pipeline's run; None for one without storage
    :param last_ts: the greatest number of a change
    :param all_ours: True if the table has only what the output wrote
    """

    snapshot_id: int
    step: int
    epoch: int | None
    last_ts: int
    all_ours: bool


class IcebergLedger:
    """The entries that one output keeps in its table.

    :param owner: the name of the output among all that write the table
    :param epoch: the epoch of the pipeline's run; None for a pipeline without storage
    """

    def __init__(self, owner: str, epoch: int | None) -> None:
        self._owner = owner
        self._epoch = epoch

    def newest(self, table: Table) -> LedgerEntry | None:
        """Return the newest entry of the output in the table, or None if it never wrote the table."""
        return next((entry for _, entry in self._history(table) if entry is not None), None)

    def is_overtaken(self, entry: LedgerEntry | None) -> bool:
        """Return True if another run of the pipeline has opened the output since."""
        return self._epoch is not None and (entry is None or entry.epoch != self._epoch)

    def entry_after(self, table: Table, step: int) -> LedgerEntry | None:
        """Return the entry to roll back to so that the table has the output's steps up to ``step``.

        :returns: the entry; None when others have written since, or the history does not go back so far
        """
        for snapshot, entry in self._history(table):
            if entry is None and (snapshot.summary is None or snapshot.summary.operation is not Operation.REPLACE):
                return None
            if entry is not None and entry.step <= step:
                return entry
        return None

    def properties(self, step: int, last_ts: int, *, all_ours: bool) -> dict[str, str]:
        """Return the entry for the summary of a snapshot.

        :param step: the last step of the output in the table
        :param last_ts: the greatest number of a change
        :param all_ours: True if the table has only what the output wrote
        """
        epoch = {} if self._epoch is None else {_EPOCH: str(self._epoch)}
        entry = {_OUTPUT: self._owner, _STEP: str(step), _LAST_TS: str(last_ts), _ALL_OURS: "true" if all_ours else "false"}
        return {**entry, **epoch}

    def _history(self, table: Table) -> Iterator[tuple[Snapshot, LedgerEntry | None]]:
        """Yield the snapshots that led to the current one, newest first, with the output's entries."""
        snapshot = table.current_snapshot()
        while snapshot is not None:
            yield snapshot, self._read_entry(snapshot)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)

    def _read_entry(self, snapshot: Snapshot) -> LedgerEntry | None:
        properties = {} if snapshot.summary is None else snapshot.summary.additional_properties
        if properties.get(_OUTPUT) != self._owner:
            return None
        try:
            epoch = properties.get(_EPOCH)
            return LedgerEntry(
                snapshot.snapshot_id,
                int(properties[_STEP]),
                None if epoch is None else int(epoch),
                int(properties[_LAST_TS]),
                properties[_ALL_OURS] == "true",
            )
        except (KeyError, ValueError) as error:
            raise ConnectorFailure(
                f"iceberg_output: snapshot {snapshot.snapshot_id} does not say which step it has: {error}"
            ) from error
