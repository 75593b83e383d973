"""The table that an output writes: its columns and keys, and the check that it can take the rows of a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.names import parts, quote_name, quoting_hint
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType, SourceTypes, ValueShape
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import BINARIES, TEXTS, TIMESTAMPS, ColumnType

_TABLE: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""
_COLUMNS: Final = """
SELECT attname, atttypid, attnotnull, attgenerated <> '' OR attidentity = 'a', atthasdef OR attidentity <> ''
FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_UNIQUE: Final = """
SELECT i.indexrelid::regclass::text, coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::bool, false),
    array(SELECT a.attname::text FROM unnest(i.indkey::int[]) WITH ORDINALITY k (n, at)
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n WHERE k.at <= i.indnkeyatts)
FROM pg_index i WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid
    AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
"""
_INTEGERS: Final[Mapping[str, int]] = {
    "TINYINT": 1,
    "UTINYINT": 2,
    "SMALLINT": 2,
    "USMALLINT": 4,
    "INTEGER": 4,
    "UINTEGER": 8,
    "BIGINT": 8,
}
"""The number of bytes that a type of a database needs for the values of each integer type."""
_SIZES: Final[Mapping[str, int]] = {"int2": 2, "int4": 4, "int8": 8}
_WIDE: Final = frozenset({"numeric"})
_TAKING: Final[Mapping[ValueShape, frozenset[str]]] = {
    ValueShape.BOOLEAN: frozenset({"BOOLEAN"}),
    ValueShape.TEXT: TEXTS | {"UUID", "VARIANT", "MAP", "STRUCT", "ARRAY"},
    ValueShape.DATE: frozenset({"DATE"}),
    ValueShape.TIME: frozenset({"TIME"}),
    ValueShape.TIMESTAMP: TIMESTAMPS | {"DATE"},
    ValueShape.UUID: frozenset({"UUID", "VARCHAR"}),
    ValueShape.BYTES: BINARIES,
    ValueShape.OTHER: frozenset({"VARCHAR"}),
}


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of a table.

    :param name: the name of the column
    :param type: the type of the column
    :param required: True if it is NOT NULL
    :param computed: True if only the server may fill it
    :param has_default: True if the server fills it when no value is given
    """

    name: str
    type: SourceType
    required: bool
    computed: bool
    has_default: bool


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table.

    :param schema: the schema that it is in
    :param name: the name of the table
    :param columns: the columns by name
    :param unique: the columns of each unique key, and True if NULLs are equal in it
    """

    schema: str
    name: str
    columns: Mapping[str, TargetColumn]
    unique: tuple[tuple[frozenset[str], bool], ...]

    @classmethod
    def find(cls, connection: psycopg.Connection[Any], name: str, where: str) -> TargetTable:
        """Return the table with a name in SQL notation.

        :param connection: a connection to its database
        :param name: a name such as ``sales.orders``
        :param where: the connector, for messages
        :raises ConnectorFailure: when there is none
        """
        try:
            schema, table = parts(name)
        except ValueError as error:
            raise ConnectorFailure(f"{where}: option 'table': {error}") from error
        written = quote_name(table) if schema is None else f"{quote_name(schema)}.{quote_name(table)}"
        row = connection.execute(_TABLE, (written,)).fetchone()
        if row is None:
            advice = f"Make it with CREATE TABLE, or correct the option 'table'.{quoting_hint(name)}"
            raise ConnectorFailure(f"{where}: there is no table {name}. {advice}")
        oid, own_schema, own_name, kind = row
        if kind not in {"r", "p"}:
            raise ConnectorFailure(f"{where}: {name} is not a table. Name a table that rows can be written to.")
        types = SourceTypes(connection)
        columns = {column: TargetColumn(column, types.of(of), *rest) for column, of, *rest in connection.execute(_COLUMNS, (oid,))}
        keys = tuple((frozenset(names), nulls_equal) for _, nulls_equal, names in connection.execute(_UNIQUE, (oid,)))
        return cls(own_schema, own_name, columns, keys)

    @property
    def sql(self) -> str:
        """The name in SQL."""
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"

    @property
    def shown(self) -> str:
        """The name for messages."""
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> TargetColumn | None:
        """Return the column of a name, in this case or the only one in another.

        :param name: the name of a relation's column
        """
        if name in self.columns:
            return self.columns[name]
        others = [column for own, column in self.columns.items() if own.lower() == name.lower()]
        return others[0] if len(others) == 1 else None

    def columns_for(self, relation: RelationSchema, also: Sequence[str], where: str) -> list[TargetColumn]:
        """Return the columns that take those of a relation, in the relation's order.

        :param relation: the relation
        :param also: the columns that are filled by something else
        :param where: the connector, for messages
        :raises ConnectorFailure: when one is missing or does not fit
        """
        targets = [self._column_for(column, where) for column in relation.columns]
        filled = {column.name for column in targets} | set(also)
        for column in self.columns.values():
            if column.required and not column.has_default and column.name not in filled:
                raise ConnectorFailure(
                    f"{where}: column {column.name!r} of table {self.shown} is NOT NULL without a DEFAULT, and {relation.name} "
                    "has no such column. Add it to the view, or give it a DEFAULT."
                )
        return targets

    def check_key(self, key: Sequence[TargetColumn], where: str) -> None:
        """Check that rows can be found by a key.

        :param key: the columns of the key
        :param where: the connector, for messages
        :raises ConnectorFailure: when the table does not keep it unique
        """
        names = frozenset(column.name for column in key)
        listed = ", ".join(quote_name(column.name) for column in key)
        kept = [nulls_equal for columns, nulls_equal in self.unique if columns == names]
        if not kept:
            raise ConnectorFailure(
                f"{where}: table {self.shown} has no primary key or unique constraint on ({listed}), the columns of the index, "
                f"by which rows are updated and deleted. Add one: ALTER TABLE {self.sql} ADD UNIQUE ({listed})"
            )
        loose = [column.name for column in key if not column.required]
        if loose and not any(kept):
            raise ConnectorFailure(
                f"{where}: column {loose[0]!r} of table {self.shown} is part of the key and may be NULL, and rows with NULL "
                "would come twice. Make it NOT NULL, or the constraint UNIQUE NULLS NOT DISTINCT."
            )

    def _column_for(self, column: Column, where: str) -> TargetColumn:
        target = self.column(column.name)
        if target is None:
            listed = ", ".join(self.columns)
            raise ConnectorFailure(
                f"{where}: table {self.shown} has no column {column.name!r}; its columns: {listed}. Add it, or leave it out of "
                "the view."
            )
        if target.computed:
            raise ConnectorFailure(
                f"{where}: column {target.name!r} of table {self.shown} is generated by the server; leave it out of the view."
            )
        if not takes(target.type, column.type):
            raise ConnectorFailure(
                f"{where}: column {target.name!r} of table {self.shown} is {target.type.shown}, which does not take {column.type}. "
                "Change one of the two, or CAST in the view."
            )
        return target


