"""The columns of relations, and the Arrow types in which processes hold their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from airflow_pipelines.rows.types import ColumnType

_ARROW: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "UUID": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    # Spark gives nanoseconds but reads only microseconds from Parquet, so batches hold microseconds.
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_TZ": pa.timestamp("us", tz="UTC"),
    # The form in which Spark gives a VARIANT to Arrow and recognises one that it reads. (PySpark 4.2 fails to give a NULL VARIANT,
    # because it asks Arrow to cast to fields that are not nullable.)
    "VARIANT": pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]),
    "NULL": pa.null(),
    "UTINYINT": pa.int16(),
    "USMALLINT": pa.int32(),
    "UINTEGER": pa.int64(),
    "UBIGINT": pa.decimal128(20, 0),
}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """Return the Arrow type in which processes hold values of a type.

    Any part of a value may be NULL in it, because Arrow refuses a NULL struct that has a field without NULL. Parts that must not be
    NULL are checked on input, by :func:`~airflow_pipelines.rows.required_parts.missing_part`.

    :raises ValueError: if Arrow has no type for it
    """
    if kind.is_decimal:
        return pa.decimal128(kind.precision or 38, kind.scale or 0)
    if kind.component is not None:
        return pa.list_(pa.field("element", arrow_type(kind.component)))
    if kind.key is not None and kind.value is not None:
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if kind.fields is not None:
        return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in kind.fields])
    if kind.name in _ARROW:
        return _ARROW[kind.name]
    if kind.is_year_month_interval:
        return pa.int32()
    if kind.is_interval:
        return pa.duration("us")
    raise ValueError(f"{kind} has no Arrow type")


class EvaluatedDefaults(Protocol):
    """The DEFAULTs that are evaluated anew for each record."""

    @property
    def columns(self) -> Set[str]:
        """The columns with such a DEFAULT."""

    def row(self, now: int) -> Mapping[str, Any]:
        """Evaluate them for one record, as Python values by column.

        :param now: the time in microseconds since the epoch, as NOW() shows it
        :raises ValueError: when one cannot be evaluated
        """


class DescribedDefaults(Protocol):
    """The DEFAULTs that read a connector's metadata of a record (``CONNECTOR_METADATA()``)."""

    @property
    def columns(self) -> Set[str]:
        """The columns with such a DEFAULT."""

    def rows(self, now: int, metadata: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Evaluate them for some records, as Python values by column.

        :param now: the time in microseconds since the epoch, as NOW() shows it
        :param metadata: the metadata of the records, one column for each name
        :raises ValueError: when one cannot be evaluated
        """


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view.

    :param name: the canonical name: lower case if it was written unquoted, verbatim if quoted (``case_sensitive``)
    :param type: the type, with ``nullable`` False for NOT NULL and primary-key columns
    :param case_sensitive: True if the name was quoted
    :param default: the DEFAULT as Spark SQL text, or None
    :param lateness: the bound on the lateness of rows, in SQL; None for no bound
    """

    name: str
    type: ColumnType
    case_sensitive: bool = False
    default: str | None = None
    lateness: str | None = None


@dataclass(frozen=True)
class RelationSchema:
    """The name and columns of a relation. Its Arrow schema is made on first use."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    """A table's key columns; none for a table without a key, or a view."""
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The values of the DEFAULTs of a table that are more than a literal, as Python values by column."""
    varying: EvaluatedDefaults | None = field(default=None, compare=False)
    """The DEFAULTs of a table that are evaluated anew for each record, if it has any."""
    described: DescribedDefaults | None = field(default=None, compare=False)
    """The DEFAULTs of a table that read a connector's metadata of a record, if it has any.

    Their values without metadata are among the other DEFAULTs.
    """

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The columns' canonical names in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema in which the engine holds the relation's rows."""
        return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=c.type.nullable) for c in self.columns])

    def column(self, name: str) -> Column:
        """Return the column with a canonical name.

        :raises KeyError: when there is none
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
