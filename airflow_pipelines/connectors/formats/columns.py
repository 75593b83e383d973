"""The fast way to rows: whole columns at once with pyarrow.

Every reader here either gives exactly what reading row by row would give, or nothing: when a value is not in the plain form that
both ways read alike, the caller reads that block row by row, which also finds out who is to blame.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from airflow_pipelines.connectors.formats.rows import RowReader
from airflow_pipelines.connectors.formats.values import INTEGER_RANGES, REAL_OVERFLOW
from airflow_pipelines.engine.arrow import ArrowColumn
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.program.column_types import UNSIGNED_MAXIMA, ColumnType
from airflow_pipelines.program.relations import Column

SMALL_BYTES = 2 << 10
"""Less than this is read faster row by row: setting up pyarrow's readers takes longer than that."""

_TEXTUAL = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_TZ", "UUID", "VARCHAR", "CHAR"}
_LONG_INTEGERS = INTEGER_RANGES.keys() - {"UBIGINT"}
"""Integer types whose values fit into eight bytes with a sign."""
_SUPPORTED = {*_TEXTUAL, *_LONG_INTEGERS, "BOOLEAN", "DECIMAL", "REAL", "DOUBLE"}
_NUMBER = r"^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?$"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
_UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


class _NotPlain(Exception):
    """A value is not in the form that can be read column by column."""


