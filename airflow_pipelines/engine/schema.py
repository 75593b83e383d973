"""A relation's schema in the two forms that the engine uses: Arrow in the driver, Spark in plans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.program.column_types import SPARK_NAMES, UNSIGNED_MAXIMA, ColumnType, from_spark_json
from airflow_pipelines.program.relations import Column

TYPE_HINT = "airflow_pipelines.type"
"""Key of a Spark field's metadata that keeps what Spark's type cannot express, such as that a STRING holds UUIDs."""

_HINT = re.compile(r"^(?P<name>[A-Z]+)(\((?P<size>\d+)\))?$")
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
    """The Arrow type in which the engine holds values of ``kind``.

    Any part of a value may be NULL in it, because Arrow refuses a NULL struct that has a field without NULL. Parts that must not be
    NULL are checked where values come in, by :func:`~airflow_pipelines.engine.values.required.missing_part`.

    :raises ValueError: for interval types, which relations that the engine stores cannot have
    """
    if kind.name == "DECIMAL":
        return pa.decimal128(kind.precision or 38, kind.scale or 0)
    if kind.component is not None:
        return pa.list_(pa.field("element", arrow_type(kind.component)))
    if kind.key is not None and kind.value is not None:
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if kind.fields is not None:
        return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in kind.fields])
    if kind.name in _ARROW:
        return _ARROW[kind.name]
    if kind.name.startswith("INTERVAL_YEAR") or kind.name == "INTERVAL_MONTH":
        return pa.int32()
    if kind.is_interval:
        return pa.duration("us")
    raise ValueError(f"{kind} has no Arrow type")


class EvaluatedDefaults(Protocol):
    """Gives the values of DEFAULTs that are not the same for each record."""

    @property
    def columns(self) -> Set[str]:
        """The columns that have one."""

    def row(self, now: int) -> Mapping[str, Any]:
        """The values for one record, by column, as Python has them.

        :param now: the time in microseconds since the epoch, as NOW() shows it
        :raises ValueError: when one cannot be evaluated
        """


class DescribedDefaults(Protocol):
    """Gives the values of DEFAULTs that read what a connector says of a record (``CONNECTOR_METADATA()``)."""

    @property
    def columns(self) -> Set[str]:
        """The columns that have one."""

    def rows(self, now: int, metadata: pa.Table) -> Sequence[Mapping[str, Any]]:
        """The values for some records, by column, as Python has them.

        :param now: the time in microseconds since the epoch, as NOW() shows it
        :param metadata: what is known of each record, by name
        :raises ValueError: when one cannot be evaluated
        """


@dataclass(frozen=True)
class RelationSchema:
    """The name and columns of a relation. Its Arrow and Spark schemas are made when they are first asked for."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    """A table's key columns; none for a table without a key, or a view."""
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """By column of a table, what a DEFAULT that is more than a literal was evaluated to, as Python has it."""
    varying: EvaluatedDefaults | None = field(default=None, compare=False)
    """The DEFAULTs of a table that are not the same for each record, where it has any."""
    described: DescribedDefaults | None = field(default=None, compare=False)
    """The DEFAULTs of a table that read what a connector says of a record, where it has any. What they are without that is among
    the others."""

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The columns' canonical names in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema in which the engine holds the relation's rows."""
        return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=c.type.nullable) for c in self.columns])

    @cached_property
    def spark(self) -> StructType:
        """The Spark schema of the relation."""
        return StructType.fromJson(self.spark_json)

    @cached_property
    def spark_json(self) -> dict[str, Any]:
        """The Spark schema of the relation in Spark's JSON form, without type hints."""
        fields = [{"name": c.name, "type": c.type.spark_json(), "nullable": c.type.nullable, "metadata": {}} for c in self.columns]
        return {"type": "struct", "fields": fields}

    @cached_property
    def hinted_spark_json(self) -> dict[str, Any]:
        """Like :attr:`spark_json`, with a hint (:data:`TYPE_HINT`) on each column whose type Spark cannot express in full."""
        fields = [{**field, "metadata": _hint(c.type)} for field, c in zip(self.spark_json["fields"], self.columns, strict=True)]
        return {"type": "struct", "fields": fields}

    def column(self, name: str) -> Column:
        """The column with the canonical ``name``.

        :raises KeyError: when there is none
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def _hint(kind: ColumnType) -> dict[str, Any]:
    if kind.name in {"UUID", "CHAR", "BINARY", *UNSIGNED_MAXIMA} or (kind.precision is not None and kind.name != "DECIMAL"):
        return {TYPE_HINT: kind.name if kind.precision is None else f"{kind.name}({kind.precision})"}
    return {}


def column_from_spark_json(field: Mapping[str, Any]) -> Column:
    """The column for a field of an analyzed query's Spark schema.

    A hint in the field's metadata (:data:`TYPE_HINT`) restores what Spark's type dropped, such as UUID or CHAR(3).

    :param field: one element of ``fields`` in Spark's schema JSON
    :raises ValueError: when the field's type has no counterpart
    """
    name = field["name"]
    kind = from_spark_json(field["type"], field["nullable"])
    hint = _HINT.match(field.get("metadata", {}).get(TYPE_HINT, ""))
    # A hint follows a column through a query. Where an expression has changed the type, the hint no longer holds.
    if hint and SPARK_NAMES.get(hint["name"]) == kind.spark_ddl():
        kind = ColumnType(hint["name"], kind.nullable, precision=int(hint["size"]) if hint["size"] else None)
    return Column(name, kind, case_sensitive=name != name.lower())
