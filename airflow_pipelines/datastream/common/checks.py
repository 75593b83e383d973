"""Checks of what a program passes to a setter: each error names the parameter, shows what came, and says what is taken."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, TypeVar

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Enum)


def integer(parameter: str, value: Any, minimum: int | None = None, maximum: int | None = None) -> int:
    """An int within bounds.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :param minimum: smallest value that is taken
    :param maximum: largest value that is taken
    :returns: the value
    :raises TypeError: when it is no int
    :raises ValueError: when it is out of bounds
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{parameter} takes an int, not {_shown(value)}")
    _bounds(parameter, value, minimum, maximum)
    return value


def number(parameter: str, value: Any, minimum: float | None = None) -> float:
    """A finite int or float within bounds.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :param minimum: smallest value that is taken
    :returns: the value as a float
    :raises TypeError: when it is no number
    :raises ValueError: when it is below the minimum, or not finite
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{parameter} takes a number, not {_shown(value)}")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{parameter} takes a finite number, not {value}")
    _bounds(parameter, value, minimum, None)
    return float(value)


def boolean(parameter: str, value: Any) -> bool:
    """A bool.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :returns: the value
    :raises TypeError: when it is none
    """
    if not isinstance(value, bool):
        raise TypeError(f"{parameter} takes True or False, not {_shown(value)}")
    return value


def text(parameter: str, value: Any) -> str:
    """A str that is not empty.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :returns: the value
    :raises TypeError: when it is no str
    :raises ValueError: when it is empty
    """
    if not isinstance(value, str):
        raise TypeError(f"{parameter} takes a str, not {_shown(value)}")
    if not value:
        raise ValueError(f"{parameter} takes a str that is not empty")
    return value


def character(parameter: str, value: Any) -> str:
    """A str of one character.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :returns: the value
    :raises TypeError: when it is no str
    :raises ValueError: when it has not exactly one character
    """
    if len(text(parameter, value)) != 1:
        raise ValueError(f"{parameter} takes one character, not {value!r}")
    return str(value)


def member(parameter: str, value: Any, enumeration: type[_E]) -> _E:
    """A member of an enumeration.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :param enumeration: the enumeration
    :returns: the value
    :raises TypeError: when it is no member; the message lists them
    """
    if not isinstance(value, enumeration):
        members = ", ".join(f"{enumeration.__name__}.{each.name}" for each in enumeration)
        raise TypeError(f"{parameter} takes one of {members}, not {_shown(value)}")
    return value


def instance(parameter: str, value: _T, expected: type[Any], hint: str = "") -> _T:
    """An object of a class.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :param expected: the class
    :param hint: how to make such an object, appended to the message
    :returns: the value
    :raises TypeError: when it is of another class
    """
    if not isinstance(value, expected):
        raise TypeError(f"{parameter} takes a {expected.__name__}, not {_shown(value)}{'; ' + hint if hint else ''}")
    return value


def function(parameter: str, value: Any) -> Callable[..., Any]:
    """Something that can be called.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :returns: the value
    :raises TypeError: when it cannot be called
    """
    if not callable(value):
        raise TypeError(f"{parameter} takes a function, not {_shown(value)}")
    return value  # type: ignore[no-any-return]


def charset(parameter: str, value: Any) -> str:
    """The name of a character set that Python knows.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :returns: the value
    :raises ValueError: when there is no such character set
    """
    try:
        "".encode(text(parameter, value))
    except LookupError:
        raise ValueError(
            f"{parameter}: Python knows no character set {value!r}; use a name such as 'UTF-8' or 'ISO-8859-1'"
        ) from None
    return str(value)


def absolute_path(parameter: str, value: Any) -> str:
    """The absolute path of a local folder, as a path or a ``file:`` URI.

    :param parameter: name of the parameter, for the message
    :param value: what the program passed
    :returns: the path
    :raises ValueError: when it is relative, or a URI of another scheme
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


def _shown(value: Any) -> str:
    return "None" if value is None else f"{value!r:.60} ({type(value).__name__})"
