"""The formats that need no library of their own: csv, json, orc, parquet and raw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from airflow_pipelines.rows.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.delta import WRITTEN_UPDATE_FORMATS, JsonChanges, csv_changes
from airflow_pipelines.rows.formats.encode import encode_rows
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.flavors import FORMS
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.keyed_documents import KeyedDocuments
from airflow_pipelines.rows.formats.messages import MessageEncoder
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.orc import OrcOptions, orc_parser
from airflow_pipelines.rows.formats.parquet import ParquetOptions, parquet_parser
from airflow_pipelines.rows.formats.raw import RawOptions, RawParser
from airflow_pipelines.rows.formats.row_messages import RowMessages, column_bytes
from airflow_pipelines.rows.formats.scalar_texts import scalars_of
from airflow_pipelines.rows.schema import RelationSchema


class JsonEncoder:
    """An encoder of changes as JSON."""

    def __init__(self, options: JsonOptions) -> None:
        """Make the encoder of a new stream.

        :param options: the options, with an update format that can be written
        """
        self._changes = JsonChanges(options)

    def messages(self, changes: pa.Table) -> Iterator[bytes]:
        """Return each change as a JSON object."""
        return (text.encode() for text in self._changes.texts(changes))


class CsvEncoder:
    """An encoder of changes as CSV records whose last field is 1 or -1."""

    def __init__(self, options: CsvOptions) -> None:
        """Make the encoder of a new stream.

        :param options: the options of the format
        """
        self._options = options

    def messages(self, changes: pa.Table) -> Iterator[bytes]:
        """Return each change as a record without its line end."""
        texts = csv_changes(changes, self._options.delimiter, self._options.quote)
        return (text.rstrip("\r\n").encode() for text in texts)


def _check_json_read(options: JsonOptions) -> None:
    if options.update_format == "snowflake":
        raise InvalidOptionError(
            "option 'update_format' of format 'json': 'snowflake' can be written and not read; use 'insert_delete', 'raw', "
            "'weighted' or 'debezium'",
            "update_format",
        )


def _check_json_written(options: JsonOptions) -> None:
    if options.update_format not in WRITTEN_UPDATE_FORMATS:
        known = ", ".join(sorted(WRITTEN_UPDATE_FORMATS))
        raise InvalidOptionError(
            f"'update_format' {options.update_format!r} of format 'json' cannot be written by an output; use {known}",
            "update_format",
        )


def _check_json_messages(options: JsonOptions, has_index: bool) -> None:
    if options.update_format != "raw":
        return
    if not has_index:
        raise InvalidOptionError(
            "'update_format' 'raw' of format 'json' needs an 'index', by whose columns a message says which row changes or goes",
            "update_format",
        )
    if options.array:
        raise InvalidOptionError("'array' of format 'json' is not for 'update_format' 'raw': a message is one row", "array")


def _json_messages(schema: RelationSchema, options: JsonOptions, key: Sequence[str]) -> MessageEncoder:
    if options.update_format != "raw":
        return KeyedDocuments(JsonEncoder(options), _key_fields(schema, options) or key)
    scalars = scalars_of(FORMS[options.written_flavor])
    names = [*key]
    return RowMessages(
        lambda rows: (text.encode() for text in encode_rows(rows.select(names), scalars)),
        lambda rows: (text.encode() for text in encode_rows(rows, scalars)),
    )


def _key_fields(schema: RelationSchema, options: JsonOptions) -> Sequence[str]:
    """Return the columns that the options name for keys.

    :raises FormatFailure: when there is no such column
    """
    known = {name.lower(): name for name in schema.column_names}
    unknown = [name for name in options.key_fields or () if name.lower() not in known]
    if unknown:
        raise FormatFailure(f"option 'key_fields' of format 'json' names columns that the view does not have: {', '.join(unknown)}")
    return [known[name.lower()] for name in options.key_fields or ()]


def _check_raw_messages(options: RawOptions, has_index: bool) -> None:
    if not has_index:
        raise InvalidOptionError("format 'raw' needs an 'index', whose column is the key of each message")
    if options.mode != "blob":
        raise InvalidOptionError("option 'mode' of format 'raw': an output writes each row as a message", "mode")


def _raw_messages(schema: RelationSchema, _: RawOptions, key: Sequence[str]) -> MessageEncoder:
    values = [name for name in schema.column_names if name not in key]
    are_bytes = all(column.type.is_text or column.type.is_binary for column in schema.columns)
    if len(key) != 1 or len(values) != 1 or not are_bytes:
        raise FormatFailure(
            "format 'raw' needs a view with two columns of type VARCHAR or VARBINARY: that of the index, which is the key of a "
            "message, and one that is its value"
        )
    return RowMessages(column_bytes(key[0]), column_bytes(values[0]))


CSV: Final = FormatDefinition(
    name="csv", options=CsvOptions, new_parser=CsvParser, new_encoder=lambda _, options: CsvEncoder(options)
)
JSON: Final = FormatDefinition(
    name="json",
    options=JsonOptions,
    new_parser=JsonParser,
    new_encoder=lambda _, options: JsonEncoder(options),
    check_read=_check_json_read,
    check_written=_check_json_written,
    new_message_encoder=_json_messages,
    check_messages_written=_check_json_messages,
)
PARQUET: Final = FormatDefinition(
    name="parquet", options=ParquetOptions, new_parser=lambda schema, _, now: parquet_parser(schema, now)
)
ORC: Final = FormatDefinition(name="orc", options=OrcOptions, new_parser=lambda schema, _, now: orc_parser(schema, now))
RAW: Final = FormatDefinition(
    name="raw",
    options=RawOptions,
    new_parser=lambda schema, options, _: RawParser(schema, options),
    new_message_encoder=_raw_messages,
    check_messages_written=_check_raw_messages,
)
