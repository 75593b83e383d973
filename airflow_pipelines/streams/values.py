"""Values of elements. The value that one operator gives to the next is independent, as if it had been sent.

Operators of a chain pass Python objects on. Otherwise a function that gives a list and then changes it, or two consumers of one
stream of which one changes its input, would see each other's changes. Immutable values are passed as they are. Of others the
mutable parts are copied, part by part; an object that occurs twice in a value occurs twice in the copy, as with :mod:`copy`.
"""

from __future__ import annotations

import collections
import copy
import copyreg
import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import pickle
import re
import struct
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from operator import is_
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType
from typing import Any, TypeAlias

from airflow_pipelines.streams.culprits import culprit
from airflow_pipelines.streams.errors import StreamProgramError

ATOMIC: frozenset[type] = frozenset({
    type(None), bool, int, float, complex, str, bytes, range, type, decimal.Decimal, fractions.Fraction, uuid.UUID,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
})  # fmt: skip
"""The types whose values are immutable and contain nothing mutable."""

_is_superset_of_atomic = ATOMIC.issuperset
Memo: TypeAlias = dict[int, Any]
"""The copies of the parts of one value, by the ids of these parts."""
Copier: TypeAlias = Callable[[Any, Memo], Any]
"""A function that returns an independent copy of a value, or the value itself if it is immutable."""

_IMMUTABLE_BASES = (
    enum.Enum, type, FunctionType, BuiltinFunctionType, re.Pattern, pathlib.PurePath, zoneinfo.ZoneInfo,
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
)  # fmt: skip
_PICKLING = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__", "__copy__", "__deepcopy__")
"""The methods by which a class says how its objects are pickled and copied. Named tuples have ``__getnewargs__``."""


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
    :raises CannotCopyError: if it has a part that can neither be copied nor pickled
    """
    kind = value.__class__
    if kind in ATOMIC or (kind is tuple and are_atomic(value)):
        return value
    try:
        return (_COPIERS.get(kind) or _choose_copier(kind))(value, {})
    except CannotCopyError as error:
        error.value = value
        raise


def isolate_all(values: list[Any]) -> list[Any]:
    """Isolate many values, as :func:`isolate` does for one.

    :param values: any values
    :returns: the list itself if all values are immutable, else a new list
    """
    if are_atomic(values):
        return values
    return [value if value.__class__ in ATOMIC else isolate(value) for value in values]


def are_atomic(values: Iterable[Any]) -> bool:
    """Return True if all values are of types in :data:`ATOMIC`.

    :param values: the values
    :returns: True if none is of another type
    """
    return _is_superset_of_atomic(map(type, values))


def register_copier(kind: type, copier: Copier) -> None:
    """Register how values of a class are copied. It is not used for subclasses.

    :param kind: the class
    :param copier: the function that copies; it copies parts by :func:`copy_items`
    """
    _COPIERS[kind] = copier


def copy_items(items: list[Any], memo: Memo) -> list[Any]:
    """Return independent copies of the parts of a value.

    :param items: the parts
    :param memo: the copies that were made for the value so far
    :returns: a new list
    """
    return items.copy() if are_atomic(items) else [_copy_part(item, memo) for item in items]


def _copy_part(value: Any, memo: Memo) -> Any:
    kind = value.__class__
    if kind in ATOMIC:
        return value
    known = memo.get(id(value))
    return (_COPIERS.get(kind) or _choose_copier(kind))(value, memo) if known is None else known


def _copy_list(value: list[Any], memo: Memo) -> list[Any]:
    copied: list[Any] = []
    memo[id(value)] = copied  # before its items: one of them may contain the list
    copied += copy_items(value, memo)
    return copied


def _copy_dict(value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    copied = memo[id(value)] = value.copy()
    if not are_atomic(value.values()):
        for key, item in value.items():
            if item.__class__ not in ATOMIC:
                copied[key] = _copy_part(item, memo)
    return copied if are_atomic(value) else _copy_keys(copied, memo)


def _copy_keys(value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    """Replace the keys of a dict that have mutable parts by copies."""
    keys = list(value)
    copies = copy_items(keys, memo)
    if not all(map(is_, keys, copies)):
        items = list(zip(copies, value.values(), strict=True))
        value.clear()
        value.update(items)
    return value


def _copy_tuple(value: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    if are_atomic(value):
        return value
    copies = copy_items(list(value), memo)
    if all(map(is_, value, copies)):
        return value
    known: tuple[Any, ...] | None = memo.get(id(value))  # a list in it may contain the tuple
    if known is None:
        known = memo[id(value)] = tuple.__new__(value.__class__, copies)
    return known


def _copy_frozenset(value: frozenset[Any], memo: Memo) -> frozenset[Any]:
    items = list(value)
    copies = copy_items(items, memo)
    return value if all(map(is_, items, copies)) else frozenset(copies)


def _copy_set(value: set[Any], memo: Memo) -> set[Any]:
    copied = memo[id(value)] = set(copy_items(list(value), memo))
    return copied


def _copy_bytearray(value: bytearray, memo: Memo) -> bytearray:
    copied = memo[id(value)] = bytearray(value)
    return copied


def _copy_deque(value: collections.deque[Any], memo: Memo) -> collections.deque[Any]:
    copied = memo[id(value)] = collections.deque(maxlen=value.maxlen)
    copied.extend(copy_items(list(value), memo))
    return copied


def _keep(value: Any, memo: Memo) -> Any:  # noqa: ARG001
    return value


def _copy_object(value: Any, memo: Memo) -> Any:
    """Copy an object whose state is its attributes."""
    copied = memo[id(value)] = object.__new__(value.__class__)
    attributes = value.__dict__
    if are_atomic(attributes.values()):
        copied.__dict__.update(attributes)
    else:
        copied.__dict__.update({name: _copy_part(item, memo) for name, item in attributes.items()})
    return copied


def _copy_frozen_object(value: Any, memo: Memo) -> Any:
    """Copy an object whose attributes cannot be set to other values, unless all of them are immutable."""
    items = list(value.__dict__.values())
    if are_atomic(items):
        return value
    copies = copy_items(items, memo)
    if all(map(is_, items, copies)):
        return value
    known = memo.get(id(value))  # a list in it may contain the object
    if known is None:
        known = memo[id(value)] = object.__new__(value.__class__)
        known.__dict__.update(zip(value.__dict__, copies, strict=True))
    return known


def _make_slots_copier(slots: list[Any]) -> Copier:
    """Return a function that copies objects whose state is their slots.

    :param slots: the descriptors of the slots
    :returns: the function
    """

    def copy_slots(value: Any, memo: Memo) -> Any:
        copied = memo[id(value)] = object.__new__(value.__class__)
        for slot in slots:
            try:
                item = slot.__get__(value)
            except AttributeError:  # no value was set
                continue
            slot.__set__(copied, item if item.__class__ in ATOMIC else _copy_part(item, memo))
        return copied

    return copy_slots


def _copy_pickled(value: Any, memo: Memo) -> Any:
    """Copy an object that says itself how it is pickled."""
    try:
        copied = pickle.loads(pickle.dumps(value, 5))  # noqa: S301 (what was pickled on the same line)
    except (pickle.PicklingError, AttributeError, TypeError):
        # A class within a function cannot be pickled by name; its objects can still be deep-copied.
        try:
            copied = copy.deepcopy(value)
        except Exception as error:  # noqa: BLE001 (whatever it is, the message has it)
            raise CannotCopyError(value, error) from None
    memo[id(value)] = copied
    return copied


_COPIERS: dict[type, Copier] = {
    **dict.fromkeys(ATOMIC, _keep),
    list: _copy_list,
    dict: _copy_dict,
    collections.OrderedDict: _copy_dict,
    collections.defaultdict: _copy_dict,
    collections.Counter: _copy_dict,
    tuple: _copy_tuple,
    set: _copy_set,
    frozenset: _copy_frozenset,
    bytearray: _copy_bytearray,
    collections.deque: _copy_deque,
}
"""The copiers by class; those of a program's own classes are added when they are first needed."""


