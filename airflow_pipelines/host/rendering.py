"""A query's result in the formats of the query endpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.connectors.formats.encode import encode_rows, json_texts
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem

CELL_WIDTH = 64
"""Characters of a value that the text format shows."""
_MODULUS = 1 << 256


def as_text(table: Any) -> Iterator[bytes]:
    """A box of ASCII characters, one line per row; long values are cut."""
    columns = [[name, *map(_cell, json_texts(column))] for name, column in zip(table.column_names, table.columns, strict=True)]
    if not columns:
        return
    widths = [max(map(len, cells)) for cells in columns]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    lines = [rule]
    for number, row in enumerate(zip(*columns, strict=True)):
        lines.append("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |\n")
        if number == 0:
            lines.append(rule)
        if len(lines) >= 1000:
            yield "".join(lines).encode()
            lines = []
    lines.append(rule)
    yield "".join(lines).encode()


def as_json(table: Any) -> Iterator[bytes]:
    """One JSON object per row and line."""
    lines: list[str] = []
    for row in encode_rows(table):
        lines.append(row)
        if len(lines) >= 1000:
            yield ("\n".join(lines) + "\n").encode()
            lines = []
    if lines:
        yield ("\n".join(lines) + "\n").encode()


def as_parquet(table: Any) -> Iterator[bytes]:
    """A Parquet file, compressed with snappy."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    yield bytes(sink.getvalue())


def as_arrow(table: Any) -> Iterator[bytes]:
    """An Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    yield bytes(sink.getvalue())


def as_hash(table: Any) -> Iterator[bytes]:
    """SHA-256 over the schema and all rows in whatever order, in upper-case hexadecimal."""
    total = 0
    for row in encode_rows(table):
        total = (total + int.from_bytes(hashlib.sha256(row.encode()).digest(), "big")) % _MODULUS
    digest = hashlib.sha256(str([(field.name, str(field.type)) for field in table.schema]).encode())
    digest.update(total.to_bytes(32, "big"))
    digest.update(str(table.num_rows).encode())
    yield digest.hexdigest().upper().encode()


FORMATS: dict[str, tuple[str, Callable[[Any], Iterator[bytes]]]] = {
    "text": ("text/plain; charset=utf-8", as_text),
    "json": ("application/x-ndjson", as_json),
    "parquet": ("application/octet-stream", as_parquet),
    "arrow_ipc": ("application/octet-stream", as_arrow),
    "hash": ("text/plain; charset=utf-8", as_hash),
}


def check_format(name: str) -> None:
    """Raise a 400 Problem for a format that does not exist."""
    if name not in FORMATS:
        raise Problem(ErrorCode.INVALID_PARAM, f"Unknown query format {name!r}; known formats: {', '.join(FORMATS)}.")


def counted(rows: int) -> Any:
    """The result of a statement that changes rows: a table with one column ``count``."""
    return pa.table({"count": pa.array([rows], pa.uint64())})


def _cell(text: str) -> str:
    if text == "null":
        return ""
    value = json.loads(text) if text.startswith('"') else text
    # A line end within a cell would break the box.
    value = value.replace("\r", "\\r").replace("\n", "\\n")
    return value if len(value) <= CELL_WIDTH else value[: CELL_WIDTH - 3] + "..."
