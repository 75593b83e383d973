"""What is kept of a program besides its pages of state: a part that anybody can read, and a part for the program alone."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.snapshots import TaskSnapshot
from airflow_pipelines.streams.state.description import StateDescription

_MAGIC = b"stream-state\x01"
_LENGTH = 8


@dataclass(frozen=True, slots=True)
class KeptOperator:
    """An operator of which something may be kept.

    :param name: for people
    :param is_keyed: whether it keeps state by key
    :param parallelism: number of tasks
    :param max_parallelism: number of key groups
    :param states: what it keeps by key, as far as its functions have asked for it, and what all its tasks have in common; also
        what they no longer ask for
    :param broadcast_bytes: how large is what all its tasks have in common
    """

    name: str
    is_keyed: bool
    parallelism: int
    max_parallelism: int
    states: tuple[StateDescription, ...] = ()
    broadcast_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StateHeader:
    """What anybody can read of a program's state.

    :param now_ms: processing time of the last step
    :param operators: by uid
    """

    now_ms: int
    operators: Mapping[str, KeptOperator] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rest:
    """All that is kept besides pages.

    :param header: what anybody can read
    :param tasks: what tasks keep, without pages, by the uid of the chain's head
    """

    header: StateHeader
    tasks: Mapping[str, list[TaskSnapshot]]

    def to_bytes(self) -> bytes:
        """The same as bytes.

        :returns: what :meth:`from_bytes` and :func:`read_header` read
        """
        header = json.dumps(asdict(self.header), separators=(",", ":")).encode()
        return b"".join((_MAGIC, len(header).to_bytes(_LENGTH, "big"), header, pickle.dumps(self.tasks, 5)))

    @staticmethod
    def from_bytes(data: bytes) -> Rest:
        """What is kept.

        :param data: what :meth:`to_bytes` gave
        :returns: the same
        """
        end = _end_of_header(data)
        return Rest(read_header(data), pickle.loads(memoryview(data)[end:]))  # noqa: S301 (the program's own storage)


def read_header(rest: bytes) -> StateHeader:
    """What of a program's state can be read without any of its classes.

    :param rest: what is kept besides pages
    :returns: its header
    :raises StreamProgramError: when these bytes are something else
    """
    end = _end_of_header(rest)
    parts = json.loads(rest[len(_MAGIC) + _LENGTH : end])
    return StateHeader(parts["now_ms"], {uid: _operator(each) for uid, each in parts["operators"].items()})


def _end_of_header(data: bytes) -> int:
    start = len(_MAGIC) + _LENGTH
    end = start + int.from_bytes(data[len(_MAGIC) : start], "big")
    if not data.startswith(_MAGIC) or end > len(data):
        raise StreamProgramError("The state of the stream program was written in another format, or is damaged.")
    return end


def _operator(parts: dict[str, Any]) -> KeptOperator:
    return KeptOperator(**{**parts, "states": tuple(StateDescription(**each) for each in parts["states"])})
