"""The formats of the query endpoint, in which a query's result is rendered table by table.

Each format takes an iterator of pyarrow Tables of one schema, at least one, and yields the parts of a body.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import QUERY_FAILED_LINE, Problem
from airflow_pipelines.host.queries.result_values import has_map_without_text_keys, with_timestamps_as_text
from airflow_pipelines.rows.formats.encode import encode_rows, json_texts
from airflow_pipelines.rows.formats.scalar_texts import READABLE_SCALARS

CELL_WIDTH = 64
"""The number of characters of a value that the text format shows."""
ROW_GROUP_BYTES = 16 << 20
"""The approximate number of bytes of Arrow data in a row group of a Parquet file."""
LINES_AT_ONCE = 1000
_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True)
class Format:
    """A format of results.

    :param media_type: the media type of the answer
    :param render: makes the body
    :param failure: makes the part that describes the failure of an incomplete body, for a format that has a place for it
    """

    media_type: str
    render: Callable[[Iterator[pa.Table]], Iterator[bytes]]
    failure: Callable[[Problem], bytes] | None = None


class NotRepresentableError(ValueError):
    """The error of a result with a value that its format cannot represent."""


def as_text(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    """Yield boxes of ASCII characters, one line per row; long values are cut.

    A box is as wide as its first rows need. If later rows need more, it ends, and one with wider columns begins.
    """
    box: _Box | None = None
    for rows in _blocks(tables):
        if not rows.num_columns:
            return
        names = list(map(_escape_line_breaks, rows.column_names))
        cells = [[_format_cell(text) for text in json_texts(column, READABLE_SCALARS)] for column in rows.columns]
        widths = [max(map(len, column), default=0) for column in cells]
        lines = []
        if box is None or not box.holds(widths):
            lines = [] if box is None else [box.rule]
            box = _Box(list(map(max, widths, map(len, names) if box is None else box.widths)))
            lines += [box.rule, box.line(names), box.rule]
        lines += map(box.line, zip(*cells, strict=True))
        yield "".join(lines).encode()
    if box is not None:
        yield box.rule.encode()


def _blocks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows in tables of ``LINES_AT_ONCE`` rows, regardless of their chunks; at least one table."""
    rest: pa.Table | None = None
    begun = False
    for table in tables:
        rest = pa.concat_tables([rest, table]) if rest is not None and rest.num_rows else table
        while rest.num_rows >= LINES_AT_ONCE:
            yield rest.slice(0, LINES_AT_ONCE)
            rest, begun = rest.slice(LINES_AT_ONCE), True
    if rest is not None and (rest.num_rows or not begun):
        yield rest


@dataclass(frozen=True, slots=True)
class _Box:
    """A box with a width in characters for each column."""

    widths: list[int]

    @property
    def rule(self) -> str:
        return "+" + "+".join("-" * (width + 2) for width in self.widths) + "+\n"

    def line(self, cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, self.widths, strict=True)) + " |\n"

    def holds(self, widths: Iterable[int]) -> bool:
        return all(width <= own for width, own in zip(widths, self.widths, strict=True))


def as_json(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    """Yield one JSON object per row and line.

    :raises NotRepresentableError: if there is a map whose keys are not strings
    """
    for table in tables:
        if has_map_without_text_keys(table.schema):
            raise NotRepresentableError("JSON has no maps whose keys are no strings: cast the keys, or ask for another format")
        lines: list[str] = []
        for row in encode_rows(with_timestamps_as_text(table)):
            lines.append(row)
            if len(lines) >= LINES_AT_ONCE:
                yield ("\n".join(lines) + "\n").encode()
                lines = []
        if lines:
            yield ("\n".join(lines) + "\n").encode()


def as_parquet(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    """Yield a Parquet file, compressed with snappy."""
    first = next(tables)
    sink = _Sink()
    with pq.ParquetWriter(sink, first.schema, compression="snappy") as writer:
        # The first rows are a row group of their own, so that the file begins with them.
        writer.write_table(first)
        yield sink.take()
        waiting, size = list[pa.Table](), 0
        for table in tables:
            waiting.append(table)
            size += table.nbytes
            if size >= ROW_GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                yield sink.take()
                waiting, size = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    yield sink.take()


def as_arrow(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    """Yield an Arrow IPC stream."""
    first = next(tables)
    sink = _Sink()
    with pa.ipc.new_stream(sink, first.schema) as writer:
        writer.write_table(first)
        yield sink.take()
        for table in tables:
            writer.write_table(table)
            yield sink.take()
    yield sink.take()


def as_hash(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    """Yield the SHA-256 hash of the schema and all rows, independent of their order, in upper-case hexadecimal."""
    total = rows = 0
    schema = pa.schema([])
    for table in tables:
        schema = table.schema
        rows += table.num_rows
        for row in encode_rows(table, READABLE_SCALARS):
            total = (total + int.from_bytes(hashlib.sha256(row.encode()).digest(), "big")) % _MODULUS
    digest = hashlib.sha256(str([(field.name, str(field.type)) for field in schema]).encode())
    digest.update(total.to_bytes(32, "big"))
    digest.update(str(rows).encode())
    yield digest.hexdigest().upper().encode()


def _last_line(problem: Problem) -> bytes:
    return (json.dumps({"error": problem.message}) + "\n").encode()


def _error_line(problem: Problem) -> bytes:
    return f"{QUERY_FAILED_LINE}{' '.join(problem.message.split())}\n".encode()


FORMATS: dict[str, Format] = {
    "text": Format("text/plain; charset=utf-8", as_text, failure=_error_line),
    "json": Format("application/x-ndjson", as_json, failure=_last_line),
    "parquet": Format("application/octet-stream", as_parquet),
    "arrow_ipc": Format("application/octet-stream", as_arrow),
    "hash": Format("text/plain; charset=utf-8", as_hash),
}


def format_of(name: str) -> Format:
    """Return a format by its name.

    :param name: the name in a request
    :raises Problem: if there is no such format
    """
    if name not in FORMATS:
        raise Problem(ErrorCode.INVALID_PARAM, f"Unknown query format {name!r}; known formats: {', '.join(FORMATS)}.")
    return FORMATS[name]


def make_count_table(rows: int) -> pa.Table:
    """Return the result of a statement that changes rows: a table with one column ``count``."""
    return pa.table({"count": pa.array([rows], pa.uint64())})


class _Sink(io.RawIOBase):
    """A file that is read while it is written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, part: object) -> int:
        content = bytes(part)  # type: ignore[call-overload]
        self._parts.append(content)
        self._position += len(content)
        return len(content)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        """Remove and return everything written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _format_cell(text: str) -> str:
    if text == "null":
        return ""
    value = _escape_line_breaks(json.loads(text) if text.startswith('"') else text)
    return value if len(value) <= CELL_WIDTH else value[: CELL_WIDTH - 3] + "..."


def _escape_line_breaks(value: str) -> str:
    # A line break within a cell would break the box.
    return value.replace("\r", "\\r").replace("\n", "\\n")
