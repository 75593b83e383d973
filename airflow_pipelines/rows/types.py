"""Column types: one value for each SQL type, printable as Spark DDL and as the wire's column type object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

MAX_DECIMAL_PRECISION = 38
"""The maximum number of digits of a DECIMAL."""

SPARK_NAMES: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "BINARY": "BINARY",
    "VARBINARY": "BINARY",
    "DATE": "DATE",
    "TIME": "TIME(6)",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_TZ": "TIMESTAMP",
    "UUID": "STRING",
    "VARIANT": "VARIANT",
    "NULL": "VOID",
    # Spark has no unsigned integers: the next wider type holds their values, which are checked on input.
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
}
"""The wire names of the types without parameters in Spark, with Spark's own names for them."""

INTEGER_BOUNDS: Mapping[str, tuple[int, int]] = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
}
"""The least and the greatest value of each integer type."""
INTEGERS = frozenset(INTEGER_BOUNDS)
"""Names of the integer types, signed and unsigned."""
SIGNED_INTEGERS = frozenset(name for name, (least, _) in INTEGER_BOUNDS.items() if least)
"""Names of the integer types with values below zero."""
UNSIGNED_INTEGERS = INTEGERS - SIGNED_INTEGERS
"""Names of the integer types without values below zero."""
FLOATS = frozenset({"REAL", "DOUBLE"})
"""Names of the floating-point types."""
NUMBERS = INTEGERS | FLOATS | {"DECIMAL"}
"""Names of the types of numbers."""
TEXTS = frozenset({"VARCHAR", "CHAR"})
"""Names of the types of texts."""
BINARIES = frozenset({"BINARY", "VARBINARY"})
"""Names of the types of bytes."""
TIMESTAMPS = frozenset({"TIMESTAMP", "TIMESTAMP_TZ"})
"""Names of the types of a point in time, without and with a time zone."""
TEMPORALS = TIMESTAMPS | {"DATE", "TIME"}
"""Names of the types of dates, times of day and points in time."""

