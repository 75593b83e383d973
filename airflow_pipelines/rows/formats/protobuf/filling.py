"""The conversion of a view's values to fields of messages, and the types of columns that each field accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.protobuf.rows import is_map, is_wrapped
from airflow_pipelines.rows.formats.protobuf.well_known import WELL_KNOWN
from airflow_pipelines.rows.types import BINARIES, FLOATS, INTEGERS, TEXTS, ColumnType

Fill: TypeAlias = Callable[[Any, Any], None]
"""A function that writes a Python value of Arrow that is not NULL into a message."""

_NUMBERS: Final = INTEGERS | FLOATS
_TEXTS: Final = TEXTS | {"UUID", "VARIANT", "NULL"}
_OF_INTEGERS: Final = (
    FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_SINT32,
    FieldDescriptor.TYPE_SFIXED32,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_SFIXED64,
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_FIXED32,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_FIXED64,
)
_TAKEN: Final[Mapping[int, Set[str]]] = {
    **dict.fromkeys(_OF_INTEGERS, INTEGERS),
    FieldDescriptor.TYPE_BOOL: frozenset({"BOOLEAN"}),
    FieldDescriptor.TYPE_FLOAT: _NUMBERS,
    FieldDescriptor.TYPE_DOUBLE: _NUMBERS,
    FieldDescriptor.TYPE_STRING: _TEXTS,
    FieldDescriptor.TYPE_BYTES: BINARIES,
    FieldDescriptor.TYPE_ENUM: INTEGERS | TEXTS,
}
"""The types of columns that a field of a type, other than a message, accepts."""


@dataclass(frozen=True, slots=True)
class _Item:
    """The function that writes one value of a field.

    :param plain: the conversion of a value for the field; None if it is a message
    :param into: the function that writes into the message of the field
    """

    plain: Callable[[Any], Any] | None = None
    into: Fill | None = None


def field_of(kind: Descriptor, name: str) -> FieldDescriptor | None:
    """Return the field for a column, which has the same name in any case, or None if there is none.

    :param kind: the type of messages
    :param name: the name of the column
    """
    exact = kind.fields_by_name.get(name)
    if exact is not None:
        return exact
    return next((field for field in kind.fields if field.name.lower() == name.lower()), None)


def fill_of(field: FieldDescriptor, column: ColumnType, where: str) -> Fill:
    """Make the function that writes the values of a column into a field.

    :param field: the field
    :param column: the type of the values
    :param where: the column, for messages
    :raises FormatFailure: when the field does not accept them
    """
    name = field.name
    if is_map(field):
        return _map(field, column, where)
    if field.is_repeated:
        if column.component is None:
            raise _make_failure(field, column, where)
        return _fill_repeated(name, _item(field, column.component, where), where)
    item = _item(field, column, where)
    if item.into is not None:
        into = item.into

        def fill_message(message: Any, value: Any) -> None:
            inner = getattr(message, name)
            # This makes an empty message present.
            inner.SetInParent()
            into(inner, value)

        return fill_message
    plain = item.plain or _as_it_is

    def fill(message: Any, value: Any) -> None:
        setattr(message, name, plain(value))

    return fill


def _fill_repeated(name: str, item: _Item, where: str) -> Fill:
    if item.into is not None:
        into = item.into

        def fill_messages(message: Any, values: Any) -> None:
            items = getattr(message, name)
            for value in values:
                into(items.add(), _require_value(value, where))

        return fill_messages
    plain = item.plain or _as_it_is

    def fill(message: Any, values: Any) -> None:
        getattr(message, name).extend([plain(_require_value(value, where)) for value in values])

    return fill


def _map(field: FieldDescriptor, column: ColumnType, where: str) -> Fill:
    name = field.name
    if column.key is None or column.value is None:
        raise _make_failure(field, column, where)
    parts = field.message_type.fields_by_name
    key, item = _item(parts["key"], column.key, where).plain or _as_it_is, _item(parts["value"], column.value, where)
    plain, into = item.plain or _as_it_is, item.into

    def fill(message: Any, pairs: Any) -> None:
        entries = getattr(message, name)
        for each, value in pairs:
            if into is None:
                entries[key(each)] = plain(_require_value(value, where))
            else:
                into(entries[key(each)], _require_value(value, where))

    return fill


def _item(field: FieldDescriptor, column: ColumnType, where: str) -> _Item:
    if field.message_type is not None:
        return _Item(into=_message(field, field.message_type, column, where))
    if column.name not in _TAKEN.get(field.type, ()) and not (column.is_interval and field.type == FieldDescriptor.TYPE_STRING):
        raise _make_failure(field, column, where)
    if field.enum_type is not None:
        return _Item(plain=_enum(field.enum_type))
    if column.is_variant:
        return _Item(plain=variant.to_json)
    if column.is_integer and not column.fits_long:
        return _Item(plain=_whole)
    return _Item(plain=_as_it_is)


def _message(field: FieldDescriptor, kind: Descriptor, column: ColumnType, where: str) -> Fill:
    known = WELL_KNOWN.get(kind.full_name)
    if known is not None:
        if column.name not in known.columns:
            raise _make_failure(field, column, where)
        return known.write
    if is_wrapped(kind, column):
        return fill_of(kind.fields[0], column, where)
    if column.fields is None:
        raise _make_failure(field, column, where)
    return fill_fields(kind, column.fields, f"{where}, field")


def fill_fields(kind: Descriptor, columns: Sequence[tuple[str, ColumnType]], what: str) -> Fill:
    """Make the function that writes the fields of messages of a type.

    :param kind: the type
    :param columns: names and types of the values
    :param what: the word for them in messages
    :raises FormatFailure: when the type lacks one of them, or requires another one
    """
    fills: list[tuple[str, str, Fill]] = []
    for name, column in columns:
        field = field_of(kind, name)
        where = f"{what} {name!r}"
        if field is None:
            raise FormatFailure(f"option 'message' of format 'protobuf': {kind.full_name} has no field for {where}")
        fills.append((name, where, fill_of(field, column, where)))
    given = {name.lower() for name, _, _ in fills}
    missing = [field.name for field in kind.fields if field.is_required and field.name.lower() not in given]
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        raise FormatFailure(
            f"option 'message' of format 'protobuf': {kind.full_name} needs fields that the view does not have: {listed}"
        )

    def fill(message: Any, row: Any) -> None:
        for name, where, write in fills:
            value = row[name]
            if value is None:
                continue
            try:
                write(message, value)
            except (TypeError, ValueError, OverflowError) as error:
                raise FormatFailure(f"a row does not fit into {kind.full_name} of format 'protobuf': {where}: {error}") from error

    return fill


def _enum(kind: EnumDescriptor) -> Callable[[Any], Any]:
    numbers = {name: value.number for name, value in kind.values_by_name.items()}

    def number(value: Any) -> Any:
        if not isinstance(value, str):
            return _whole(value)
        if value not in numbers:
            raise ValueError(f"{value!r} is no value of {kind.full_name}")
        return numbers[value]

    return number


def _require_value(value: Any, where: str) -> Any:
    if value is None:
        raise FormatFailure(
            f"a row does not fit into format 'protobuf': {where} holds a NULL, which no array and no map of Protobuf has; "
            "take it out in the view"
        )
    return value


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, Decimal) else value


def _as_it_is(value: Any) -> Any:
    return value


def _make_failure(field: FieldDescriptor, column: ColumnType, where: str) -> FormatFailure:
    return FormatFailure(
        f"option 'message' of format 'protobuf': {where} has the type {column.spark_ddl()}, which field {field.name!r} of "
        f"{field.containing_type.full_name} does not take"
    )
