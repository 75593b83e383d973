"""Checks of values that a program passes to a setter. Each error names the parameter, shows the value, and lists what is valid."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, TypeVar

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Enum)


def integer(parameter: str, value: Any, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return an int after checking its bounds.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :param minimum: smallest valid value; None for no limit
    :param maximum: largest valid value; None for no limit
    :returns: the value
    :raises TypeError: if it is not an int
    :raises ValueError: if it is out of bounds
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{parameter} takes an int, not {_format_value(value)}")
    _bounds(parameter, value, minimum, maximum)
    return value


def number(parameter: str, value: Any, minimum: float | None = None) -> float:
    """Return a finite int or float after checking its bounds.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :param minimum: smallest valid value; None for no limit
    :returns: the value as a float
    :raises TypeError: if it is not a number
    :raises ValueError: if it is below the minimum, or not finite
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{parameter} takes a number, not {_format_value(value)}")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{parameter} takes a finite number, not {value}")
    _bounds(parameter, value, minimum, None)
    return float(value)


def boolean(parameter: str, value: Any) -> bool:
    """Return a bool after checking its type.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :returns: the value
    :raises TypeError: if it is not a bool
    """
    if not isinstance(value, bool):
        raise TypeError(f"{parameter} takes True or False, not {_format_value(value)}")
    return value


def text(parameter: str, value: Any) -> str:
    """Return a non-empty str after checking it.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :returns: the value
    :raises TypeError: if it is not a str
    :raises ValueError: if it is empty
    """
    if not isinstance(value, str):
        raise TypeError(f"{parameter} takes a str, not {_format_value(value)}")
    if not value:
        raise ValueError(f"{parameter} takes a str that is not empty")
    return value


def character(parameter: str, value: Any) -> str:
    """Return a str of one character after checking it.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :returns: the value
    :raises TypeError: if it is not a str
    :raises ValueError: if it does not have exactly one character
    """
    if len(text(parameter, value)) != 1:
        raise ValueError(f"{parameter} takes one character, not {value!r}")
    return str(value)


def member(parameter: str, value: Any, enumeration: type[_E]) -> _E:
    """Return a member of an enumeration after checking it.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :param enumeration: the enumeration
    :returns: the value
    :raises TypeError: if it is not a member; the message lists the members
    """
    if not isinstance(value, enumeration):
        members = ", ".join(f"{enumeration.__name__}.{each.name}" for each in enumeration)
        raise TypeError(f"{parameter} takes one of {members}, not {_format_value(value)}")
    return value


def instance(parameter: str, value: _T, expected: type[Any], hint: str = "") -> _T:
    """Return an object after checking its class.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :param expected: the class
    :param hint: the way to make such an object, appended to the message
    :returns: the value
    :raises TypeError: if it is of another class
    """
    if not isinstance(value, expected):
        raise TypeError(f"{parameter} takes a {expected.__name__}, not {_format_value(value)}{'; ' + hint if hint else ''}")
    return value


def function(parameter: str, value: Any) -> Callable[..., Any]:
    """Return a callable after checking it.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :returns: the value
    :raises TypeError: if it is not callable
    """
    if not callable(value):
        raise TypeError(f"{parameter} takes a function, not {_format_value(value)}")
    return value  # type: ignore[no-any-return]


def charset(parameter: str, value: Any) -> str:
    """Return the name of a character set after checking that Python knows it.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :returns: the value
    :raises ValueError: if there is no such character set
    """
    try:
        "".encode(text(parameter, value))
    except LookupError:
        raise ValueError(
            f"{parameter}: Python knows no character set {value!r}; use a name such as 'UTF-8' or 'ISO-8859-1'"
        ) from None
    return str(value)


def absolute_path(parameter: str, value: Any) -> str:
    """Return the absolute path of a local folder, given as a path or a ``file:`` URI.

    :param parameter: name of the parameter, for the message
    :param value: the value that the program passed
    :returns: the path
    :raises ValueError: if it is relative, or a URI of another scheme
    """
    path = text(parameter, value).removeprefix("file://")
    if "://" in path or not PurePosixPath(path).is_absolute():
        raise ValueError(f"{parameter} takes the absolute path of a local folder such as '/var/tmp/state', not {value!r}")
    return path


def _bounds(parameter: str, value: float, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise ValueError(f"{parameter} must be at least {minimum}, not {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{parameter} must be at most {maximum}, not {value}")


def _format_value(value: Any) -> str:
    return "None" if value is None else f"{value!r:.60} ({type(value).__name__})"
