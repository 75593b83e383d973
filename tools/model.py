"""The expected content of a table after a kill: all acknowledged changes, and a prefix of the pending ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Change = tuple[int, int | None]
"""A key and its new value; None deletes it."""


class LostError(AssertionError):
    """The error for a table with content that no kill may leave."""


@dataclass(slots=True)
class Model:
    """The rows of one writer. ``known``: the acknowledged rows; ``pending``: the later changes without an answer, in order."""

    known: dict[int, int] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def send(self, changes: Iterable[Change]) -> None:
        """Record the changes that are about to be sent."""
        self.pending = list(changes)

    def acknowledge(self) -> None:
        """Move the pending changes to the acknowledged rows."""
        for change in self.pending:
            _apply(self.known, change)
        self.pending = []

    def settle(self, found: Mapping[int, int]) -> int:
        """Adopt the content of a restarted pipeline, and return the number of pending changes in it.

        :raises LostError: when it is not the acknowledged rows with a prefix of the pending changes
        """
        reached = dict(self.known)
        for count in range(len(self.pending) + 1):
            if reached == found:
                self.known, self.pending = reached, []
                return count
            if count < len(self.pending):
                _apply(reached, self.pending[count])
        missing = {key: value for key, value in self.known.items() if found.get(key) != value}
        strange = {key: value for key, value in found.items() if self.known.get(key) != value}
        raise LostError(f"acknowledged and not found: {_some(missing)}; found: {_some(strange)}; under way: {_some(self.pending)}")


def require(holds: bool, what: str) -> None:
    """Raise LostError, with a description, if a condition does not hold."""
    if not holds:
        raise LostError(f"wrong: {what}")


def _apply(rows: dict[int, int], change: Change) -> None:
    key, value = change
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value


def _some(items: Mapping[int, int] | list[Change]) -> str:
    listed = list(items.items()) if isinstance(items, Mapping) else items
    return f"{len(listed)} {listed[:5]}"
