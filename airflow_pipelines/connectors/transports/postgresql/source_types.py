"""The types of columns in a database, and the columns of a relation that can hold their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import psycopg

from airflow_pipelines.rows.types import BINARIES, NUMBERS, TEXTS, TIMESTAMPS, ColumnType


class ValueShape(Enum):
    """The kind of the values of a type."""

    NUMBER = "numbers"
    BOOLEAN = "booleans"
    TEXT = "texts"
    DATE = "dates"
    TIME = "times"
    TIMESTAMP = "timestamps"
    INTERVAL = "intervals"
    UUID = "UUIDs"
    JSON = "JSON"
    BYTES = "bytes"
    ARRAY = "arrays"
    COMPOSITE = "rows"
    OTHER = "values with a text of their own"
    RANGE = "ranges"


_TEXTS: Final = TEXTS | {"VARIANT"}
_FITTING: Final[Mapping[ValueShape, frozenset[str]]] = {
    ValueShape.NUMBER: NUMBERS | {"VARIANT"},
    ValueShape.BOOLEAN: frozenset({"BOOLEAN", "VARIANT"}),
    ValueShape.TEXT: _TEXTS | TIMESTAMPS | {"DATE", "TIME", "UUID", "DECIMAL"},
    ValueShape.DATE: _TEXTS | TIMESTAMPS | {"DATE"},
    ValueShape.TIME: _TEXTS | {"TIME"},
    ValueShape.TIMESTAMP: _TEXTS | TIMESTAMPS,
    ValueShape.INTERVAL: _TEXTS,
    ValueShape.UUID: _TEXTS | {"UUID"},
    ValueShape.BYTES: BINARIES,
    ValueShape.OTHER: _TEXTS,
    ValueShape.RANGE: frozenset(),
}
_SHAPES: Final[Mapping[str, ValueShape]] = {
    **dict.fromkeys(("int2", "int4", "int8", "numeric", "float4", "float8", "oid"), ValueShape.NUMBER),
    "bool": ValueShape.BOOLEAN,
    "date": ValueShape.DATE,
    "time": ValueShape.TIME,
    **dict.fromkeys(("timestamp", "timestamptz"), ValueShape.TIMESTAMP),
    "interval": ValueShape.INTERVAL,
    "uuid": ValueShape.UUID,
    **dict.fromkeys(("json", "jsonb"), ValueShape.JSON),
    "bytea": ValueShape.BYTES,
}
_QUERY: Final = """
SELECT t.oid, t.typname, t.typtype, t.typcategory, t.typbasetype, t.typelem, t.typrelid, format_type(t.oid, NULL)
FROM pg_type t WHERE t.oid = %s
"""
_FIELDS: Final = (
    "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


@dataclass(frozen=True, slots=True)
class SourceType:
    """A type of the database; for a domain, the type below it.

    :param name: its short name, such as ``int8``
    :param shown: its name as people write it, such as ``bigint``
    :param shape: the kind of its values
    :param element: the type of an array's elements
    :param fields: the fields of a composite type
    """

    name: str
    shown: str
    shape: ValueShape
    element: SourceType | None = None
    fields: tuple[tuple[str, SourceType], ...] = ()

    def problem(self, kind: ColumnType) -> str | None:
        """Return the reason why values of this type do not fit into a column, or None if they may.

        :param kind: the column's type
        """
        if self.shape is ValueShape.RANGE:
            return f"{self.shown} cannot be read: it has no counterpart here"
        if self.shape is ValueShape.JSON or (self.shape is ValueShape.INTERVAL and kind.is_interval):
            return None
        if self.element is not None:
            fits = kind.component is not None or kind.is_variant
            return self.element.problem(innermost(self.element, kind)) if fits else self._misfit(kind)
        if self.shape is ValueShape.COMPOSITE:
            wanted = tuple((name, kind) for name, _ in self.fields) if kind.is_variant else kind.fields
            return self._misfit(kind) if wanted is None else self._problem_of_fields(wanted)
        return None if kind.name in _FITTING[self.shape] else self._misfit(kind)

    def _misfit(self, kind: ColumnType) -> str:
        return f"{self.shown} ({self.shape.value}) does not fit {kind}"

    def _problem_of_fields(self, wanted: tuple[tuple[str, ColumnType], ...]) -> str | None:
        own = dict(self.fields)
        for name, kind in wanted:
            problem = own[name].problem(kind) if name in own else None
            if problem is not None:
                return f"field {name!r}: {problem}"
        return None


def innermost(element: SourceType, kind: ColumnType) -> ColumnType:
    """Return the type in a relation of the elements of an array, which may have more than one dimension.

    :param element: the type of the elements in the database
    :param kind: the column's type
    """
    inner = kind.component
    while inner is not None and inner.component is not None and element.element is None:
        inner = inner.component
    return kind if inner is None else inner


class SourceTypes:
    """A lookup of types, which are cached.

    :param connection: a connection to the database
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._known: dict[int, SourceType] = {}

    def of(self, oid: int) -> SourceType:
        """Return the type with an oid.

        :param oid: the oid
        """
        if oid not in self._known:
            self._known[oid] = self._read(oid)
        return self._known[oid]

    def _read(self, oid: int) -> SourceType:
        row = self._connection.execute(_QUERY, (oid,)).fetchone()
        if row is None:
            return SourceType("unknown", f"the type {oid}", ValueShape.OTHER)
        _, name, kind, category, base, element, relation, shown = row
        if kind == "d":
            return self.of(base)
        if kind in {"r", "m"}:
            return SourceType(name, shown, ValueShape.RANGE)
        if category == "A" and element:
            return SourceType(name, shown, ValueShape.ARRAY, element=self.of(element))
        if kind == "c":
            rows = self._connection.execute(_FIELDS, (relation,)).fetchall()
            return SourceType(name, shown, ValueShape.COMPOSITE, fields=tuple((field, self.of(of)) for field, of in rows))
        is_text = category in {"S", "E"} or kind == "e"
        return SourceType(name, shown, _SHAPES.get(name, ValueShape.TEXT if is_text else ValueShape.OTHER))
