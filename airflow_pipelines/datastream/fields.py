"""Access to fields of elements by number or name: tuples, lists, rows, maps and dataclasses. A plain value is its own field 0."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError

_PLAIN = (int, float, str, bytes, complex)


def field_of(value: Any, field: int | str) -> Any:
    """Return the value of one field of an element.

    :param value: an element
    :param field: number or name
    :returns: its value
    :raises StreamProgramError: if there is no such field
    """
    if isinstance(value, _PLAIN) or not (hasattr(value, "__getitem__") or hasattr(value, "__dict__")):
        if field == 0:
            return value
        raise StreamProgramError(f"The element {value!r} has no field {field!r}: it is a plain value, which is its own field 0.")
    try:
        if isinstance(field, str) and not hasattr(value, "keys") and hasattr(value, field):
            return getattr(value, field)
        return value[field]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise StreamProgramError(f"The element {value!r} has no field {field!r}.") from error


def with_field(value: Any, field: int | str, new: Any) -> Any:
    """Return a copy of an element with another value in one field.

    :param value: an element
    :param field: number or name
    :param new: the new value of the field
    :returns: a copy of the element
    """
    if isinstance(value, _PLAIN):
        return new
    if isinstance(value, tuple):
        if isinstance(field, str):
            return value._replace(**{field: new})  # type: ignore[attr-defined]
        at = field if field >= 0 else len(value) + field
        parts = [*value[:at], new, *value[at + 1 :]]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{str(field): new})
    copied = copy.copy(value)
    copied[field] = new
    return copied


def summing(field: int | str) -> Callable[[Any, Any], Any]:
    """Return a function that sums one field; the other fields are those of the first element.

    :param field: number or name
    :returns: a function that combines two elements into one
    """
    return lambda a, b: with_field(a, field, field_of(a, field) + field_of(b, field))


def extreme(field: int | str, better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Return a function that keeps the best value of one field; the other fields are those of the first element.

    :param field: number or name
    :param better: the function that returns True if its first argument is better than its second
    :returns: a function that combines two elements into one
    """

    def reduce(a: Any, b: Any) -> Any:
        new = field_of(b, field)
        return with_field(a, field, new) if better(new, field_of(a, field)) else a

    return reduce


def extreme_element(field: int | str, better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Return a function that keeps the element with the best value of one field. The first of equal elements wins.

    :param field: number or name
    :param better: the function that returns True if its first argument is better than its second
    :returns: a function that combines two elements into one
    """
    return lambda a, b: b if better(field_of(b, field), field_of(a, field)) else a
