"""How far a source was read: the bytes that a pipeline keeps."""

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
    """How far a source was read.

    The bytes of splits and positions are read only when the source is known to be the one that made them.

    :param kind: of the source
    :param splits: pickled descriptions of all splits
    :param positions: pickled position of each split that was begun, by its number
    :param ended: the splits in which nothing follows
    """

    kind: str
    splits: bytes
    positions: Mapping[int, bytes] = field(default_factory=dict)
    ended: frozenset[int] = frozenset()

    def to_bytes(self) -> bytes:
        """The bytes to keep.

        :returns: what :meth:`from_bytes` reads
        """
        return pickle.dumps((_VERSION, self.kind, self.splits, dict(self.positions), sorted(self.ended)), 5)

    @classmethod
    def from_bytes(cls, data: bytes, name: str, kind: str) -> SourcePosition:
        """Read what was kept.

        :param data: what :meth:`to_bytes` gave
        :param name: of the source, for messages
        :param kind: of the source
        :returns: the position
        :raises StreamProgramError: when the source cannot go on from it
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
        """The position after more was read.

        :param positions: pickled positions of some splits
        :param ended: splits in which nothing follows now
        :returns: the position
        """
        return replace(self, positions={**self.positions, **positions}, ended=self.ended.union(ended))

    def with_splits(self, splits: bytes) -> SourcePosition:
        """The same place of a source that has more splits.

        :param splits: pickled descriptions of all splits
        :returns: the position
        """
        return replace(self, splits=splits)

    def split_descriptions(self) -> Sequence[Any]:
        """The descriptions of all splits."""
        descriptions: Sequence[Any] = pickle.loads(self.splits)  # noqa: S301 (the pipeline's own storage)
        return descriptions

    def of_split(self, number: int) -> Any | None:
        """The position of a split, None when it was not begun.

        :param number: which
        """
        data = self.positions.get(number)
        return None if data is None else pickle.loads(data)  # noqa: S301 (the pipeline's own storage)


class KeptPosition:
    """A position of a split as it is at the moment, whatever its reader does with the object later.

    :param position: what the reader gave
    :param name: what the position is called in messages
    :raises StreamProgramError: when it has no bytes
    """

    __slots__ = ("_data", "_position")

    def __init__(self, position: Any, name: str) -> None:
        # Most positions are numbers, which are made bytes once for many elements.
        is_fixed = position.__class__ in _NEVER_CHANGE
        self._position = position
        self._data = None if is_fixed else to_bytes(position, name)

    def to_bytes(self) -> bytes:
        """Its bytes."""
        return pickle.dumps(self._position, 5) if self._data is None else self._data
