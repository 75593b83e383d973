"""Values of elements. The value that one operator gives to the next is independent, as if it had been sent.

Operators of a chain pass Python objects on. Otherwise a function that gives a list and then changes it, or two consumers of one
stream of which one changes its input, would see each other's changes. Immutable values are passed as they are, others are copied.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import fractions
import pickle
import uuid
from typing import Any

from airflow_pipelines.streams.culprits import culprit
from airflow_pipelines.streams.errors import StreamProgramError

ATOMIC: frozenset[type] = frozenset({
    type(None), bool, int, float, complex, str, bytes, range, type, decimal.Decimal, fractions.Fraction, uuid.UUID,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
})  # fmt: skip
"""The types whose values are immutable and contain nothing mutable."""


class CannotCopyError(StreamProgramError):
    """An error raised for a value that cannot be given to the next operator.

    :param value: the value
    :param reason: the error that copying raised
    """

    def __init__(self, value: Any, reason: Exception) -> None:
        super().__init__(value, reason)
        self.value = value
        self._reason = reason

    def __str__(self) -> str:
        path, part = culprit(self.value, isolate)
        place = f" Its part at {path} is of type {type(part).__name__}:" if path else ""
        return (
            f"A value of type {type(self.value).__name__} cannot be given on, since the next operator gets a copy.{place}"
            f" {self._reason}. Give on what it is made of; connections, locks and the like are made in open()."
        )


def isolate(value: Any) -> Any:
    """Return a value that shares nothing mutable with the given one.

    :param value: any value
    :returns: the value itself if it is immutable, else a copy
    """
    kind = value.__class__
    if kind in ATOMIC:
        return value
    try:
        if kind is tuple:
            for item in value:
                if item.__class__ not in ATOMIC:
                    return tuple([isolate(item) for item in value])
            return value
        if kind is list:
            return [isolate(item) for item in value]
        if kind is dict:
            return {isolate(key): isolate(item) for key, item in value.items()}
    except CannotCopyError as error:
        error.value = value
        raise
    if getattr(kind, "is_immutable_value", False) or isinstance(value, enum.Enum):
        return value
    return _copy(value)


def _copy(value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(value, 5))  # noqa: S301 (what was pickled on the same line)
    except (pickle.PicklingError, AttributeError, TypeError):
        # A class within a function cannot be pickled by name; its objects can still be deep-copied.
        try:
            return copy.deepcopy(value)
        except Exception as error:  # noqa: BLE001 (whatever it is, the message has it)
            raise CannotCopyError(value, error) from None


def isolate_all(values: list[Any]) -> list[Any]:
    """Isolate many values, as :func:`isolate` does for one.

    :param values: any values
    :returns: the list itself if all values are immutable, else a new list
    """
    if set(map(type, values)) <= ATOMIC:
        return values
    return [value if value.__class__ in ATOMIC else isolate(value) for value in values]
