"""Errors of user functions. They reach the user as they were raised: with the element, and without the frames of this package."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from airflow_pipelines.streams.errors import ExplainedError

_MACHINERY = str(Path(__file__).parent.parent)
_NOTED = "_stream_operator"
_LONGEST = 500


def note_element(error: BaseException, name: str, value: Any, what: str = "element") -> None:
    """Add a note to an error that names the operator and the element. The innermost operator wins.

    :param error: the error, which gets the note
    :param name: the name of the operator
    :param value: the element
    :param what: the word for the value in the note
    """
    if getattr(error, _NOTED, None) is not None:
        return
    try:
        text = repr(value)
    except Exception as failure:  # noqa: BLE001 (the note about an error must not hide it)
        text = f"<{type(value).__name__}, whose repr raised {type(failure).__name__}>"
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + " ..."
    _note(error, name, f"in operator {name!r}, {what}: {text}")


def last_given(values: list[Any], iterator: Iterator[Any]) -> Any:
    """Return the element at which an iteration over elements stopped.

    :param values: the elements
    :param iterator: an iterator over this list
    :returns: the element that the iterator gave last
    """
    return values[len(values) - operator.length_hint(iterator) - 1]


def note_operator(error: BaseException, name: str, doing: str) -> None:
    """Add a note to an error that names the operator, where there is no element.

    :param error: the error, which gets the note
    :param name: the name of the operator
    :param doing: the action during which the error was raised
    """
    if getattr(error, _NOTED, None) is None:
        _note(error, name, f"in operator {name!r}, {doing}")


def _note(error: BaseException, name: str, text: str) -> None:
    setattr(error, _NOTED, name)
    error.add_note(text)


def user_traceback(error: BaseException) -> TracebackType | None:
    """Return the part of an error's traceback that concerns the user's code.

    :param error: the error
    :returns: the traceback without the frames of this package before the first frame of other code, or all of it if there is no
        other code. For an :class:`ExplainedError`, the frames of this package after the last frame of other code are also left out,
        and the result is None if there is no other code
    """
    frames = list(_iterate_frames(error.__traceback__))
    users = [number for number, each in enumerate(frames) if not is_machinery(each.tb_frame.f_code.co_filename)]
    if not isinstance(error, ExplainedError):
        return frames[users[0]] if users else error.__traceback__
    if not users:
        return None
    frames[users[-1]].tb_next = None
    return frames[users[0]]


def is_machinery(filename: str) -> bool:
    """Return True if a frame belongs to this package.

    :param filename: the file of its code
    :returns: False for code of users and of other packages
    """
    return filename.startswith(_MACHINERY)


def failed_operator(error: BaseException) -> str:
    """Return the name of the operator in which an error was raised.

    :param error: the error
    :returns: the operator's name; empty if none was noted
    """
    name: str | None = getattr(error, _NOTED, None)
    return name or ""


def _iterate_frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
