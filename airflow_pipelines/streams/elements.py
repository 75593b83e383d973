"""The elements of a stream: batches of records, and between them watermarks, idleness and the end of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from airflow_pipelines.streams.errors import StreamProgramError

T = TypeVar("T")

MIN_TIMESTAMP = -(2**63)
"""The watermark before anything is known about event time."""
MAX_TIMESTAMP = 2**63 - 1
"""The watermark at the end of a bounded input: the end of time."""


class Batch:
    """Consecutive records, with no other element between them.

    The records are stored as columns of equal length: the loop works on lists, because one object per record would cost more than
    most functions do.

    :param values: the values of the records
    :param timestamps: the event time of each record in ms, or None for a record that has none
    :param keys: the key of each record on its way into a keyed operator, else None
    """

    __slots__ = ("keys", "timestamps", "values")

    def __init__(self, values: list[Any], timestamps: list[int | None], keys: list[Any] | None = None) -> None:
        self.values = values
        self.timestamps = timestamps
        self.keys = keys

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Batch({self.values!r}, {self.timestamps!r}, {self.keys!r})"

    def select(self, positions: Sequence[int]) -> Batch:
        """Return the records at the given positions.

        :param positions: the positions, in the order of the records in the result
        :returns: a batch of these records
        """
        keys = self.keys
        return Batch(
            list(map(self.values.__getitem__, positions)),
            list(map(self.timestamps.__getitem__, positions)),
            None if keys is None else list(map(keys.__getitem__, positions)),
        )


@dataclass(frozen=True)
class Watermark:
    """A statement that no record with this timestamp or an earlier one is expected any more.

    :param timestamp: event time in ms
    """

    timestamp: int


@dataclass(frozen=True)
class Idleness:
    """A statement that an input becomes idle or active. An idle input does not hold watermarks back.

    :param idle: True if the input is idle from here on, False if records come again
    """

    idle: bool


@dataclass(frozen=True)
class EndOfInput:
    """The end of the input: no element follows."""


Element: TypeAlias = Batch | Watermark | Idleness | EndOfInput
"""One element of a stream between two chains."""

END_OF_TIME = Watermark(MAX_TIMESTAMP)
END_OF_INPUT = EndOfInput()


class OutputTag(Generic[T]):
    """The name of a side output. A function gives ``tag, value`` to it, and ``get_side_output(tag)`` is the stream of these values.

    :param tag_id: the name, unique among the side outputs of an operator
    :param type_info: the type of its values; optional
    :raises StreamProgramError: if the name is empty
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: Any = None) -> None:
        if not tag_id:
            raise StreamProgramError("An OutputTag needs a name that is not empty, as in OutputTag('late').")
        self.tag_id = tag_id
        self.type_info = type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(("OutputTag", self.tag_id))

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
