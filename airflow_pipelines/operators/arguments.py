"""Checks of what the arguments of operators and sensors came to, once their templates are rendered.

A template that found nothing, or a task that returned nothing, gives ``None``, an empty text or the text ``None``. None of them
ever means "all", "the default" or a thing of that name: the task fails, without retries, and says which argument it was.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus

_LOST: Final = ("", "None")
"""What Jinja makes of what is not there."""
_TEMPLATE: Final = ("{{", "{%")
T = TypeVar("T")


def text(name: str, value: Any) -> str:
    """A text that has to be there.

    :param name: the argument's name
    :param value: what it came to
    :raises AirflowFailException: it is empty, lost or no text
    """
    if is_lost(value):
        raise _empty(name, value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if not isinstance(value, str):
        raise _refused(name, value, f", which is no text but of type {type(value).__name__}")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Texts of which none may be empty; there may be none.

    :param name: the argument's name
    :param value: what it came to: a list, or one text
    :raises AirflowFailException: it is no list of texts, or one of them is empty or lost
    """
    if isinstance(value, str):
        return (text(name, value),)
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise _refused(name, value, ", which is no list of texts")
    return tuple(text(f"{name}[{position}]", item) for position, item in enumerate(value))


def choice(name: str, value: Any, known: Sequence[str]) -> str:
    """One of some words.

    :param name: the argument's name
    :param value: what it came to
    :param known: the words
    :raises AirflowFailException: it is none of them
    """
    if is_lost(value):
        raise _empty(name, value, known)
    if value not in known:
        raise _refused(name, value, f"; known: {', '.join(known)}")
    return str(value)


def bootstrap_policy(name: str, value: Any) -> BootstrapPolicy:
    """A bootstrap policy.

    :param name: the argument's name
    :param value: what it came to: a member, or its name in any case
    :raises AirflowFailException: it is none
    """
    if isinstance(value, BootstrapPolicy):
        return value
    words = [str(member.value) for member in BootstrapPolicy]
    folded = value.lower() if isinstance(value, str) and not is_lost(value) else value
    return BootstrapPolicy.from_str(choice(name, folded, words))


def statuses(name: str, value: Any) -> tuple[str, ...]:
    """The names of one or more statuses of pipelines.

    :param name: the argument's name
    :param value: what it came to: a status or several, as members or their names in any case
    :raises AirflowFailException: there is none, or one is unknown
    """
    several = (value,) if isinstance(value, PipelineStatus) else value
    if is_lost(value) or not several:
        raise _empty(name, value)
    names = [item.name if isinstance(item, PipelineStatus) else item for item in several] if not isinstance(value, str) else value
    try:
        return tuple(PipelineStatus.from_str(item).name for item in texts(name, names))
    except ValueError as error:
        raise _refused(name, value, f": {error}") from None


def whole_number(name: str, value: Any, *, least: int) -> int:
    """A whole number, which a template gives as text.

    :param name: the argument's name
    :param value: what it came to
    :param least: the smallest one that means something
    :raises AirflowFailException: it is none, or too small
    """
    if is_lost(value):
        raise _empty(name, value)
    found = number(name, value, least=least)
    if found != int(found):
        raise _refused(name, value, ", which is no whole number")
    return int(found)


def number(name: str, value: Any, *, least: float) -> float:
    """A number, which a template gives as text.

    :param name: the argument's name
    :param value: what it came to
    :param least: the smallest one that means something
    :raises AirflowFailException: it is none, or too small
    """
    if is_lost(value):
        raise _empty(name, value)
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise _refused(name, value, ", which is no number")
    if found < least:
        raise _refused(name, value, f", and should be at least {least:g}")
    return found


def json_value(name: str, value: Any) -> Any:
    """A JSON value: what a template wrote as text, or the object that another task returned.

    :param name: the argument's name
    :param value: what it came to
    :raises AirflowFailException: it is empty or lost, or a text that is no JSON
    """
    if is_lost(value):
        raise _empty(name, value)
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError as error:
        raise _refused(name, value, f", which is no JSON: {error}") from error
    if found is None:
        raise _empty(name, value)
    return found


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A JSON object.

    :param name: the argument's name
    :param value: what it came to: a mapping, or its text
    :raises AirflowFailException: it is none
    """
    found = json_value(name, value)
    if not isinstance(found, Mapping):
        raise _refused(name, value, ", which is no JSON object")
    return found


def present(name: str, value: Any) -> None:
    """Any value that is not lost; it may be an empty list or mapping.

    :param name: the argument's name
    :param value: what it came to
    :raises AirflowFailException: it is lost
    """
    if value is None or value == "None":
        raise _empty(name, value)


def given(**arguments: Any) -> frozenset[str]:
    """The names of the arguments that a DAG gives: what comes to None later was given, and is lost.

    :param arguments: the arguments of a constructor whose default is None
    """
    return frozenset(name for name, value in arguments.items() if value is not None)


def refuse_when_parsed(check: Callable[..., T], name: str, value: Any, *more: Any) -> None:
    """Let a wrong word in a DAG's file be an error of the file already. What is a template is checked when the task runs.

    :param check: the check, such as :func:`choice`
    :param name: the argument's name
    :param value: what the DAG says
    :param more: other arguments of the check
    :raises ValueError: the value can never be right
    """
    if not isinstance(value, str) or any(mark in value for mark in _TEMPLATE):
        return
    try:
        check(name, value, *more)
    except AirflowFailException as error:
        raise ValueError(str(error)) from None


def is_lost(value: Any) -> bool:
    """Whether a value is what comes of a template or a task's output that is not there."""
    return value is None or (isinstance(value, str) and value.strip() in _LOST)


def _empty(name: str, value: Any, known: Sequence[str] = ()) -> AirflowFailException:
    words = f"; known: {', '.join(known)}" if known else ""
    return AirflowFailException(
        f"{name} is empty ({value!r}): what it is made of, a template or the result of another task, came to nothing{words}"
    )


def _refused(name: str, value: Any, why: str) -> AirflowFailException:
    shown = repr(value)
    return AirflowFailException(f"{name} is {shown if len(shown) <= 200 else f'{shown[:200]}...'}{why}")
