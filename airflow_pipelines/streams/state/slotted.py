"""The common base of views of the state of the current key, whether it expires or not."""

from __future__ import annotations

from typing import Any, Self

from airflow_pipelines.streams.state.store import KeyedStore


class Slotted:
    """A view of one slot of each key's values.

    A function may change a stored object in place after it has read it. Nobody would notice, so reading a mutable object counts as
    writing.

    :param store: the store of all keys
    :param slot: the name of the state, or the name with a namespace
    """

    __slots__ = ("_slot", "_store")

    def __init__(self, store: KeyedStore, slot: Any) -> None:
        self._store = store
        self._slot = slot

    def at(self, slot: Any) -> Self:
        """Bind the view to another slot.

        :param slot: the slot
        :returns: this view
        """
        self._slot = slot
        return self

    def clear(self) -> None:
        """Remove the state of the current key."""
        entry = self._store.entry
        if entry.values.pop(self._slot, None) is not None and not entry.is_changed:
            entry.note_change()
