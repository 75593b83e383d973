"""Errors of user functions reach the user as they were raised: with the element, and without the frames of the machinery."""

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
    """Say in which operator and for which element an error was raised. The innermost operator wins.

    :param error: the error, which gets a note
    :param name: of the operator
    :param value: the element
    :param what: what the value is
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
    """The element at which a walk over elements stopped.

    :param values: the elements
    :param iterator: an iterator over this list
    :returns: what it has given last
    """
    return values[len(values) - operator.length_hint(iterator) - 1]


def note_operator(error: BaseException, name: str, doing: str) -> None:
    """Say in which operator an error was raised, where there is no element.

    :param error: the error, which gets a note
    :param name: of the operator
    :param doing: what it did
    """
    if getattr(error, _NOTED, None) is None:
        _note(error, name, f"in operator {name!r}, {doing}")


def _note(error: BaseException, name: str, text: str) -> None:
    setattr(error, _NOTED, name)
    error.add_note(text)


def user_traceback(error: BaseException) -> TracebackType | None:
    """The part of an error's traceback that is about the user's code.

    :param error: the error
    :returns: its traceback without the frames of this package before the first frame of other code, all of it when there is no
        other. Of an error whose message says what the program did wrong, there are no frames of this package after the last one
        of other code either
    """
    frames = list(_frames(error.__traceback__))
    users = [number for number, each in enumerate(frames) if not is_machinery(each.tb_frame.f_code.co_filename)]
    if not isinstance(error, ExplainedError):
        return frames[users[0]] if users else error.__traceback__
    if not users:
        return None
    frames[users[-1]].tb_next = None
    return frames[users[0]]


def is_machinery(filename: str) -> bool:
    """Whether a frame belongs to this package.

    :param filename: of its code
    :returns: False for code of users and of other packages
    """
    return filename.startswith(_MACHINERY)


def failed_operator(error: BaseException) -> str:
    """The operator in which an error was raised.

    :param error: the error
    :returns: the operator's name; empty when none was noted
    """
    name: str | None = getattr(error, _NOTED, None)
    return name or ""


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
