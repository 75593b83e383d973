"""Which steps of an output a Delta table has: application transactions in the table's own log, committed together with the rows.

Delta's commits fail when another commit named the same application since the table was read. So of two runs that write the same
table only one has its way, and the other one finds out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltalake import CommitProperties, DeltaTable, Transaction

OUTPUT: Final = "airflow_pipelines.output"
STEP: Final = "airflow_pipelines.step"
LAST_TS: Final = "airflow_pipelines.last_ts"
_HARMLESS: Final = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK"})
"""Operations after which a table has the rows that it had before."""
_LOOK_BACK: Final = (100, 1000, None)
"""How many commits are looked through, first few, then all."""


class NotToBeTakenBackError(Exception):
    """What was written after a step cannot be taken back: why."""


class Ledger:
    """The books that one output keeps in its table.

    :param owner: names the output among all that write the table
    :param epoch: the run of the pipeline; None for a pipeline without storage
    """

    def __init__(self, owner: str, epoch: int | None) -> None:
        self._owner = owner
        self._epoch = epoch

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

    def opening(self, step: int) -> CommitProperties:
        """Goes with the commit by which a run takes the table over from an earlier one.

        :param step: the last step in the table
        """
        return self._properties(step, {}, *self._of_run())

    def writing(self, step: int, notes: Mapping[str, Any]) -> CommitProperties:
        """Goes with the rows of a step.

        :param step: its number
        :param notes: what else is to stand in the table's history
        """
        return self._properties(step, notes)

    def last_ts(self, table: DeltaTable) -> int:
        """The greatest number that the output gave to a change; 0 when that is not known."""
        for entry in table.history(_LOOK_BACK[0]):
            if entry.get(OUTPUT) == self._owner and LAST_TS in entry:
                return int(entry[LAST_TS])
        return 0

    def version_after(self, table: DeltaTable, step: int) -> int:
        """The version of the table that has the output's steps up to one, and all that others did before the next one.

        :param step: before the last one in the table
        :raises NotToBeTakenBackError: when there is none, or others have written since
        """
        for limit in _LOOK_BACK:
            first_after: int | None = None
            others: str | None = None
            for entry in table.history(limit):
                if entry.get(OUTPUT) != self._owner:
                    if first_after is None or entry["version"] > first_after:
                        others = others or (None if entry.get("operation") in _HARMLESS else _described(entry))
                    continue
                if int(entry[STEP]) <= step:
                    if first_after is None:
                        return int(table.version())
                    return first_after - 1
                first_after = int(entry["version"])
                if others is not None:
                    raise NotToBeTakenBackError(f"others have written the table since: {others}")
        raise NotToBeTakenBackError(f"its log no longer says which version had step {step}")

    def _of_run(self) -> list[Transaction]:
        return [] if self._epoch is None else [Transaction(f"{self._owner}/epoch", self._epoch)]

    def _properties(self, step: int, notes: Mapping[str, Any], *more: Transaction) -> CommitProperties:
        metadata = {OUTPUT: self._owner, STEP: str(step), **{name: str(value) for name, value in notes.items()}}
        return CommitProperties(custom_metadata=metadata, app_transactions=[Transaction(self._owner, step), *more])


def _described(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('operation', 'a commit')} in version {entry['version']}"
