"""Vectorised parsing: whole columns at once with pyarrow, for the readers of all formats.

Every such reader gives either exactly the result of reading row by row, or none. If a value is not in the plain form that both ways
read alike, the caller reads that block row by row, which also finds the malformed record.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.formats.numbers import REAL_OVERFLOW
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType

SMALL_BYTES = 2 << 10
"""The size in bytes below which reading row by row is faster, because setting up pyarrow's readers takes longer."""

_NUMBER = r"^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?$"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
_UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


class NotPlain(Exception):
    """The error for a value that is not in the form that can be read column by column."""


def is_utf8(data: bytes) -> bool:
    """Return True if bytes are text in UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def can_read(kind: ColumnType) -> bool:
    """Return True if values of a type can be read column by column.

    :param kind: the type
    """
    is_simple = kind.is_boolean or kind.is_decimal or kind.is_floating or kind.is_uuid
    return is_simple or kind.fits_long or kind.is_text or kind.is_temporal


def column_of(
    column: Column, values: ArrowColumn, wanted: pa.DataType, convert: Callable[[ColumnType, ArrowColumn, pa.DataType], ArrowColumn]
) -> ArrowColumn:
    """Convert the values that were read to a column of a table.

    :param column: the column
    :param values: its values; a missing value is NULL
    :param wanted: the target type
    :param convert: :func:`from_json` or :func:`from_text`
    :raises NotPlain: when a value must be read row by row
    """
    # A missing member looks like a null one here, but gets the DEFAULT or is an error.
    if values.null_count and (column.default is not None or not column.type.nullable):
        raise NotPlain
    return convert(column.type, values, wanted)


def from_json(kind: ColumnType, values: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    """Convert JSON values to values of a type.

    :raises NotPlain: when one must be read row by row
    """
    if kind.is_temporal or kind.is_text or kind.is_uuid:
        return from_text(kind, values, wanted)
    if kind.is_floating:
        return _check_floats(kind, values, wanted)
    if kind.fits_long:
        return _check_integers(kind, values, wanted)
    if kind.is_decimal:
        bound = 10 ** (kind.precision or 38) // 10 ** (kind.scale or 0)
        require(
            pc.less(pc.abs(values.cast(pa.decimal256(76, kind.scale or 0))), pa.scalar(bound, pa.decimal256(76, kind.scale or 0)))
        )
    return values.cast(wanted)


def from_text(kind: ColumnType, texts: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    """Convert texts to values of a type.

    :raises NotPlain: when one must be read row by row
    """
    if kind.is_text:
        return _check_strings(kind, texts)
    if kind.fits_long:
        _match(texts, r"^-?[0-9]{1,18}$")
        return _check_integers(kind, texts.cast(pa.int64()), wanted)
    if kind.is_decimal:
        precision, scale = kind.precision or 38, kind.scale or 0
        whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
        fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
        _match(texts, f"^-?{whole}{fraction}$")
        return texts.cast(wanted)
    if kind.is_floating:
        _match(texts, _NUMBER)
        return _check_floats(kind, texts.cast(pa.float64()), wanted)
    if kind.is_boolean:
        texts = pc.ascii_lower(texts)
        require(pc.is_in(texts, value_set=pa.array(["true", "false", None])))
        return pc.equal(texts, "true")
    if kind.is_uuid:
        _match(texts, _UUID)
        return pc.ascii_lower(texts)
    if kind.is_date:
        _match(texts, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
        return _not_before_year_one(texts).cast(wanted)
    if kind.is_time:
        _match(texts, "^" + _TIME)
        moments = pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("us"))
        return moments.cast(pa.time64("us")).cast(wanted)
    _match(texts, "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]" + _TIME)
    moments = _not_before_year_one(texts).cast(pa.timestamp("us"))
    return moments.cast(wanted) if wanted.tz is None else pc.assume_timezone(moments, wanted.tz)


def require(holds: ArrowColumn) -> None:
    """Check that a condition holds for all values.

    :raises NotPlain: when it does not
    """
    if not pc.all(holds, min_count=0).as_py():
        raise NotPlain


def _match(texts: ArrowColumn, pattern: str) -> None:
    # RE2's $ is the end of the text and nothing else, so a final newline is no match.
    require(pc.match_substring_regex(texts, pattern))


def _not_before_year_one(texts: ArrowColumn) -> ArrowColumn:
    """Check that no text has the year 0, which Python, on the other path, does not have."""
    require(pc.invert(pc.starts_with(texts, "0000")))
    return texts


def _check_integers(kind: ColumnType, values: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    if kind.is_unsigned_integer:
        least, most = kind.bounds
        require(pc.and_(pc.greater_equal(values, least), pc.less_equal(values, most)))
    return values.cast(wanted)


def _check_floats(kind: ColumnType, values: ArrowColumn, wanted: pa.DataType) -> ArrowColumn:
    overflow = REAL_OVERFLOW if kind.is_single_precision else math.inf
    require(pc.less(pc.abs(values), overflow))
    return values.cast(wanted, safe=False)


def _check_strings(kind: ColumnType, texts: ArrowColumn) -> ArrowColumn:
    if kind.precision is not None:
        require(pc.less_equal(pc.utf8_length(texts), kind.precision))
    return texts
