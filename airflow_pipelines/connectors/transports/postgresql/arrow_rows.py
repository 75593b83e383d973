"""The conversion of rows of a query in Arrow to changes of a table: whole columns if their values are plain, else row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.connectors.transports.postgresql.names import quote_name
from airflow_pipelines.connectors.transports.postgresql.options import InvalidValues
from airflow_pipelines.connectors.transports.postgresql.row_mapping import MappedColumn, mapped_columns
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType, ValueShape
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.columns import NotPlain, can_read, from_text
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.parsed import Parsed, RecordProblem, RowBuffer
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.schema import RelationSchema, arrow_type
from airflow_pipelines.rows.types import SIGNED_INTEGERS, ColumnType

_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
ColumnReader: TypeAlias = Callable[[pa.ChunkedArray], "pa.ChunkedArray | None"]
_AS_THEY_ARE: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("int2", "int4", "int8"), SIGNED_INTEGERS),
    "float4": frozenset({"REAL"}),
    "float8": frozenset({"DOUBLE"}),
    "bool": frozenset({"BOOLEAN"}),
    **dict.fromkeys(("text", "varchar", "bpchar"), frozenset({"VARCHAR"})),
}
"""The column types, by source type, for which values come unconverted.

All others come as texts, in which nothing gets lost.
"""


class ArrowRows:
    """A reader of the rows of one query.

    :param schema: the schema of the table
    :param source: the names and types of the query's columns
    :param where: the description of the query, for messages
    :param now: the clock that a DEFAULT may read
    :param invalid: the treatment of values that the type of their column does not have
    """

    def __init__(
        self, schema: RelationSchema, source: Sequence[tuple[str, SourceType]], where: str, now: Now, invalid: InvalidValues
    ) -> None:
        """Find the columns of the query that fill those of the table.

        :raises ConnectorFailure: when a column cannot be filled
        """
        self._schema = schema
        self._reader = RowReader(schema, now=now)
        self._mapped = list(mapped_columns(schema, self._reader, source, where, invalid).values())
        self._readers = [_reader_of(mapped) for mapped in self._mapped]

    def select(self, source: str) -> str:
        """Return the query for the columns that are read.

        :param source: the text after FROM
        """
        listed = [_select_column(each) for each in self._mapped]
        return f"SELECT {', '.join(listed) or 'NULL'} FROM {source}"

    def parse(self, rows: pa.Table, first: int) -> Parsed:
        """Return rows of that query as inserts.

        :param rows: the rows
        :param first: the number of the first row, for messages
        """
        self._reader.begin()
        buffer = RowBuffer(self._schema)
        arrays = self._arrays(rows)
        if arrays is not None:
            buffer.add_inserts(arrays, rows.num_rows)
        else:
            self._by_row(rows, first, buffer)
        return buffer.finish(rows.nbytes, first + rows.num_rows)

    def _arrays(self, rows: pa.Table) -> list[pa.ChunkedArray] | None:
        filled = {}
        for mapped, values, read in zip(self._mapped, rows.columns, self._readers, strict=False):
            if values.null_count and not mapped.column.type.nullable:
                return None
            array = read(values)
            if array is None:
                return None
            filled[mapped.column.name] = array
        arrays = []
        for column, field in zip(self._schema.columns, self._schema.arrow, strict=True):
            if column.name not in filled and column.default is not None:
                return None
            arrays.append(filled[column.name] if column.name in filled else pa.nulls(rows.num_rows, field.type))
        return arrays

    def _by_row(self, rows: pa.Table, first: int, buffer: RowBuffer) -> None:
        columns = [_texts(values) for values in rows.columns]
        for number in range(rows.num_rows):
            try:
                record = {each.column.name: each.value(texts[number]) for each, texts in zip(self._mapped, columns, strict=False)}
                buffer.add(Op.INSERT, self._reader.row(record))
            except RecordProblem as problem:
                given = {each.column.name: texts[number] for each, texts in zip(self._mapped, columns, strict=False)}
                key = self._reader.shown_key(given)
                row = f"row {first + number} ({key})" if key else f"row {first + number}"
                buffer.reject(first + number, f"{row}: {problem}")


def _select_column(mapped: MappedColumn) -> str:
    # Cast to text, char(n) would lose its trailing blanks, which the stream of changes keeps.
    as_it_is = _is_unconverted(mapped) or mapped.source.name == "bpchar"
    return quote_name(mapped.name) if as_it_is else f"{quote_name(mapped.name)}::text"


def _is_unconverted(mapped: MappedColumn) -> bool:
    kind = mapped.column.type
    return kind.name in _AS_THEY_ARE.get(mapped.source.name, ()) and (not kind.is_text or kind.precision is None)


def _reader_of(mapped: MappedColumn) -> ColumnReader:
    return (lambda values: _widen(values, mapped)) if _is_unconverted(mapped) else text_reader(mapped)


def text_reader(mapped: MappedColumn) -> ColumnReader:
    """Return a function that reads a column of texts as a whole, or returns None if one of them needs individual treatment.

    :param mapped: the column
    """
    kind, shape = mapped.column.type, mapped.source.shape
    if shape in {ValueShape.ARRAY, ValueShape.COMPOSITE, ValueShape.JSON, ValueShape.BYTES} and not kind.is_text:
        return lambda _: None

    def read(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
        if shape is ValueShape.TIMESTAMP and kind.is_timestamp:
            # The session's time zone is UTC.
            texts = pc.replace_substring_regex(texts, r"\+00$", "")
        if shape is ValueShape.BOOLEAN:
            texts = pc.if_else(pc.equal(texts, "t"), "true", pc.if_else(pc.equal(texts, "f"), "false", texts))
        return _plain(kind, texts)

    return read


def _plain(kind: ColumnType, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if not can_read(kind):
        return None
    try:
        return from_text(kind, texts, arrow_type(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, NotPlain):
        return None


def _widen(values: pa.ChunkedArray, mapped: MappedColumn) -> pa.ChunkedArray | None:
    kind = mapped.column.type
    try:
        return values.cast(arrow_type(kind)) if kind.is_signed_integer else values
    except pa.ArrowInvalid:
        return None


def _texts(values: pa.ChunkedArray) -> list[Any]:
    """Return values as the server would write them."""
    if pat.is_boolean(values.type):
        return [None if value is None else "t" if value else "f" for value in python_values(values)]
    if pat.is_floating(values.type):
        return [None if value is None else _NOT_FINITE.get(value, value) for value in python_values(values.cast(pa.string()))]
    return list(python_values(values.cast(pa.string())))
