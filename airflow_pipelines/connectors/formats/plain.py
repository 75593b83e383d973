"""The formats that need no library of their own: csv, json, orc, parquet and raw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from airflow_pipelines.connectors.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.connectors.formats.definition import FormatDefinition
from airflow_pipelines.connectors.formats.delta import WRITTEN_UPDATE_FORMATS, JsonChanges, csv_changes
from airflow_pipelines.connectors.formats.json import JsonOptions, JsonParser
from airflow_pipelines.connectors.formats.orc import OrcOptions, orc_parser
from airflow_pipelines.connectors.formats.parquet import ParquetOptions, parquet_parser
from airflow_pipelines.connectors.formats.raw import RawOptions, RawParser
from airflow_pipelines.connectors.option_errors import InvalidOptionError


class JsonEncoder:
    """Writes changes as JSON."""

    def __init__(self, options: JsonOptions) -> None:
        """Make what writes a new stream.

        :param options: with an update format that can be written
        """
        self._changes = JsonChanges(options)

    def messages(self, changes: pa.Table) -> Iterator[bytes]:
        """Each change as a JSON object."""
        return (text.encode() for text in self._changes.texts(changes))


class CsvEncoder:
    """Writes changes as CSV records whose last field is 1 or -1."""

    def __init__(self, options: CsvOptions) -> None:
        """Make what writes a new stream.

        :param options: those of the format
        """
        self._options = options

    def messages(self, changes: pa.Table) -> Iterator[bytes]:
        """Each change as a record without its line end."""
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
)
PARQUET: Final = FormatDefinition(
    name="parquet", options=ParquetOptions, new_parser=lambda schema, _, now: parquet_parser(schema, now)
)
ORC: Final = FormatDefinition(name="orc", options=OrcOptions, new_parser=lambda schema, _, now: orc_parser(schema, now))
RAW: Final = FormatDefinition(name="raw", options=RawOptions, new_parser=lambda schema, options, _: RawParser(schema, options))
