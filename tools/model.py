"""What a table must hold after a kill: all that was acknowledged, and of what was under way a first part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Change = tuple[int, int | None]
"""A key and its new value; None deletes it."""


class LostError(AssertionError):
    """The table holds something else than any kill may leave."""


@dataclass(slots=True)
class Model:
    """The rows of one writer. ``known``: what was acknowledged; ``pending``: what was sent then and has no answer, in order."""

    known: dict[int, int] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def send(self, changes: Iterable[Change]) -> None:
        """Note what is about to be sent."""
        self.pending = list(changes)

    def acknowledge(self) -> None:
        """All that was sent is there for good."""
        for change in self.pending:
            _apply(self.known, change)
        self.pending = []

    def settle(self, found: Mapping[int, int]) -> int:
        """Take over what a restarted pipeline holds; the value says how many changes without an answer are in it.

        :raises LostError: when that is not the acknowledged rows with a first part of the others
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
    """Raise LostError, naming what is wrong, when a condition does not hold."""
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
