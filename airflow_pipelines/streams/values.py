"""Values of elements: what one operator gives to the next is a value of its own, as if it had travelled.

Operators of a chain pass Python objects on. A function that gives a list and goes on to change it, or two consumers of one
stream of which one
changes what it got, would otherwise see each other's changes. Values that cannot change are passed as they are, others are copied.
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
"""Types whose values never change and contain nothing that does."""


class CannotCopyError(StreamProgramError):
    """A value cannot be given to the next operator.

    :param value: the value
    :param reason: why it cannot be copied
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
    """A value that shares nothing that can change with another one.

    :param value: any value
    :returns: the value itself where nothing of it can change, else a copy
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
        # A class inside of a function cannot be found by its name; what it holds can still be copied.
        try:
            return copy.deepcopy(value)
        except Exception as error:  # noqa: BLE001 (whatever it is, the message has it)
            raise CannotCopyError(value, error) from None


def isolate_all(values: list[Any]) -> list[Any]:
    """The same for many values.

    :param values: any values
    :returns: the list itself where none of them can change, else a new list
    """
    if set(map(type, values)) <= ATOMIC:
        return values
    return [value if value.__class__ in ATOMIC else isolate(value) for value in values]
