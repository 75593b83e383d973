"""The position of a source, as bytes that a pipeline stores."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.pickled import to_bytes

_VERSION = 1
_NEVER_CHANGE = frozenset({int, float, bool, str, bytes, type(None)})


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """The position of a source.

    The bytes of splits and positions are unpickled only after the source is known to be the one that made them.

    :param kind: the kind of the source
    :param splits: the pickled descriptions of all splits
    :param positions: the pickled position of each split that was begun, by its number
    :param ended: the splits in which nothing follows
    """

    kind: str
    splits: bytes
    positions: Mapping[int, bytes] = field(default_factory=dict)
    ended: frozenset[int] = frozenset()

    def to_bytes(self) -> bytes:
        """Return the bytes to store.

        :returns: bytes for :meth:`from_bytes`
        """
        return pickle.dumps((_VERSION, self.kind, self.splits, dict(self.positions), sorted(self.ended)), 5)

    @classmethod
    def from_bytes(cls, data: bytes, name: str, kind: str) -> SourcePosition:
        """Read a stored position.

        :param data: the result of :meth:`to_bytes`
        :param name: the name of the source, for messages
        :param kind: the kind of the source
        :returns: the position
        :raises StreamProgramError: if the source cannot resume from it
        """
        try:
            version, *rest = pickle.loads(data)  # noqa: S301 (the pipeline's own storage)
        except Exception as error:
            raise StreamProgramError(f"The position of the source {name!r} cannot be read: {error}") from error
        if version != _VERSION:
            raise StreamProgramError(
                f"The position of the source {name!r} was written in form {version}, and this release reads form {_VERSION}."
                " Use the release that wrote it, or start without the checkpoint."
            )
        made_by, splits, positions, ended = rest
        if made_by != kind:
            raise StreamProgramError(
                f"The source {name!r} is a {kind}, and was a {made_by} when its position was kept: it cannot go on from there."
                " Give it another uid(), so that it begins anew."
            )
        return cls(made_by, splits, positions, frozenset(ended))

    def after(self, positions: Mapping[int, bytes], ended: Iterable[int]) -> SourcePosition:
        """Return the position after more elements were read.

        :param positions: the pickled positions of some splits
        :param ended: the splits in which nothing follows now
        :returns: the position
        """
        return replace(self, positions={**self.positions, **positions}, ended=self.ended.union(ended))

    def with_splits(self, splits: bytes) -> SourcePosition:
        """Return the same position for a source that has more splits.

        :param splits: the pickled descriptions of all splits
        :returns: the position
        """
        return replace(self, splits=splits)

    def split_descriptions(self) -> Sequence[Any]:
        """Return the descriptions of all splits."""
        descriptions: Sequence[Any] = pickle.loads(self.splits)  # noqa: S301 (the pipeline's own storage)
        return descriptions

    def of_split(self, number: int) -> Any | None:
        """Return the position of a split, or None if it was not begun.

        :param number: the number of the split
        """
        data = self.positions.get(number)
        return None if data is None else pickle.loads(data)  # noqa: S301 (the pipeline's own storage)


class KeptPosition:
    """A position of a split at the present moment, which stays the same whatever its reader does with the object later.

    :param position: the position that the reader gave
    :param name: the name of the position in messages
    :raises StreamProgramError: if it cannot be pickled
    """

    __slots__ = ("_data", "_position")

    def __init__(self, position: Any, name: str) -> None:
        # Most positions are numbers. They are immutable, so they are pickled only once for many elements.
        is_fixed = position.__class__ in _NEVER_CHANGE
        self._position = position
        self._data = None if is_fixed else to_bytes(position, name)

    def to_bytes(self) -> bytes:
        """Return the position as bytes."""
        return pickle.dumps(self._position, 5) if self._data is None else self._data
