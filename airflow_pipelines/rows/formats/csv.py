"""The CSV format: records with a table's columns in order, or in the order of a header; rows to CSV text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.csv_columns import CsvColumns
from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.parsed import BYTE_ORDER_MARK, Parsed, RecordProblem, RowBuffer, excerpt
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema

_LONGEST_RECORD = 16 << 20
"""The number of characters after which an opened quote counts as a mistake."""
_SAMPLE_BYTES = 64 << 10
"""The bytes of a block that are read to count its fields."""


class CsvOptions(BaseModel):
    """Options of the CSV format.

    :param headers: True if the first line of each file or request is a header, by which fields are matched with columns
    :param delimiter: a single ASCII character
    :param quote: a single ASCII character; within a quoted field it is doubled
    :param buffer_size_records: accepted for outputs; the lines are the same for any number of lines written at a time
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    headers: bool = False
    delimiter: str = Field(default=",", pattern=r"^[\x01-\x09\x0b\x0c\x0e-\x7f]$")
    quote: str = Field(default='"', pattern=r"^[\x01-\x09\x0b\x0c\x0e-\x7f]$")
    buffer_size_records: int = Field(default=10_000, ge=1)


class _Unfinished(Exception):
    """The error for a quoted field that continues after the end of the text."""


class CsvParser:
    """A parser of CSV records into inserts of one table. The index of a record is the number of its first line, from 1."""

    def __init__(self, schema: RelationSchema, options: CsvOptions | None = None, now: Now = wall_clock) -> None:
        self._schema = schema
        self._options = options or CsvOptions()
        self._reader = RowReader(schema, now=now)
        self._vectorised = CsvColumns(schema, self._options.delimiter, self._options.quote)
        self._in_order: list[int | None] = list(range(len(schema.columns)))
        self._order = None if self._options.headers else self._in_order
        self._header_problem: str | None = None
        mark, quote = re.escape(self._options.delimiter), re.escape(self._options.quote)
        self._plain = re.compile(rf"[^{mark}\r\n]*")
        self._quoted = re.compile(rf"{quote}((?:[^{quote}]++|{quote}{quote})*+){quote}([^{mark}\r\n]*)")

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:
        """Parse ``data``, which holds whole records only; ``first_index`` is the number of lines before it."""
        skipped = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        return self._parse(data[skipped:], first_index, final=True, skipped=skipped)

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Parse the records of ``data`` that are complete, with their line ends."""
        complete = data.rfind(b"\n") + 1
        if complete == 0:
            return RowBuffer(self._schema).finish(0, first_index)
        return self._parse(data[:complete], first_index, final=False, skipped=0)

    @property
    def repeats_deletes(self) -> bool:
        """False, because a document without a payload has no meaning."""
        return False

    def begin(self, metadata: pa.Table | None) -> None:
        """Begin another batch of documents."""
        self._reader.begin(metadata)

    def read_together(self, documents: Sequence[bytes], numbers: Sequence[int], buffer: RowBuffer) -> bool:  # noqa: ARG002
        """Add documents of one record each, or return False if they have to be read one by one."""
        if self._options.headers or self._order is None:
            return False
        records = [document.removesuffix(b"\n").removesuffix(b"\r") for document in documents]
        quote = self._options.quote.encode()
        block = b"\n".join(records)
        if quote in block and any(record.count(quote) % 2 for record in records):
            return False
        if BYTE_ORDER_MARK in block and any(record.startswith(BYTE_ORDER_MARK) for record in records):
            return False
        arrays = self._vectorised.read(block, self._width(block), self._order)
        if arrays is None or not len(arrays[0]) == len(records) == block.count(b"\n") + 1:
            return False
        buffer.add_inserts(arrays, len(records))
        return True

    def read_document(self, document: bytes, buffer: RowBuffer) -> None:
        """Add the records of a document to a buffer; it has a header of its own if the options say so."""
        self._reader.at(buffer.document or 0)
        if self._options.headers:
            self._order = None
        self.add_records(document.removeprefix(BYTE_ORDER_MARK), buffer)

    def add_records(self, document: bytes, buffer: RowBuffer) -> None:
        """Add the records of a whole document to a buffer.

        :param document: the document, with its header if it has one
        :param buffer: the buffer for the rows and the malformed records
        """
        start, lines = self._read_header(document, 0, True) if self._order is None else (0, 0)
        if self._order is not None:
            self._records(document[start:].decode("utf-8", "surrogateescape"), lines, buffer, True)

    def state(self) -> dict[str, Any]:
        """Return the state of the header: for each column the number of its field, and the header's problem if there is one."""
        if self._order is None:
            return {}
        return {"order": self._order} | ({} if self._header_problem is None else {"problem": self._header_problem})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state that :meth:`state` returned."""
        if "order" in state:
            self._order = [None if place is None else int(place) for place in state["order"]]
            self._header_problem = state.get("problem")

    def _parse(self, data: bytes, lines: int, *, final: bool, skipped: int) -> Parsed:
        buffer = RowBuffer(self._schema)
        self._reader.begin()
        start, lines = self._read_header(data, lines, final) if self._order is None else (0, lines)
        if self._order is None:
            return buffer.finish(len(data) + skipped if final else skipped, lines)
        block = data[start:] if start else data
        arrays = None if self._header_problem else self._vectorised.read(block, self._width(block), self._order)
        if arrays is not None:
            buffer.add_inserts(arrays, len(arrays[0]))
            return buffer.finish(len(data) + skipped, lines + block.count(b"\n") + (not block.endswith(b"\n")))
        text = block.decode("utf-8", "surrogateescape")
        end, lines = self._records(text, lines, buffer, final)
        consumed = len(block) if end == len(text) else len(text[:end].encode("utf-8", "surrogateescape"))
        return buffer.finish(start + consumed + skipped, lines)

    def _read_header(self, data: bytes, lines: int, final: bool) -> tuple[int, int]:
        """Read the header at the start of ``data``.

        :returns: the offset of the first row, and the number of lines before it
        """
        text = data.decode("utf-8", "surrogateescape")
        if not text:
            return 0, lines
        try:
            names, end = self._record(text, 0)
        except _Unfinished:
            if not final and len(text) <= _LONGEST_RECORD:
                return 0, lines
            names, end = [], _next_line(text, 0)
        except RecordProblem:
            names, end = [], _next_line(text, 0)
        self._order, self._header_problem = self._map_header(names)
        head = text[:end]
        return len(head.encode("utf-8", "surrogateescape")), lines + _count_lines(head)

    def _map_header(self, names: Sequence[str]) -> tuple[list[int | None], str | None]:
        """Return for each column the number of its field in a header, or None if it has none, and the header's problem."""
        order: list[int | None] = [None] * len(self._schema.columns)
        for number, name in enumerate(names):
            place = self._reader.place(name.strip())
            if place is None:
                continue
            if order[place] is not None:
                return order, f"the header (line 1) names column {self._schema.columns[place].name!r} more than once"
            order[place] = number
        if any(number is not None for number in order):
            return order, None
        listed = excerpt(", ".join(self._schema.column_names))
        return order, f"the header (line 1) names no column of the table, which has {listed}"

    def _width(self, block: bytes) -> int:
        """Count the fields of the first record that is not empty."""
        text = block[:_SAMPLE_BYTES].decode("utf-8", "surrogateescape").lstrip("\r\n")
        try:
            return len(self._record(text, 0)[0])
        except (_Unfinished, RecordProblem):
            return 0

    def _records(self, text: str, lines: int, buffer: RowBuffer, final: bool) -> tuple[int, int]:
        at = 0
        order = self._in_order if self._order is None else self._order
        while at < len(text):
            start, line = at, lines + 1
            try:
                fields, at = self._record(text, start)
                lines += _count_lines(text[start:at])
                if fields == [""] and not text[start:at].strip("\r\n"):
                    continue
                if self._header_problem is not None:
                    raise RecordProblem(self._header_problem)
                buffer.add(Op.INSERT, self._reader.text_row(fields, order))
            except _Unfinished:
                if not final and len(text) - start <= _LONGEST_RECORD:
                    return start, lines
                at, lines = _next_line(text, start), lines + 1
                buffer.reject(line, f"line {line}: a quote is opened and never closed in {excerpt(text[start:at])}")
            except RecordProblem as problem:
                if at == start:
                    at, lines = _next_line(text, start), lines + 1
                buffer.reject(line, f"line {line}: {problem} in {excerpt(text[start : min(at, start + 200)])}")
        return at, lines

    def _record(self, text: str, start: int) -> tuple[list[str], int]:
        """Split the record at ``start`` into fields, and find the start of the next one."""
        options = self._options
        end = _line_stop(text, start)
        line = text[start:end]
        if options.quote not in line:
            return line.split(options.delimiter), _next_line(text, start)
        fields = []
        at = start
        while True:
            if text.startswith(options.quote, at):
                match = self._quoted.match(text, at)
                if match is None:
                    raise _Unfinished
                if match[2]:
                    raise RecordProblem(f"{excerpt(match[2], 40)!r} follows a closing quote")
                fields.append(match[1].replace(options.quote * 2, options.quote))
            else:
                match = self._plain.match(text, at)
                fields.append(match[0] if match else "")
            at = match.end() if match else at
            if not text.startswith(options.delimiter, at):
                return fields, _next_line(text, at)
            at += 1


def _line_stop(text: str, at: int) -> int:
    """Find the end of the line at ``at``, before its line break."""
    newline = text.find("\n", at)
    end = len(text) if newline < 0 else newline
    bare = text.find("\r", at, end)
    return end if bare < 0 else bare


def _next_line(text: str, at: int) -> int:
    stop = _line_stop(text, at)
    if text.startswith("\r\n", stop):
        return stop + 2
    return min(stop + 1, len(text))


def _count_lines(text: str) -> int:
    """Count the lines of a record; a last line without a line break counts."""
    ends = text.count("\n") + text.replace("\r\n", "").count("\r")
    return ends if text.endswith(("\n", "\r")) else ends + 1
