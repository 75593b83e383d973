"""Rows: values in a fixed order, with or without field names, and with a kind of change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.streams.values import Memo, are_atomic, copy_items, register_copier


class RowKind(Enum):
    """The kind of change that a row makes to its relation."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SIGNS[self]


_SIGNS = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}


class Row:
    """A row of values.

    ``Row(name="Ann", age=11)`` has named fields; ``Row("Ann", 11)`` does not. A row of names makes rows: ``Person = Row("name",
    "age"); Person("Ann", 11)``. Fields are read by name (``row.name``, ``row["name"]``) or by position (``row[0]``).

    :param values: values of a row without field names
    :param named: values of a row with field names
    :raises ValueError: if both are given
    """

    __slots__ = ("_fields", "_kind", "_values")

    _fields: tuple[str, ...]
    _kind: RowKind
    _values: list[Any]

    def __init__(self, *values: Any, **named: Any) -> None:
        if values and named:
            raise ValueError("A row has either named fields or fields without names: use Row(a=1, b=2) or Row(1, 2)")
        _set_fields(self, tuple(named))
        _set_values(self, list(named.values()) if named else list(values))
        _set_kind(self, RowKind.INSERT)

    @staticmethod
    def of(values: Sequence[Any], names: Sequence[str] = (), kind: RowKind = RowKind.INSERT) -> Row:
        """Make a row from lists.

        :param values: the values
        :param names: the field names; none for a row without names
        :param kind: the kind of change
        :returns: the row
        :raises ValueError: if there are names, and not one for each value
        """
        row = checked_row(list(values), (), kind)
        if names:
            row.set_field_names(names)
        return row

    @staticmethod
    def of_kind(row_kind: RowKind, *values: Any, **named: Any) -> Row:
        """Make a row of a kind.

        :param row_kind: the kind of change
        :param values: values of a row without field names
        :param named: values of a row with field names
        :returns: the row
        """
        row = Row(*values, **named)
        row.set_row_kind(row_kind)
        return row

    def get_row_kind(self) -> RowKind:
        """Return the kind of change.

        :returns: ``INSERT`` unless another was set
        """
        return self._kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the kind of change.

        :param row_kind: the kind
        """
        _set_kind(self, checks.member("row_kind", row_kind, RowKind))

    def get_field_names(self) -> list[str]:
        """Return the names of the fields.

        :returns: the names, in order; an empty list for a row without names
        """
        return list(self._fields)

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Set the names of the fields.

        :param field_names: one name for each value
        :raises ValueError: if there are more or fewer names than values, or duplicate names
        """
        names = tuple(field_names)
        if len(names) != len(self._values):
            raise ValueError(f"The row has {len(self._values)} values and cannot take {len(names)} field names: {list(names)}")
        if len(set(names)) != len(names):
            raise ValueError(f"Two fields of a row cannot have the same name: {list(names)}")
        _set_fields(self, names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Return the values of some fields.

        :param names: names of the fields
        :returns: their values, in the order of the names
        """
        return [self[name] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the row as a dict.

        :param recursive: True to convert rows within it, and in its lists and dicts, too
        :returns: values by name
        :raises TypeError: if the row has no field names
        """
        if len(self._fields) != len(self._values):
            raise TypeError(f"{self!r} has no field names: make it as Row(a=1, b=2), or use set_field_names first")
        values = [_as_dict(value) for value in self._values] if recursive else self._values
        return dict(zip(self._fields, values, strict=True))

    def _position(self, item: int | str) -> int:
        if not isinstance(item, str):
            return item
        if item not in self._fields:
            raise KeyError(self._no_field(item))
        return self._fields.index(item)

    def _no_field(self, name: str) -> str:
        named = f"its fields are {', '.join(self._fields)}" if self._fields else "its fields have no names"
        return f"{self!r} has no field {name!r}: {named}"

    def __call__(self, *values: Any) -> Row:
        """Return a row with this row's values as its field names."""
        return Row.of(values, self._values)

    def __getitem__(self, item: Any) -> Any:
        return self._values[item if isinstance(item, slice) else self._position(item)]

    def __setitem__(self, item: int | str, value: Any) -> None:
        self._values[self._position(item)] = value

    def __getattr__(self, name: str) -> Any:
        if name in self._fields:
            return self._values[self._fields.index(name)]
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(self._no_field(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(self._no_field(name))
        self[name] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, value: Any) -> bool:
        return value in self._values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return (self._kind, self._fields, self._values) == (other._kind, other._fields, other._values)

    def __hash__(self) -> int:
        return hash((self._kind, self._fields, tuple(self._values)))

    def __reduce__(self) -> Any:
        return Row.of, (self._values, self._fields, self._kind)

    def __repr__(self) -> str:
        if self._fields:
            return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self._fields, self._values, strict=True))})"
        return f"<Row({', '.join(map(repr, self._values))})>"


def checked_row(values: list[Any], names: tuple[str, ...], kind: RowKind) -> Row:
    """Return a row of parts that are known to fit. It is called for each element of a stream, so it skips checks.

    :param values: the values; the row takes ownership of the list
    :param names: a name for each, or none at all
    :param kind: the kind of change
    :returns: the row
    """
    row = _new_row(Row)
    _set_fields(row, names)
    _set_values(row, values)
    _set_kind(row, kind)
    return row


def fields_of(row: Row) -> tuple[tuple[str, ...], Sequence[Any]]:
    """Return the parts of a row without copying them.

    :param row: the row
    :returns: the field names, none for a row without names; and the values, which must not be changed
    """
    return row._fields, row._values


_new_row = object.__new__
# ``__setattr__`` of a row sets its fields, so its own three attributes are set through their slots.
_set_fields = vars(Row)["_fields"].__set__
_set_values = vars(Row)["_values"].__set__
_set_kind = vars(Row)["_kind"].__set__


def _copy_row(row: Row, memo: Memo) -> Row:
    values = row._values
    copied = checked_row(values.copy() if are_atomic(values) else copy_items(values, memo), row._fields, row._kind)
    memo[id(row)] = copied
    return copied


register_copier(Row, _copy_row)


def _as_dict(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return [_as_dict(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_dict(item) for key, item in value.items()}
    return value
