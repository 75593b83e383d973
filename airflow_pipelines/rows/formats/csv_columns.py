"""Vectorised parsing of CSV records to whole columns, with pyarrow."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.formats import columns
from airflow_pipelines.rows.formats.columns import NotPlain
from airflow_pipelines.rows.formats.parsed import BYTE_ORDER_MARK
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType


class CsvColumns:
    """A reader of blocks of CSV records into one Arrow array per column."""

    def __init__(self, schema: RelationSchema, delimiter: str, quote: str) -> None:
        self._columns = schema.columns
        self._types = [field.type for field in schema.arrow]
        self._usable = all(columns.can_read(column.type) for column in schema.columns) and len(schema.columns) > 0
        self._delimiter = delimiter
        self._quote = quote
        mark, q = re.escape(delimiter.encode()), re.escape(quote.encode())
        field = rb"(?:%b(?:[^%b]++|%b%b)*+%b|[^%b%b\r\n]*+)" % (q, q, q, q, q, q, mark)
        self._well_quoted = re.compile(rb"(?:%b(?:%b%b)*+\r?\n)*+(?:%b(?:%b%b)*+)?" % (field, mark, field, field, mark, field))

    def read(self, data: bytes, width: int, order: Sequence[int | None]) -> list[ArrowColumn] | None:
        """Return one array for each column, or None if ``data`` must be read row by row.

        :param width: the number of fields of each record
        :param order: for each column the number of its field; None for one that has none
        """
        given = [place for place in order if place is not None]
        if not self._usable or not data or len(data) < columns.SMALL_BYTES or width <= max(given) or not columns.is_utf8(data):
            return None
        missing = [column for column, place in zip(self._columns, order, strict=True) if place is None]
        if any(column.default is not None or not column.type.nullable for column in missing):
            return None
        if data.startswith(BYTE_ORDER_MARK):
            # pyarrow leaves it out wherever a block begins; the parser has left out that of a file.
            return None
        # Readers differ in the interpretation of a quote or a carriage return in an unusual place.
        quoted = self._quote.encode() in data
        if (quoted and not self._well_quoted.fullmatch(data)) or (b"\r" in data and b"\r" in data.replace(b"\r\n", b"")):
            return None
        names = [f"f{number}" for number in range(width)]
        try:
            table = pacsv.read_csv(
                pa.BufferReader(data),
                read_options=pacsv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter, quote_char=self._quote if quoted else False, newlines_in_values=quoted
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                    include_columns=[names[place] for place in dict.fromkeys(given)],
                ),
            )
            return [
                pa.nulls(table.num_rows, kind)
                if place is None
                else columns.column_of(column, _replace_nulls(column.type, table.column(names[place])), kind, columns.from_text)
                for column, place, kind in zip(self._columns, order, self._types, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, NotPlain):
            return None


def _replace_nulls(kind: ColumnType, texts: ArrowColumn) -> ArrowColumn:
    if kind.is_text:
        return texts
    texts = pc.utf8_trim(texts, " \t")
    return pc.if_else(pc.is_in(texts, value_set=pa.array(["", "NULL", "null"])), pa.scalar(None, pa.string()), texts)
