"""What views on the state of the current key have in common, whether it expires or not."""

from __future__ import annotations

from typing import Any, Self

from airflow_pipelines.streams.state.store import KeyedStore


class Slotted:
    """Kept under one slot of each key's values.

    :param store: of all keys
    :param slot: the name of the state, or that with a namespace

    What is kept may be changed in place by the function that got it; since nobody would notice, reading something that can
    change counts as writing.
    """

    __slots__ = ("_slot", "_store")

    def __init__(self, store: KeyedStore, slot: Any) -> None:
        self._store = store
        self._slot = slot

    def at(self, slot: Any) -> Self:
        """Show what is kept under another slot.

        :param slot: the slot
        :returns: this view
        """
        self._slot = slot
        return self

    def clear(self) -> None:
        """Drop what is kept for the current key."""
        entry = self._store.entry
        if entry.values.pop(self._slot, None) is not None and not entry.is_changed:
            entry.note_change()
