"""Arrow columns from Python values. A value that the conversion would change is refused: Arrow itself truncates 1.5 to 1."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_pipelines.streams.worker.declared_types import Stored

_NONE = type(None)
_CONVERSION_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class MisfitError(Exception):
    """An error raised for a value that does not fit a column.

    :param position: the position of the value
    :param reason: the reason; empty if it is obvious
    """

    def __init__(self, position: int, reason: str = "") -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason


def column_of(values: Sequence[Any], column: pa.Field, stored: Stored | None = None) -> pa.Array:
    """Convert values to a column.

    :param values: the values
    :param column: the field with the type and the nullability
    :param stored: a function that converts each value to its stored form; None if values are stored as they are
    :returns: the column
    :raises MisfitError: if a value does not fit
    """
    if stored is not None:
        values = list(_store_all(values, stored))
    try:
        array = pa.array(values, column.type)
    except _CONVERSION_ERRORS as error:
        raise _find_first_misfit(values, column.type, error) from None
    if not column.nullable and array.null_count:
        raise MisfitError(next(position for position, value in enumerate(values) if value is None), "it must have a value")
    exact = _EXACT.get(column.type.id)
    if exact is None or not set(map(type, values)) <= exact:
        keeps = _keeps(column.type)
        if keeps is not None:
            for position, value in enumerate(values):
                if not keeps(value):
                    raise MisfitError(position)
    return array


def _store_all(values: Sequence[Any], stored: Stored) -> Iterator[Any]:
    for position, value in enumerate(values):
        try:
            yield stored(value)
        except _CONVERSION_ERRORS as error:
            raise MisfitError(position, str(error)) from None


def _find_first_misfit(values: Sequence[Any], kind: pa.DataType, error: Exception) -> MisfitError:
    for position, value in enumerate(values):
        try:
            pa.array([value], kind)
        except _CONVERSION_ERRORS as reason:
            return MisfitError(position, str(reason))
    return MisfitError(0, str(error))


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_EXACT: Mapping[int, frozenset[type]] = {
    **{kind.id: frozenset({int, _NONE}) for kind in _INTEGERS},
    pa.date32().id: frozenset({dt.date, _NONE}),
    pa.timestamp("us").id: frozenset({dt.datetime, _NONE}),
    pa.time64("us").id: frozenset({dt.time, _NONE}),
    pa.string().id: frozenset({str, _NONE}),
    pa.binary().id: frozenset({bytes, _NONE}),
}
"""The Python types whose values are stored exactly, by the id of the column's Arrow type."""


def _keeps(kind: pa.DataType) -> Callable[[Any], bool] | None:
    """Return a predicate that is True for values that Arrow stores unchanged in a type.

    It is only called for values that Arrow accepts for the type.

    :returns: the predicate; None if Arrow stores all these values unchanged
    """
    if pa.types.is_integer(kind):
        return lambda value: not isinstance(value, float | Decimal) or value == int(value)
    if pa.types.is_date(kind):
        return lambda value: value is None or (isinstance(value, dt.date) and not isinstance(value, dt.datetime))
    if pa.types.is_timestamp(kind):
        return lambda value: value is None or isinstance(value, dt.datetime)
    if pa.types.is_time(kind):
        return lambda value: value is None or isinstance(value, dt.time)
    if pa.types.is_string(kind):
        return lambda value: value is None or isinstance(value, str)
    if pa.types.is_binary(kind):
        return lambda value: value is None or not isinstance(value, str)
    if pa.types.is_map(kind):
        return _keeps_map(_keeps(kind.key_type), _keeps(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _keeps_list(_keeps(kind.value_type))
    if pa.types.is_struct(kind):
        return _keeps_struct({kind.field(index).name: _keeps(kind.field(index).type) for index in range(kind.num_fields)})
    return None


def _keeps_list(keeps: Callable[[Any], bool] | None) -> Callable[[Any], bool]:
    # Refuse strings: Arrow would make a list of their characters.
    return lambda value: value is None or (not isinstance(value, str) and (keeps is None or all(map(keeps, value))))


def _keeps_map(keeps_key: Callable[[Any], bool] | None, keeps_item: Callable[[Any], bool] | None) -> Callable[[Any], bool] | None:
    if keeps_key is None and keeps_item is None:
        return None

    def keeps(value: Any) -> bool:
        entries = () if value is None else value.items() if isinstance(value, Mapping) else value
        return all((keeps_key is None or keeps_key(key)) and (keeps_item is None or keeps_item(item)) for key, item in entries)

    return keeps


def _keeps_struct(fields: Mapping[str, Callable[[Any], bool] | None]) -> Callable[[Any], bool]:
    def keeps(value: Any) -> bool:
        if value is None:
            return True
        if not isinstance(value, Mapping):
            return all(each is None or each(item) for item, each in zip(value, fields.values(), strict=True))
        return value.keys() <= fields.keys() and all(each is None or each(value.get(name)) for name, each in fields.items())

    return keeps
