"""The progress of an input over files: the files that are done, and the places in those that were begun."""

from __future__ import annotations

from typing import Any, Final

from airflow_pipelines.connectors.transports.files.packed_names import PackedNames, pack, unpack
from airflow_pipelines.engine.storage.connector_state import Position

FEW_PLACES: Final = 100
"""The number of places above which they are packed."""


class FileProgress:
    """The files that are done, and the places in others, by name.

    Files that are read once are read in the order of their names, so that the last name is enough. New files of a followed folder
    may have any name, so all their names are kept.
    """

    def __init__(self, *, in_order: bool) -> None:
        """Begin with nothing.

        :param in_order: True if files are done in the order of their names
        """
        self._in_order = in_order
        self._through: str | None = None
        self._names = PackedNames()
        self._places: dict[str, dict[str, Any]] = {}
        self._packed_places: str | None = None

    @property
    def through(self) -> str | None:
        """The name up to which everything is done, or None where that is not known."""
        return self._through

    @property
    def is_empty(self) -> bool:
        """True if no file is done."""
        return self._through is None and not len(self._names)

    def is_done(self, name: str) -> bool:
        """Return True if a file is done for good."""
        return (self._through is not None and name <= self._through) or name in self._names

    def place(self, name: str) -> dict[str, Any]:
        """Return the place where reading of a file goes on."""
        return self._places.get(name, {})

    def stands(self, name: str, place: dict[str, Any]) -> None:
        """Record the place up to which a file was read."""
        self._places[name] = place
        self._packed_places = None

    def finish(self, name: str) -> None:
        """Record that a file is done for good."""
        self._places.pop(name, None)
        self._packed_places = None
        if self._in_order:
            self._through = name if self._through is None else max(name, self._through)
        else:
            self._names.add(name)

    def to_position(self) -> Position:
        """Return the stored form."""
        position: Position = {}
        if self._through is not None:
            position["through"] = self._through
        if len(self._names):
            position["done"] = self._names.to_json()
        if len(self._places) > FEW_PLACES:
            self._packed_places = self._packed_places or pack(self._places)
            position["files"] = {"packed": self._packed_places}
        elif self._places:
            position["files"] = {"places": dict(self._places)}
        return position

    def restore(self, position: Position) -> None:
        """Restore the result of :meth:`to_position`, from this or an earlier release."""
        self._through = position.get("through")
        self._names = PackedNames.from_json(position.get("done", ()))
        stored = position.get("files", {})
        if "packed" in stored:
            self._places = unpack(stored["packed"])
        else:
            # Earlier releases had the places themselves.
            self._places = {name: dict(place) for name, place in stored.get("places", stored).items()}
