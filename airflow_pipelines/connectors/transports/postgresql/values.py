"""The conversion of the texts in which a server writes values into the values that JSON would have in their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from airflow_pipelines.connectors.transports.postgresql.literals import Literal, array_elements, row_fields
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType, ValueShape, innermost
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.numbers import NAMED_FLOATS
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.types import ColumnType

FromText: TypeAlias = Callable[[str], Any]
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SHORT_ZONE: Final = re.compile(r"[+-][0-9]{2}$")


def json_value(source: SourceType, kind: ColumnType) -> FromText:
    """Return a function that reads the texts of a type for a column, with the values that a JSON input would have.

    The function raises a :class:`RecordProblem` for a text that no such value has. It never gets NULL.

    :param source: the type in the database
    :param kind: the column's type
    """
    if source.shape is ValueShape.JSON and kind.is_text:
        return _as_it_is
    if source.element is not None:
        return _array(source.element, kind)
    match source.shape:
        case ValueShape.NUMBER:
            return _float if kind.is_floating else _number
        case ValueShape.BOOLEAN:
            return _boolean
        case ValueShape.JSON:
            return _json
        case ValueShape.BYTES:
            return _bytes
        case ValueShape.COMPOSITE:
            return _composite(source, kind)
        case ValueShape.TIMESTAMP:
            return _timestamp
    return _as_it_is


_VARIANT: Final = ColumnType("VARIANT")


def _as_it_is(text: str) -> str:
    return text


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        raise RecordProblem(f"{excerpt(text, 60)} is not a finite number")
    return Decimal(text) if "." in text or "e" in text else int(text)


def _float(text: str) -> Any:
    # NaN and infinities have the names that JSON inputs take.
    return text if text in NAMED_FLOATS else _number(text)


def _boolean(text: str) -> bool:
    if text not in {"t", "f", "true", "false"}:
        raise RecordProblem(f"{excerpt(text, 60)!r} is not true or false")
    return text.startswith("t")


def _json(text: str) -> Any:
    try:
        return jsontext.loads(text)
    except jsontext.MALFORMED as error:
        raise RecordProblem(f"{excerpt(text)!r} is not JSON: {error}") from error


def _bytes(text: str) -> list[int]:
    try:
        return list(bytes.fromhex(text.removeprefix("\\x")))
    except ValueError as error:
        raise RecordProblem(f"{excerpt(text, 60)!r} is not bytea in hexadecimal digits") from error


def _timestamp(text: str) -> str:
    # The readers of timestamps need minutes in the time zone.
    return f"{text}:00" if _SHORT_ZONE.search(text, 19) else text


def _array(element: SourceType, kind: ColumnType) -> FromText:
    read = json_value(element, innermost(element, kind))

    def convert(item: Literal) -> Any:
        # A database has no nested arrays, but arrays with several dimensions.
        return [convert(each) for each in item] if isinstance(item, list) else None if item is None else read(item)

    def from_text(text: str) -> list[Any]:
        try:
            elements = array_elements(text)
        except ValueError as error:
            raise RecordProblem(f"{excerpt(text, 60)!r} is not an array") from error
        return [convert(item) for item in elements]

    return from_text


def _composite(source: SourceType, kind: ColumnType) -> FromText:
    wanted = dict(kind.fields or ())
    readers = [(name, json_value(of, wanted.get(name, _VARIANT))) for name, of in source.fields]

    def from_text(text: str) -> dict[str, Any]:
        try:
            fields = row_fields(text)
            return {name: None if field is None else read(field) for (name, read), field in zip(readers, fields, strict=True)}
        except ValueError as error:
            if isinstance(error, RecordProblem):
                raise
            raise RecordProblem(f"{excerpt(text, 60)!r} is not a row of {source.shown}") from error

    return from_text
