"""Removal of single states from pages and from broadcast state, for a changed program that no longer has them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from typing import Any, NoReturn

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.description import BROADCAST_PREFIX
from airflow_pipelines.streams.state.page_layout import NEVER
from airflow_pipelines.streams.state.pages import PageRows, Row, StoredPage, frame_entry, kept_in, key_in


def without_states(page: StoredPage, names: Collection[str]) -> StoredPage | None:
    """Return a page without the values of some states.

    :param page: a stored page
    :param names: the names of the states
    :returns: the page without them; the same page if it had none of them, None if nothing is left
    :raises StreamProgramError: if a class of the remaining state no longer exists
    """
    rows = PageRows.of(page.data)
    changes: dict[bytes, Row | None] = {}
    for number, data in enumerate(rows.data):
        values, timers, *key = _Tolerant(io.BytesIO(kept_in(data))).load()
        left = {slot: value for slot, value in values.items() if _name(slot) not in names}
        if len(left) < len(values):
            changes[key_in(data)] = _row(rows, number, (left, timers, *key)) if left or timers else None
    if not changes:
        return page
    rows.change(changes)
    return rows.assemble() if rows else None


def without_broadcast_states(kept: bytes, names: Collection[str]) -> bytes:
    """Return the broadcast state of an operator without some of its states.

    :param kept: its broadcast states by name, pickled
    :param names: the names of the states to remove; broadcast states have their prefix
    :returns: the other states, pickled
    :raises StreamProgramError: if a class of the remaining state no longer exists
    """
    states = _Tolerant(io.BytesIO(kept)).load()
    return pickle.dumps({name: state for name, state in states.items() if BROADCAST_PREFIX + name not in names}, 5)


def _row(rows: PageRows, number: int, kept: tuple[Any, ...]) -> Row:
    event, processing, expiry = (NEVER if times is None else times[number] for times in rows.times)
    return Row(rows.bits[number], frame_entry(key_in(rows.data[number]), pickle.dumps(kept, 5)), (event, processing, expiry))


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