class JsonColumns:
    """Reads blocks of JSON objects, each a row or an insert, into one Arrow array per column.

    :param inserts: each object is ``{"insert": row}`` rather than a row
    :param array: the block is one array of them rather than a sequence
    """

    def __init__(self, schema: RelationSchema, reader: RowReader, *, inserts: bool, array: bool) -> None:
        self._columns = schema.columns
        self._types = [field.type for field in schema.arrow]
        self._reader = reader
        names = {column.name for column in schema.columns}
        self._usable = all(column.type.name in _SUPPORTED for column in schema.columns) and len(names) == len(schema.columns) > 0
        self._row = pa.struct([(column.name, _json_type(column.type)) for column in schema.columns])
        record = pa.struct([("insert", self._row)]) if inserts else self._row
        self._explicit = pa.schema([("records", pa.list_(record))] if array else list(record))
        self._inserts = inserts
        self._array = array

    def read(self, data: bytes) -> list[ArrowColumn] | None:
        """One array per column, or None when ``data`` must be read row by row."""
        if not self._usable or len(data) < SMALL_BYTES or not data.strip() or not _is_utf8(data):
            return None
        try:
            rows = self._rows(data)
            known = {field.name for field in self._row}
            if any(self._reader.place(name) is not None for name in rows if name not in known):
                return None
            return [
                _column(column, rows[column.name], kind, _from_json)
                for column, kind in zip(self._columns, self._types, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, _NotPlain):
            return None

    def _rows(self, data: bytes) -> dict[str, Any]:
        """The members of all rows by name, each as one array; unknown members too, since one may be a column in another case."""
        if self._array:
            # pyarrow reads objects only, so the array is made the one member of one.
            data = b'{"records":' + data + b"}"
        table = pajson.read_json(
            pa.BufferReader(data),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pajson.ParseOptions(explicit_schema=self._explicit, unexpected_field_behavior="infer"),
        )
        members = dict(zip(table.column_names, table.columns, strict=True))
        if self._array:
            members = _unpacked(members, "records", table.num_rows == 1)
        if self._inserts:
            members = _unpacked(members, "insert", True)
        return members


class CsvColumns:
    """Reads blocks of CSV records into one Arrow array per column."""

    def __init__(self, schema: RelationSchema, delimiter: str, quote: str) -> None:
        self._columns = schema.columns
        self._types = [field.type for field in schema.arrow]
        self._usable = all(column.type.name in _SUPPORTED for column in schema.columns) and len(schema.columns) > 0
        self._delimiter = delimiter
        self._quote = quote
        mark, q = re.escape(delimiter.encode()), re.escape(quote.encode())
        field = rb"(?:%b(?:[^%b]++|%b%b)*+%b|[^%b%b\r\n]*+)" % (q, q, q, q, q, q, mark)
        self._well_quoted = re.compile(rb"(?:%b(?:%b%b)*+\r?\n)*+(?:%b(?:%b%b)*+)?" % (field, mark, field, field, mark, field))

    def read(self, data: bytes, width: int, order: list[int]) -> list[ArrowColumn] | None:
        """One array per column, or None when ``data`` must be read row by row.

        :param width: how many fields each record has
        :param order: for each column the number of its field
        """
        if not self._usable or not data or len(data) < SMALL_BYTES or width <= max(order) or not _is_utf8(data):
            return None
        # A quote or a carriage return that is not at its usual place is read differently by different readers.
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
                    include_columns=[names[place] for place in dict.fromkeys(order)],
                ),
            )
            return [
                _column(column, _with_nulls(column.type, table.column(names[place])), kind, _from_text)
                for column, place, kind in zip(self._columns, order, self._types, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, _NotPlain):
            return None


def _unpacked(members: dict[str, Any], name: str, alone: bool) -> dict[str, Any]:
    """The members of the structs, or of the structs in the lists, that the only member ``name`` holds."""
    if not alone or list(members) != [name] or members[name].null_count:
        raise _NotPlain
    structs = members[name]
    if isinstance(structs, pa.ChunkedArray):
        structs = structs.combine_chunks()
    if pa.types.is_list(structs.type):
        structs = structs.flatten()
        if structs.null_count:
            raise _NotPlain
    return {field.name: structs.field(number) for number, field in enumerate(structs.type)}


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json_type(kind: ColumnType) -> pa.DataType:
    """The type as which pyarrow reads a column's JSON values, before they are converted."""
    if kind.name in _LONG_INTEGERS:
        return pa.int64()
    if kind.name == "BOOLEAN":
        return pa.bool_()
    if kind.name in {"REAL", "DOUBLE"}:
        return pa.float64()
    if kind.name == "DECIMAL":
        return pa.decimal128(kind.precision or 38, kind.scale or 0)
    return pa.string()


def _with_nulls(kind: ColumnType, texts: ArrowColumn) -> ArrowColumn:
    if kind.name in {"VARCHAR", "CHAR"}:
        return texts
    texts = pc.utf8_trim(texts, " \t")
    return pc.if_else(pc.is_in(texts, value_set=pa.array(["", "NULL", "null"])), pa.scalar(None, pa.string()), texts)


def _column(
    column: Column, values: ArrowColumn, wanted: pa.DataType, convert: Callable[[ColumnType, ArrowColumn, pa.DataType], ArrowColumn]
) -> ArrowColumn:
    # A member that is missing looks like a null one here, but gets the DEFAULT or is an error.
    if values.null_count and (column.default is not None or not column.type.nullable):
        raise _NotPlain
    return convert(column.type, values, wanted)


def _from_json(kind: ColumnType, values: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    if kind.name in _TEXTUAL:
        return _from_text(kind, values, wanted)
    if kind.name in {"REAL", "DOUBLE"}:
        return _checked_floats(kind, values, wanted)
    if kind.name in _LONG_INTEGERS:
        return _checked_integers(kind, values, wanted)
    if kind.name == "DECIMAL":
        bound = 10 ** (kind.precision or 38) // 10 ** (kind.scale or 0)
        _require(
            pc.less(pc.abs(values.cast(pa.decimal256(76, kind.scale or 0))), pa.scalar(bound, pa.decimal256(76, kind.scale or 0)))
        )
    return values.cast(wanted)


def _from_text(kind: ColumnType, texts: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    name = kind.name
    if name in {"VARCHAR", "CHAR"}:
        return _checked_strings(kind, texts)
    if name in _LONG_INTEGERS:
        _match(texts, r"^-?[0-9]{1,18}$")
        return _checked_integers(kind, texts.cast(pa.int64()), wanted)
    if name == "DECIMAL":
        precision, scale = kind.precision or 38, kind.scale or 0
        whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
        fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
        _match(texts, f"^-?{whole}{fraction}$")
        return texts.cast(wanted)
    if name in {"REAL", "DOUBLE"}:
        _match(texts, _NUMBER)
        return _checked_floats(kind, texts.cast(pa.float64()), wanted)
    if name == "BOOLEAN":
        texts = pc.ascii_lower(texts)
        _require(pc.is_in(texts, value_set=pa.array(["true", "false", None])))
        return pc.equal(texts, "true")
    if name == "UUID":
        _match(texts, _UUID)
        return pc.ascii_lower(texts)
    if name == "DATE":
        _match(texts, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
        return _not_before_year_one(texts).cast(wanted)
    if name == "TIME":
        _match(texts, "^" + _TIME)
        moments = pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("us"))
        return moments.cast(pa.time64("us")).cast(wanted)
    _match(texts, "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]" + _TIME)
    moments = _not_before_year_one(texts).cast(pa.timestamp("us"))
    return moments.cast(wanted) if wanted.tz is None else pc.assume_timezone(moments, wanted.tz)


def _require(holds: ArrowColumn) -> None:
    if not pc.all(holds, min_count=0).as_py():
        raise _NotPlain


def _match(texts: ArrowColumn, pattern: str) -> None:
    # RE2's $ is the end of the text and nothing else, so a final newline is no match.
    _require(pc.match_substring_regex(texts, pattern))


def _not_before_year_one(texts: ArrowColumn) -> ArrowColumn:
    """Python, which the other way uses, has no year 0."""
    _require(pc.invert(pc.starts_with(texts, "0000")))
    return texts


def _checked_integers(kind: ColumnType, values: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    if kind.name in UNSIGNED_MAXIMA:
        least, most = INTEGER_RANGES[kind.name]
        _require(pc.and_(pc.greater_equal(values, least), pc.less_equal(values, most)))
    return values.cast(wanted)


def _checked_floats(kind: ColumnType, values: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    overflow = REAL_OVERFLOW if kind.name == "REAL" else math.inf
    _require(pc.less(pc.abs(values), overflow))
    return values.cast(wanted, safe=False)


def _checked_strings(kind: ColumnType, texts: ArrowColumn) -> ArrowColumn:
    if kind.precision is not None:
        _require(pc.less_equal(pc.utf8_length(texts), kind.precision))
        if kind.name == "CHAR":
            return pc.utf8_rpad(texts, kind.precision, " ")
    return texts
