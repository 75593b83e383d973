"""Avro values of several possible types: each is converted to the JSON text of its type, and its column decides."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.encode import json_texts
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.scalar_texts import WHOLE_SCALARS

Plain: TypeAlias = Callable[[Any], Any]
"""A function that converts a value for Arrow."""

JSON_TEXT: Final = pa.json_()
"""The Arrow type of values of several possible types."""
_WIDER: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_DECODED: Final[Mapping[tuple[str, str | None], type]] = {
    ("int", "date"): dt.date,
    ("int", "time-millis"): dt.time,
    ("long", "time-micros"): dt.time,
    ("long", "timestamp-millis"): dt.datetime,
    ("long", "timestamp-micros"): dt.datetime,
    ("long", "local-timestamp-millis"): dt.datetime,
    ("long", "local-timestamp-micros"): dt.datetime,
    ("string", "uuid"): uuid.UUID,
    ("bytes", "decimal"): Decimal,
    ("fixed", "decimal"): Decimal,
}
"""The classes of values that fastavro decodes to another class than that of their type."""
_CLASSES: Final[Mapping[str, type]] = {
    "boolean": bool, "int": int, "long": int, "float": float, "double": float, "bytes": bytes, "fixed": bytes, "string": str,
    "enum": str, "array": list, "map": dict, "record": dict, "error": dict,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Member:
    """One of the types that a value may have.

    :param name: the name of the type in the schema
    :param decoded: the class of its values after fastavro decoded them
    :param type: their Arrow type
    :param plain: their conversion for Arrow; None if they need none
    """

    name: str
    decoded: type
    type: pa.DataType
    plain: Plain | None

    def text(self, value: Any) -> str:
        """Return the JSON text of one value."""
        return text_of(self.type, self.plain, value)


def text_of(kind: pa.DataType, plain: Plain | None, value: Any) -> str:
    """Return the JSON text of a value of one type.

    :param kind: its Arrow type
    :param plain: its conversion for Arrow
    :param value: the value that fastavro decoded
    """
    if value is None:
        return "null"
    made = value if plain is None else plain(value)
    return str(made) if kind == JSON_TEXT else json_texts(pa.array([made], kind), WHOLE_SCALARS)[0]


def decoded_class(name: str, logical: str | None) -> type:
    """Return the class to which fastavro decodes a type.

    :param name: the type
    :param logical: its logical type, None for none
    """
    return _DECODED.get((name, logical)) or _CLASSES[name]


def text_of_one(members: Sequence[Member], where: str) -> Plain:
    """Return a function that writes the JSON text of a value that has one of several types.

    :param members: the types
    :param where: the owner of the types, for messages
    :raises RecordProblem: when the class of a decoded value does not determine its type
    """
    of_class: dict[type, Member] = {}
    for member in members:
        known = of_class.get(member.decoded)
        chosen = member if known is None else _unify(known, member)
        if chosen is None:
            shown = ", ".join(each.name for each in members)
            raise RecordProblem(f"{where} may be one of several types ({shown}), of which two cannot be told apart")
        of_class[member.decoded] = chosen

    def text(value: Any) -> str:
        return of_class[type(value)].text(value)

    return text


def _unify(one: Member, other: Member) -> Member | None:
    """Return a type for the values of both of two types, or None if there is none."""
    if one.type == other.type and one.plain is other.plain:
        return one
    if one.type in _WIDER and other.type in _WIDER:
        return max(one, other, key=lambda member: _WIDER.index(member.type))
    return None


def text_of_list(kind: pa.DataType, plain: Plain | None) -> Plain:
    """Return a function that writes the JSON text of a list, an item of which may be of several types."""
    return lambda values: "[" + ",".join(text_of(kind, plain, value) for value in values) + "]"


def text_of_map(kind: pa.DataType, plain: Plain | None) -> Plain:
    """Return a function that writes the JSON text of a map, a value of which may be of several types."""
    return lambda values: _object((name, kind, plain, value) for name, value in values.items())


def text_of_record(fields: Sequence[pa.Field], plains: Mapping[str, Plain]) -> Plain:
    """Return a function that writes the JSON text of a record, a field of which may be of several types.

    :param fields: the fields
    :param plains: the conversions of some of them for Arrow
    """
    return lambda record: _object((each.name, each.type, plains.get(each.name), record[each.name]) for each in fields)


def _object(members: Any) -> str:
    return "{" + ",".join(f"{jsontext.dumps(name)}:{text_of(kind, plain, value)}" for name, kind, plain, value in members) + "}"
