"""Validation of the arguments of operators and sensors after their templates are rendered.

A template that found nothing, or a task that returned nothing, gives ``None``, an empty text or the text ``None``. None of them
ever means "all", "the default" or a thing of that name: the task fails, without retries, and names the argument.
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
"""The texts that Jinja renders for a missing value."""
_TEMPLATE: Final = ("{{", "{%")
T = TypeVar("T")


def text(name: str, value: Any) -> str:
    """Return the value as a text, which is required.

    :param name: the argument's name
    :param value: the rendered value
    :raises AirflowFailException: if it is empty, lost or no text
    """
    if is_lost(value):
        raise _empty(name, value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if not isinstance(value, str):
        raise _make_refusal(name, value, f", which is no text but of type {type(value).__name__}")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return the value as texts, none of which may be empty; there may be none.

    :param name: the argument's name
    :param value: the rendered value: a list, or one text
    :raises AirflowFailException: if it is no list of texts, or one of them is empty or lost
    """
    if isinstance(value, str):
        return (text(name, value),)
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise _make_refusal(name, value, ", which is no list of texts")
    return tuple(text(f"{name}[{position}]", item) for position, item in enumerate(value))


def choice(name: str, value: Any, known: Sequence[str]) -> str:
    """Return the value, which must be one of some words.

    :param name: the argument's name
    :param value: the rendered value
    :param known: the words
    :raises AirflowFailException: if it is none of them
    """
    if is_lost(value):
        raise _empty(name, value, known)
    if value not in known:
        raise _make_refusal(name, value, f"; known: {', '.join(known)}")
    return str(value)


def bootstrap_policy(name: str, value: Any) -> BootstrapPolicy:
    """Return the value as a bootstrap policy.

    :param name: the argument's name
    :param value: the rendered value: a member, or its name in any case
    :raises AirflowFailException: if it is none
    """
    if isinstance(value, BootstrapPolicy):
        return value
    words = [str(member.value) for member in BootstrapPolicy]
    folded = value.lower() if isinstance(value, str) and not is_lost(value) else value
    return BootstrapPolicy.from_str(choice(name, folded, words))


def statuses(name: str, value: Any) -> tuple[str, ...]:
    """Return the names of one or more statuses of pipelines.

    :param name: the argument's name
    :param value: the rendered value: a status or several, as members or their names in any case
    :raises AirflowFailException: if there is none, or one is unknown
    """
    several = (value,) if isinstance(value, PipelineStatus) else value
    if is_lost(value) or not several:
        raise _empty(name, value)
    names = [item.name if isinstance(item, PipelineStatus) else item for item in several] if not isinstance(value, str) else value
    try:
        return tuple(PipelineStatus.from_str(item).name for item in texts(name, names))
    except ValueError as error:
        raise _make_refusal(name, value, f": {error}") from None


def whole_number(name: str, value: Any, *, least: int) -> int:
    """Return the value as a whole number; a template gives it as text.

    :param name: the argument's name
    :param value: the rendered value
    :param least: the smallest valid number
    :raises AirflowFailException: if it is none, or too small
    """
    if is_lost(value):
        raise _empty(name, value)
    parsed = number(name, value, least=least)
    if parsed != int(parsed):
        raise _make_refusal(name, value, ", which is no whole number")
    return int(parsed)


def number(name: str, value: Any, *, least: float) -> float:
    """Return the value as a number; a template gives it as text.

    :param name: the argument's name
    :param value: the rendered value
    :param least: the smallest valid number
    :raises AirflowFailException: if it is none, or too small
    """
    if is_lost(value):
        raise _empty(name, value)
    try:
        parsed = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        parsed = math.nan
    if not math.isfinite(parsed):
        raise _make_refusal(name, value, ", which is no number")
    if parsed < least:
        raise _make_refusal(name, value, f", and should be at least {least:g}")
    return parsed


def json_value(name: str, value: Any) -> Any:
    """Return the value as a JSON value: the text of a template, or the object that another task returned.

    :param name: the argument's name
    :param value: the rendered value
    :raises AirflowFailException: if it is empty or lost, or a text that is no JSON
    """
    if is_lost(value):
        raise _empty(name, value)
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise _make_refusal(name, value, f", which is no JSON: {error}") from error
    if parsed is None:
        raise _empty(name, value)
    return parsed


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return the value as a JSON object.

    :param name: the argument's name
    :param value: the rendered value: a mapping, or its text
    :raises AirflowFailException: if it is none
    """
    parsed = json_value(name, value)
    if not isinstance(parsed, Mapping):
        raise _make_refusal(name, value, ", which is no JSON object")
    return parsed


def present(name: str, value: Any) -> None:
    """Check that a value is not lost; it may be an empty list or mapping.

    :param name: the argument's name
    :param value: the rendered value
    :raises AirflowFailException: if it is lost
    """
    if value is None or value == "None":
        raise _empty(name, value)


def collect_given(**arguments: Any) -> frozenset[str]:
    """Return the names of the arguments that a DAG gives: one of them that is rendered as None later is lost.

    :param arguments: the arguments of a constructor whose default is None
    """
    return frozenset(name for name, value in arguments.items() if value is not None)


def refuse_when_parsed(check: Callable[..., T], name: str, value: Any, *more: Any) -> None:
    """Reject an invalid word when the DAG file is parsed. A template is checked when the task runs.

    :param check: the check, such as :func:`choice`
    :param name: the argument's name
    :param value: the value in the DAG
    :param more: other arguments of the check
    :raises ValueError: if the value can never be valid
    """
    if not isinstance(value, str) or any(mark in value for mark in _TEMPLATE):
        return
    try:
        check(name, value, *more)
    except AirflowFailException as error:
        raise ValueError(str(error)) from None


def is_lost(value: Any) -> bool:
    """Return True if a value is the result of a template or a task's output that is missing."""
    return value is None or (isinstance(value, str) and value.strip() in _LOST)


def _empty(name: str, value: Any, known: Sequence[str] = ()) -> AirflowFailException:
    words = f"; known: {', '.join(known)}" if known else ""
    return AirflowFailException(
        f"{name} is empty ({value!r}): what it is made of, a template or the result of another task, came to nothing{words}"
    )


def _make_refusal(name: str, value: Any, why: str) -> AirflowFailException:
    shown = repr(value)
    return AirflowFailException(f"{name} is {shown if len(shown) <= 200 else f'{shown[:200]}...'}{why}")
