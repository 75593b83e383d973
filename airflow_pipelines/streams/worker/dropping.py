"""Removal of single states from rows and from broadcast state, for a changed program that no longer has them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from typing import Any, NoReturn

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.description import BROADCAST_PREFIX
from airflow_pipelines.streams.state.rows import Row, contents_of, pack_row, times_of


def without_states(row: Row, names: Collection[str]) -> Row | None:
    """Return a row without the values of some states.

    :param row: the row of a key
    :param names: the names of the states
    :returns: the row without them; the same row if it had none of them, None if nothing is left
    :raises StreamProgramError: if a class of the remaining state no longer exists
    """
    values, timers, *key = _Tolerant(io.BytesIO(contents_of(row))).load()
    left = {slot: value for slot, value in values.items() if _name(slot) not in names}
    if len(left) == len(values):
        return row
    return pack_row(times_of(row), pickle.dumps((left, timers, *key), 5)) if left or timers else None


def without_broadcast_states(kept: bytes, names: Collection[str]) -> bytes:
    """Return the broadcast state of an operator without some of its states.

    :param kept: its broadcast states by name, pickled
    :param names: the names of the states to remove; broadcast states have their prefix
    :returns: the other states, pickled
    :raises StreamProgramError: if a class of the remaining state no longer exists
    """
    states = _Tolerant(io.BytesIO(kept)).load()
    return pickle.dumps({name: state for name, state in states.items() if BROADCAST_PREFIX + name not in names}, 5)


def _name(slot: Any) -> str:
    name: str = slot if isinstance(slot, str) else slot[0]
    return name


class _Tolerant(pickle.Unpickler):
    """An unpickler that also reads values of classes that no longer exist: such values are often those that are to be dropped."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return type(name, (_Gone,), {"__module__": module})


class _Gone:
    """A placeholder for a value whose class no longer exists."""

    def __new__(cls, *_arguments: Any, **_named: Any) -> _Gone:
        return super().__new__(cls)

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise StreamProgramError(
            f"The class {type(self).__module__}.{type(self).__qualname__} is not there any more, and there are values of it in"
            " state that the program still has. Bring the class back, or drop that state too."
        )
