"""The state of a program besides that by key: a header that anyone can read, and a part for the program alone."""

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
    """An operator that may have stored state.

    :param name: the name, for people
    :param is_keyed: True if it has keyed state
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    :param states: its keyed states, as far as its functions have asked for them, and its broadcast states; includes states that
        they no longer ask for
    :param broadcast_bytes: the size of the broadcast state in bytes
    :param shares: the share of each state in the size of the keyed state, from 0 to 1, estimated from a sample; empty if unknown
    :param keyed_bytes: the approximate size of the keyed state
    """

    name: str
    is_keyed: bool
    parallelism: int
    max_parallelism: int
    states: tuple[StateDescription, ...] = ()
    broadcast_bytes: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    keyed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StateHeader:
    """The part of a program's state that anyone can read.

    :param now_ms: processing time of the last step
    :param operators: the operators by uid
    :param numbers: the numbers of the operators in the database with the state by key, by uid
    """

    now_ms: int
    operators: Mapping[str, KeptOperator] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rest:
    """All state besides that by key.

    :param header: the part that anyone can read
    :param tasks: the state of the tasks, without rows, by the uid of the chain's head
    """

    header: StateHeader
    tasks: Mapping[str, list[TaskSnapshot]]

    def to_bytes(self) -> bytes:
        """Return the state as bytes.

        :returns: bytes for :meth:`from_bytes` and :func:`read_header`
        """
        header = json.dumps(asdict(self.header), separators=(",", ":")).encode()
        return b"".join((_MAGIC, len(header).to_bytes(_LENGTH, "big"), header, pickle.dumps(self.tasks, 5)))

    @staticmethod
    def from_bytes(data: bytes) -> Rest:
        """Read the state from bytes.

        :param data: the result of :meth:`to_bytes`
        :returns: the state
        """
        end = _find_end_of_header(data)
        return Rest(read_header(data), pickle.loads(memoryview(data)[end:]))  # noqa: S301 (the program's own storage)


def read_header(rest: bytes) -> StateHeader:
    """Read the part of a program's state that needs none of its classes.

    :param rest: the state besides that by key, as bytes
    :returns: its header
    :raises StreamProgramError: if the bytes have another format
    """
    end = _find_end_of_header(rest)
    parts = json.loads(rest[len(_MAGIC) + _LENGTH : end])
    operators = {uid: _operator(each) for uid, each in parts["operators"].items()}
    return StateHeader(parts["now_ms"], operators, parts.get("numbers", {}))


def _find_end_of_header(data: bytes) -> int:
    start = len(_MAGIC) + _LENGTH
    end = start + int.from_bytes(data[len(_MAGIC) : start], "big")
    if not data.startswith(_MAGIC) or end > len(data):
        raise StreamProgramError("The state of the stream program was written in another format, or is damaged.")
    return end


def _operator(parts: dict[str, Any]) -> KeptOperator:
    return KeptOperator(**{**parts, "states": tuple(StateDescription(**each) for each in parts["states"])})
