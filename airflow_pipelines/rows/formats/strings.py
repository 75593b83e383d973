"""Converters of strings, UUIDs and binary values."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from airflow_pipelines.rows.formats.converting import Converter, make_mismatch
from airflow_pipelines.rows.formats.flavors import BinaryForm
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.types import ColumnType


def string_converter(kind: ColumnType) -> Converter:
    """Make a converter of strings, which are stored unchanged: only a cast to CHAR pads with blanks.

    :param kind: VARCHAR or CHAR
    """
    length = kind.precision

    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise make_mismatch("a string", value)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise RecordProblem(f"{excerpt(value, 60)!r} is not valid UTF-8 text") from error
        if length is not None and len(value) > length:
            raise RecordProblem(f"{excerpt(value, 60)!r} is longer than {kind.name}({length})")
        return value

    return convert


def binary_converter(kind: ColumnType, form: BinaryForm) -> Converter:
    """Make a converter of byte numbers, and of texts if the flavor writes bytes so.

    :param kind: BINARY or VARBINARY
    :param form: another form in which bytes may be written
    """
    length = kind.precision

    def convert(value: Any) -> bytes:
        data = _bytes(value, form)
        if length is not None and len(data) > length:
            raise RecordProblem(f"{len(data)} bytes are more than {kind.name}({length}) holds")
        return data.ljust(length, b"\0") if kind.is_padded and length is not None else data

    return convert


def uuid_of(value: Any) -> str:
    """Convert a UUID to lower case.

    :param value: the parsed value
    :raises RecordProblem: when it is no UUID in the usual form
    """
    if isinstance(value, str):
        try:
            # Only the usual form: Python's class would also accept braces, URNs and odd hyphens.
            if len(value) == 36 and str(UUID(value)) == value.lower():
                return value.lower()
        except ValueError:
            pass
    raise make_mismatch("a UUID", value)


def _bytes(value: Any, form: BinaryForm) -> bytes:
    if isinstance(value, list) and all(type(byte) is int and 0 <= byte <= 255 for byte in value):
        return bytes(value)
    if isinstance(value, str) and form is not BinaryForm.NUMBERS:
        try:
            return form.read(value)
        except ValueError:
            pass
    raise make_mismatch(form.value, value)
