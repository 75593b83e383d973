"""Ways from JSON documents to columns of a table's types. All give the same table of the same documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.messages import DocumentMessages, Messages
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType, decimal

SCHEMA: Final = RelationSchema(
    "t",
    (
        Column("id", ColumnType("BIGINT")),
        Column("customer", ColumnType("INTEGER")),
        Column("kind", ColumnType("VARCHAR")),
        Column("amount", decimal(12, 2)),
        Column("weight", ColumnType("DOUBLE")),
        Column("made_at", ColumnType("TIMESTAMP")),
        Column("day", ColumnType("DATE")),
        Column("paid", ColumnType("BOOLEAN")),
        Column("country", ColumnType("VARCHAR")),
        Column("note", ColumnType("VARCHAR")),
    ),
)
SPARK_COLUMNS: Final = (
    "id BIGINT, customer INT, kind STRING, amount DECIMAL(12, 2), weight DOUBLE, made_at TIMESTAMP_NTZ, day DATE, paid BOOLEAN, "
    "country STRING, note STRING"
)
"""The same columns as ``from_json`` wants them."""
_NAMES: Final = SCHEMA.column_names
_TYPES: Final = pa.schema([(field.name, field.type) for field in SCHEMA.arrow])
_AS_TEXT: Final = ("made_at", "day")
"""Columns that JSON has as texts."""

Reader: TypeAlias = Callable[[Sequence[bytes]], pa.Table]


def documents(count: int) -> list[bytes]:
    """Documents with ten members, some 200 bytes each."""
    return [_document(number) for number in range(count)]


def _document(number: int) -> bytes:
    members = {
        "id": f"{number}",
        "customer": f"{number * 7919 % 100_000}",
        "kind": f'"kind {number % 11}"',
        "amount": _amount(number),
        "weight": f"{number / 7:.6f}",
        "made_at": f'"2026-01-{number % 28 + 1:02} 03:04:{number % 60:02}.5"',
        "day": f'"2025-12-{number % 31 + 1:02}"',
        "paid": "true" if number % 3 else "false",
        "country": f'"country {number % 200}"',
        "note": f'"bought at counter {number % 9973}"',
    }
    return ("{" + ", ".join(f'"{name}": {value}' for name, value in members.items()) + "}").encode()


def _amount(number: int) -> str:
    return f"{number % 10**6}.{number % 100:02}"


def by_blocks(values: Sequence[bytes]) -> pa.Table:
    """Ours, as files are read: a document a line."""
    return _rows(JsonParser(SCHEMA, JsonOptions(update_format="raw")).parse(b"\n".join(values)).changes)


def by_messages(values: Sequence[bytes]) -> pa.Table:
    """Ours, as topics are read: a document a message."""
    parser = DocumentMessages(SCHEMA, JsonParser(SCHEMA, JsonOptions(update_format="raw")))
    return _rows(parser.parse_messages(Messages(values, lambda _: None)).changes)


def by_pyarrow(values: Sequence[bytes]) -> pa.Table:
    """Read the values with pyarrow alone, which our reader uses too. It checks nothing that it does not have to."""
    data = b"\n".join(values)
    texts = [pa.field(field.name, pa.string() if field.name in _AS_TEXT else field.type) for field in _TYPES]
    table = pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pajson.ParseOptions(explicit_schema=pa.schema(texts), unexpected_field_behavior="ignore"),
    )
    return table.cast(_TYPES)


def by_orjson(values: Sequence[bytes]) -> pa.Table:
    """Each document by orjson, and the columns from Python's objects; exact numbers are not, on their way through a float."""
    import orjson

    found: list[dict[str, Any]] = [orjson.loads(value) for value in values]
    columns = []
    for field in _TYPES:
        column = [row[field.name] for row in found]
        if field.name == "amount":
            columns.append(pa.array(column, pa.float64()).cast(field.type, safe=False))
        elif field.name in _AS_TEXT:
            columns.append(pa.array(column, pa.string()).cast(field.type))
        else:
            columns.append(pa.array(column, field.type))
    return pa.Table.from_arrays(columns, schema=_TYPES)


READERS: Final[Mapping[str, Reader]] = {
    "ours": by_messages,
    "ours_lines": by_blocks,
    "pyarrow": by_pyarrow,
    "orjson": by_orjson,
}
"""By name, all that run in this process, on one core."""


def check(table: pa.Table, count: int) -> None:
    """Whether a table has the first documents.

    :param table: as a reader gave it
    :param count: how many they are
    :raises ValueError: when it has anything else
    """
    ids, amounts = table["id"].to_numpy(), pc.sum(table["amount"]).as_py()
    wanted = sum(Decimal(_amount(number)) for number in range(count))
    if table.num_rows != count or int(ids.sum()) != count * (count - 1) // 2 or amounts != wanted:
        raise ValueError(f"{table.num_rows} rows of {count}, amounts of {amounts} instead of {wanted}")


def _rows(changes: TableChanges | None) -> pa.Table:
    if changes is None:
        raise ValueError("no rows")
    return changes.rows.select(_NAMES)
