"""The record of the steps of an output in a Delta table: application transactions in its log, committed together with the rows.

Delta's commits fail if another commit named the same application since the table was read. So of two runs that write the same
table only one succeeds, and the other one finds out.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Transaction

from airflow_pipelines.connectors.transports.delta_table.log import history

OUTPUT: Final = "airflow_pipelines.output"
STEP: Final = "airflow_pipelines.step"
LAST_TS: Final = "airflow_pipelines.last_ts"
_HARMLESS: Final = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK"})
"""The operations that leave the rows of a table as they were."""
_LOOK_BACK: Final = 1000
"""The maximum number of commits that are searched for the number of the last change."""


class NotToBeTakenBackError(Exception):
    """The error for steps that cannot be taken back; its message says why."""


class DeltaLedger:
    """The entries that one output keeps in its table.

    :param owner: the name of the output among all that write the table
    :param epoch: the epoch of the pipeline's run; None for a pipeline without storage
    :param files: the file system of the table's folder
    """

    def __init__(self, owner: str, epoch: int | None, files: pafs.FileSystem) -> None:
        self._owner = owner
        self._epoch = epoch
        # Read the log without the library, which would block all threads of this process while it waits for the store.
        self._files = files

    def step(self, table: DeltaTable) -> int | None:
        """Return the last step in the table, or None if the output never wrote it."""
        return table.transaction_version(self._owner)

    def began_empty(self, table: DeltaTable) -> bool:
        """Return True if the table had no rows when the output began, so that it has only what the output wrote."""
        return table.transaction_version(f"{self._owner}/began-empty") == 1

    def is_overtaken(self, table: DeltaTable) -> bool:
        """Return True if another run of the pipeline has opened the output since."""
        return self._epoch is not None and table.transaction_version(f"{self._owner}/epoch") != self._epoch

    def beginning(self, began_empty: bool) -> CommitProperties:
        """Return the properties of the commit by which the output begins.

        :param began_empty: True if the table has no rows
        """
        return self._properties(-1, {}, Transaction(f"{self._owner}/began-empty", int(began_empty)), *self._of_run())

    def opening(self, step: int, last_ts: int) -> CommitProperties:
        """Return the properties of the commit by which a run takes the table over from an earlier one.

        :param step: the last step in the table
        :param last_ts: the greatest number that the output gave to a change
        """
        return self._properties(step, {LAST_TS: last_ts}, *self._of_run())

    def writing(self, step: int, notes: Mapping[str, Any]) -> CommitProperties:
        """Return the properties of the commit with the rows of a step.

        :param step: the number of the step
        :param notes: the additional entries for the table's history
        """
        return self._properties(step, notes)

    def last_ts(self, table: DeltaTable) -> int:
        """Return the greatest number that the output gave to a change, or 0 if it is not known."""
        entries = islice(history(self._files, table.version()), _LOOK_BACK)
        return next((int(entry.get(LAST_TS, 0)) for entry in entries if entry.get(OUTPUT) == self._owner), 0)

    def version_after(self, table: DeltaTable, step: int) -> int:
        """Return the version of the table that has the output's steps up to one, and all commits of others before the next step.

        :param step: a step before the last one in the table
        :raises NotToBeTakenBackError: when there is none, or others have written since
        """
        first_after: int | None = None
        others: str | None = None
        for entry in history(self._files, table.version()):
            if entry.get(OUTPUT) != self._owner:
                if others is None and entry.get("operation") not in _HARMLESS:
                    others = _describe_entry(entry)
                continue
            if int(entry[STEP]) <= step:
                # Keep the commits of others between these two steps.
                return int(table.version()) if first_after is None else first_after - 1
            if others is not None:
                raise NotToBeTakenBackError(f"others have written the table since: {others}")
            first_after = int(entry["version"])
        raise NotToBeTakenBackError(f"its log no longer says which version had step {step}")

    def _of_run(self) -> list[Transaction]:
        return [] if self._epoch is None else [Transaction(f"{self._owner}/epoch", self._epoch)]

    def restoring(self, step: int, last_ts: int) -> dict[str, Any]:
        """Return the same as :meth:`opening`, in a form for another process."""
        transactions = [(self._owner, step), *((each.app_id, each.version) for each in self._of_run())]
        return {"metadata": self._metadata(step, {LAST_TS: last_ts}), "transactions": transactions}

    def _metadata(self, step: int, notes: Mapping[str, Any]) -> dict[str, str]:
        return {OUTPUT: self._owner, STEP: str(step), **{name: str(value) for name, value in notes.items()}}

    def _properties(self, step: int, notes: Mapping[str, Any], *more: Transaction) -> CommitProperties:
        return CommitProperties(
            custom_metadata=self._metadata(step, notes), app_transactions=[Transaction(self._owner, step), *more]
        )


def _describe_entry(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('operation', 'a commit')} in version {entry['version']}"