def takes(target: SourceType, kind: ColumnType) -> bool:
    """Return True if a column of a table can hold the values of a relation's column.

    :param target: the type of the table's column
    :param kind: the type of the relation's column
    """
    if target.shape is ValueShape.JSON:
        return kind.is_array or kind.is_map or kind.is_struct or kind.is_variant or (kind.is_text and not kind.is_padded)
    if target.element is not None:
        return kind.component is not None and takes(target.element, kind.component)
    if target.shape is ValueShape.NUMBER:
        return _number_takes(target.name, kind)
    if target.shape is ValueShape.INTERVAL:
        return kind.is_interval
    return kind.name in _TAKING.get(target.shape, ()) or (target.shape is ValueShape.TEXT and kind.is_interval)


def _number_takes(target: str, kind: ColumnType) -> bool:
    if kind.name in _INTEGERS:
        needed = _INTEGERS[kind.name]
        return target in _WIDE or needed <= _SIZES.get(target, 4 if target == "float8" else 2 if target == "float4" else 0)
    fitting = {
        "REAL": {"float4", "float8", "numeric"},
        "DOUBLE": {"float8", "numeric"},
        "DECIMAL": {"numeric"},
        "UBIGINT": {"numeric"},
    }
    return target in fitting.get(kind.name, set())