_UNSIGNED_NAMES: Mapping[str, str] = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INTEGER UNSIGNED",
    "UBIGINT": "BIGINT UNSIGNED",
}
_JSON_NAMES: Mapping[str, str] = {"TINYINT": "byte", "SMALLINT": "short", "INT": "integer", "BIGINT": "long"}
"""The types of Spark SQL that have other names in the JSON of a schema."""
_SPARK_JSON_NAMES: Mapping[str, str] = {wire: _JSON_NAMES.get(name, name.lower()) for wire, name in SPARK_NAMES.items()}
INTERVAL_UNITS = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
"""The units of year-month and of day-time intervals, which never mix, because a month has no fixed number of days."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A SQL type with its nullability.

    :param name: the wire name (BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL, VARCHAR, CHAR, BINARY,
        VARBINARY, DATE, TIME, TIMESTAMP, TIMESTAMP_TZ, INTERVAL_DAY ..., UUID, VARIANT, ARRAY, MAP, STRUCT, ROW is written STRUCT;
        an unsigned integer is written UTINYINT, USMALLINT, UINTEGER or UBIGINT)
    """

    name: str
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    component: ColumnType | None = None
    fields: tuple[tuple[str, ColumnType], ...] | None = None
    key: ColumnType | None = None
    value: ColumnType | None = None

    @property
    def is_boolean(self) -> bool:
        """True if values are truth values."""
        return self.name == "BOOLEAN"

    @property
    def is_integer(self) -> bool:
        """True if values are whole numbers, signed or unsigned."""
        return self.name in INTEGERS

    @property
    def is_signed_integer(self) -> bool:
        """True if values are whole numbers that may be below zero."""
        return self.name in SIGNED_INTEGERS

    @property
    def is_unsigned_integer(self) -> bool:
        """True if values are whole numbers that are never below zero."""
        return self.name in UNSIGNED_INTEGERS

    @property
    def is_decimal(self) -> bool:
        """True if values are decimal numbers with a fixed scale."""
        return self.name == "DECIMAL"

    @property
    def is_floating(self) -> bool:
        """True if values are floating-point numbers."""
        return self.name in FLOATS

    @property
    def is_number(self) -> bool:
        """True if values are numbers."""
        return self.name in NUMBERS

    @property
    def is_text(self) -> bool:
        """True if values are texts."""
        return self.name in TEXTS

    @property
    def is_binary(self) -> bool:
        """True if values are bytes."""
        return self.name in BINARIES

    @property
    def is_uuid(self) -> bool:
        """True if values are UUIDs."""
        return self.name == "UUID"

    @property
    def is_date(self) -> bool:
        """True if values are dates."""
        return self.name == "DATE"

    @property
    def is_time(self) -> bool:
        """True if values are times of day."""
        return self.name == "TIME"

    @property
    def is_timestamp(self) -> bool:
        """True if values are points in time, with or without a time zone."""
        return self.name in TIMESTAMPS

    @property
    def is_temporal(self) -> bool:
        """True if values are dates, times of day or points in time."""
        return self.name in TEMPORALS

    @property
    def is_interval(self) -> bool:
        """True if values are lengths of time."""
        return self.name.startswith("INTERVAL")

    @property
    def is_calendar_interval(self) -> bool:
        """True if values are of Spark's legacy interval, which mixes months with days and can be neither stored nor compared."""
        return self.name == "INTERVAL"

    @property
    def is_variant(self) -> bool:
        """True if values may be of any type, and each carries its own type."""
        return self.name == "VARIANT"

    @property
    def is_null(self) -> bool:
        """True if every value is NULL."""
        return self.name == "NULL"

    @property
    def is_array(self) -> bool:
        """True if values are arrays."""
        return self.component is not None

    @property
    def is_map(self) -> bool:
        """True if values are maps."""
        return self.key is not None

    @property
    def is_struct(self) -> bool:
        """True if values are rows."""
        return self.fields is not None

    @property
    def fits_long(self) -> bool:
        """True if values are whole numbers of at most 64 bits with a sign."""
        return self.is_integer and self.name != "UBIGINT"

    @property
    def is_single_precision(self) -> bool:
        """True if values are floating-point numbers of 32 bits."""
        return self.name == "REAL"

    @property
    def has_time_zone(self) -> bool:
        """True if values are points in time with a time zone."""
        return self.name == "TIMESTAMP_TZ"

    @property
    def is_year_month_interval(self) -> bool:
        """True if values are lengths of time in years and months."""
        return self.name.startswith(("INTERVAL_YEAR", "INTERVAL_MONTH"))

    @property
    def is_padded(self) -> bool:
        """True if shorter values are padded to a length: CHAR and BINARY."""
        return self.name in {"CHAR", "BINARY"}

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type.

        :raises KeyError: for any other type
        """
        return INTEGER_BOUNDS[self.name]

    @property
    def parts(self) -> tuple[ColumnType, ...]:
        """The types of the parts of values: elements, keys and values, or fields; none for a type without parts."""
        inner = [each for each in (self.component, self.key, self.value) if each is not None]
        return (*inner, *(each for _, each in self.fields or ()))

    def walk(self) -> Iterator[ColumnType]:
        """Yield the type and, each before its own parts, the types of its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def depth(self) -> int:
        """The number of levels of types within this one; 0 for a type without parts."""
        return 1 + max(each.depth for each in self.parts) if self.parts else 0

    def with_nullable(self, nullable: bool) -> ColumnType:
        """Return the same type with the given nullability."""
        return replace(self, nullable=nullable)

    def spark_ddl(self) -> str:
        """Write the type as Spark SQL does, e.g. ``DECIMAL(5,2)`` or ``ARRAY<STRING>``."""
        if self.is_decimal:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.component is not None:
            return f"ARRAY<{self.component.spark_ddl()}>"
        if self.key is not None and self.value is not None:
            return f"MAP<{self.key.spark_ddl()},{self.value.spark_ddl()}>"
        if self.fields is not None:
            inner = ",".join(
                f"`{name.replace('`', '``')}`: {kind.spark_ddl()}{'' if kind.nullable else ' NOT NULL'}"
                for name, kind in self.fields
            )
            return f"STRUCT<{inner}>"
        if self.is_interval:
            return self.name.replace("_", " ")
        return SPARK_NAMES[self.name]

    def spark_json(self) -> str | dict[str, Any]:
        """Write the type as Spark's schema JSON does: a name, or an object for nested types."""
        if self.is_decimal:
            return f"decimal({self.precision},{self.scale})"
        if self.component is not None:
            return {"type": "array", "elementType": self.component.spark_json(), "containsNull": self.component.nullable}
        if self.key is not None and self.value is not None:
            value, nullable = self.value.spark_json(), self.value.nullable
            return {"type": "map", "keyType": self.key.spark_json(), "valueType": value, "valueContainsNull": nullable}
        if self.fields is not None:
            fields = [{"name": n, "type": t.spark_json(), "nullable": t.nullable, "metadata": {}} for n, t in self.fields]
            return {"type": "struct", "fields": fields}
        if self.is_interval:
            return self.name.replace("_", " ").lower()
        return _SPARK_JSON_NAMES[self.name]

    def to_wire(self) -> dict[str, Any]:
        """Write the type as the REST contract does: always the same eight keys, null if one does not apply."""
        fields = None
        if self.fields is not None:
            fields = [
                {"name": name, "case_sensitive": name != name.lower(), "columntype": kind.to_wire()} for name, kind in self.fields
            ]
        return {
            # An interval of several units is named by the first and the last one.
            "type": self.name.replace("_TO_", "_") if self.is_interval else self.name,
            "nullable": self.nullable,
            "precision": self.precision,
            "scale": self.scale,
            "component": self.component.to_wire() if self.component else None,
            "fields": fields,
            "key": self.key.to_wire() if self.key else None,
            "value": self.value.to_wire() if self.value else None,
        }

    def __str__(self) -> str:
        """Write the type as users do, for messages."""
        if self.is_decimal:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.is_array:
            return f"{self.component} ARRAY"
        if self.is_map:
            return f"MAP<{self.key}, {self.value}>"
        if self.is_struct:
            return "ROW(" + ", ".join(f"{name} {kind}" for name, kind in self.fields or ()) + ")"
        if self.precision is not None and (self.is_text or self.is_binary):
            return f"{self.name}({self.precision})"
        return self.name.replace("_", " ") if self.is_interval else _UNSIGNED_NAMES.get(self.name, self.name)


def decimal(precision: int = MAX_DECIMAL_PRECISION, scale: int = 0, nullable: bool = True) -> ColumnType:
    """Return a DECIMAL with ``precision`` digits, ``scale`` of them after the point."""
    return ColumnType("DECIMAL", nullable, precision=precision, scale=scale)
