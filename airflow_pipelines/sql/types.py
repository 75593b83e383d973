"""Column types: one value per SQL type, printable as Spark DDL and as the wire's column type object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A SQL type with its nullability.

    ``name`` is the wire name (BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL, VARCHAR, CHAR, BINARY, VARBINARY,
    DATE, TIME, TIMESTAMP, TIMESTAMP_TZ, INTERVAL_DAY ..., UUID, VARIANT, ARRAY, MAP, STRUCT, ROW is written STRUCT).
    """

    name: str
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    component: ColumnType | None = None
    fields: tuple[tuple[str, ColumnType], ...] | None = None
    key: ColumnType | None = None
    value: ColumnType | None = None

    def spark_ddl(self) -> str:
        """The type as Spark SQL writes it, e.g. ``DECIMAL(5,2)`` or ``ARRAY<STRING>``."""
        raise NotImplementedError

    def to_wire(self) -> dict[str, Any]:
        """The type as the REST contract writes it."""
        raise NotImplementedError