def _choose_copier(kind: type) -> Copier:
    copier = _COPIERS[kind] = _find_copier(kind)
    return copier


def _find_copier(kind: type) -> Copier:
    if getattr(kind, "is_immutable_value", False) or issubclass(kind, _IMMUTABLE_BASES):
        return _keep
    if _is_named_tuple(kind):
        return _copy_tuple
    slots = _find_slots(kind)
    if kind.__new__ is not object.__new__ or _has_hidden_parts(kind, slots) or _pickles_itself(kind):
        return _copy_pickled
    if not kind.__dictoffset__:
        return _make_slots_copier(slots) if slots else _copy_pickled
    if slots:
        return _copy_pickled
    return _copy_frozen_object if _is_frozen_dataclass(kind) else _copy_object


def _is_named_tuple(kind: type) -> bool:
    """Return True if a class of tuples adds nothing to them but names of fields."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__ and not _pickles_itself(kind)


def _is_frozen_dataclass(kind: type) -> bool:
    parameters = vars(kind).get("__dataclass_params__")
    return parameters is not None and parameters.frozen


def _find_slots(kind: type) -> list[Any]:
    """Return the descriptors of the slots of a class and its bases."""
    return [each for base in kind.__mro__ for each in vars(base).values() if isinstance(each, MemberDescriptorType)]


def _has_hidden_parts(kind: type, slots: list[Any]) -> bool:
    """Return True if objects of a class have parts besides attributes and slots, as those of most classes in C.

    It is the condition under which pickle refuses an object that has no method of its own for it.
    """
    pointers = len(slots) + (kind.__dictoffset__ != 0) + (kind.__weakrefoffset__ != 0)
    return kind.__itemsize__ != 0 or kind.__basicsize__ > object.__basicsize__ + pointers * _POINTER_BYTES


def _pickles_itself(kind: type) -> bool:
    """Return True if a class has methods of its own for being pickled or copied, other than those of dataclasses."""
    own = [name for name in _PICKLING if getattr(kind, name, None) is not getattr(object, name, None)]
    if not set(own) <= {"__getstate__", "__setstate__"}:
        return True
    return any(getattr(kind, name).__module__ != "dataclasses" for name in own) or kind in copyreg.dispatch_table


_POINTER_BYTES = struct.calcsize("P")
