"""Which steps of an output a Delta table has: application transactions in the table's own log, committed together with the rows.

Delta's commits fail when another commit named the same application since the table was read. So of two runs that write the same
table only one has its way, and the other one finds out.
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
"""Operations after which a table has the rows that it had before."""
_LOOK_BACK: Final = 1000
"""How many commits of others are looked through for the number of the last change."""


class NotToBeTakenBackError(Exception):
    """What was written after a step cannot be taken back: why."""


class Ledger:
    """The books that one output keeps in its table.

    :param owner: names the output among all that write the table
    :param epoch: the run of the pipeline; None for a pipeline without storage
    :param files: of the table's folder
    """

    def __init__(self, owner: str, epoch: int | None, files: pafs.FileSystem) -> None:
        self._owner = owner
        self._epoch = epoch
        # Not by the library, which would let no other thread of this process go on while it asks a store for the log.
        self._files = files

    def step(self, table: DeltaTable) -> int | None:
        """The last step that is in the table; None when the output never wrote it."""
        return table.transaction_version(self._owner)

    def began_empty(self, table: DeltaTable) -> bool:
        """Whether the table had no rows when the output began, so that it has only what the output wrote."""
        return table.transaction_version(f"{self._owner}/began-empty") == 1

    def is_overtaken(self, table: DeltaTable) -> bool:
        """Whether another run of the pipeline has opened the output since."""
        return self._epoch is not None and table.transaction_version(f"{self._owner}/epoch") != self._epoch

    def beginning(self, began_empty: bool) -> CommitProperties:
        """Goes with the commit by which the output begins.

        :param began_empty: whether the table has no rows
        """
        return self._properties(-1, {}, Transaction(f"{self._owner}/began-empty", int(began_empty)), *self._of_run())

    def opening(self, step: int, last_ts: int) -> CommitProperties:
        """Goes with the commit by which a run takes the table over from an earlier one.

        :param step: the last step in the table
        :param last_ts: the greatest number that the output gave to a change
        """
        return self._properties(step, {LAST_TS: last_ts}, *self._of_run())

    def writing(self, step: int, notes: Mapping[str, Any]) -> CommitProperties:
        """Goes with the rows of a step.

        :param step: its number
        :param notes: what else is to stand in the table's history
        """
        return self._properties(step, notes)

    def last_ts(self, table: DeltaTable) -> int:
        """The greatest number that the output gave to a change; 0 when that is not known."""
        entries = islice(history(self._files, table.version()), _LOOK_BACK)
        return next((int(entry.get(LAST_TS, 0)) for entry in entries if entry.get(OUTPUT) == self._owner), 0)

    def version_after(self, table: DeltaTable, step: int) -> int:
        """The version of the table that has the output's steps up to one, and all that others did before the next one.

        :param step: before the last one in the table
        :raises NotToBeTakenBackError: when there is none, or others have written since
        """
        first_after: int | None = None
        others: str | None = None
        for entry in history(self._files, table.version()):
            if entry.get(OUTPUT) != self._owner:
                if others is None and entry.get("operation") not in _HARMLESS:
                    others = _described(entry)
                continue
            if int(entry[STEP]) <= step:
                # What others did between these two steps stays.
                return int(table.version()) if first_after is None else first_after - 1
            if others is not None:
                raise NotToBeTakenBackError(f"others have written the table since: {others}")
            first_after = int(entry["version"])
        raise NotToBeTakenBackError(f"its log no longer says which version had step {step}")

    def _of_run(self) -> list[Transaction]:
        return [] if self._epoch is None else [Transaction(f"{self._owner}/epoch", self._epoch)]

    def restoring(self, step: int, last_ts: int) -> dict[str, Any]:
        """The same as :meth:`opening`, for a process of its own."""
        transactions = [(self._owner, step), *((each.app_id, each.version) for each in self._of_run())]
        return {"metadata": self._metadata(step, {LAST_TS: last_ts}), "transactions": transactions}

    def _metadata(self, step: int, notes: Mapping[str, Any]) -> dict[str, str]:
        return {OUTPUT: self._owner, STEP: str(step), **{name: str(value) for name, value in notes.items()}}

    def _properties(self, step: int, notes: Mapping[str, Any], *more: Transaction) -> CommitProperties:
        return CommitProperties(
            custom_metadata=self._metadata(step, notes), app_transactions=[Transaction(self._owner, step), *more]
        )


def _described(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('operation', 'a commit')} in version {entry['version']}"
