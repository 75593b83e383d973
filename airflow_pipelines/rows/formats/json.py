"""The JSON format: changes from sequences of JSON values, rows to JSON text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.debezium import (
    DebeziumChanges,
    RowChange,
    Truncation,
    completed_object,
    fields_of_object,
)
from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.flavors import FORMS, JsonFlavor
from airflow_pipelines.rows.formats.json_columns import GREATEST_WEIGHT, ColumnChanges, JsonColumns
from airflow_pipelines.rows.formats.parsed import BYTE_ORDER_MARK, Parsed, RecordProblem, RowBuffer, excerpt
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema

_SPACE = re.compile(r"[ \t\r\n]*")
_NEXT_RECORD = re.compile(r"^[{\[]", re.MULTILINE)
_ACTIONS = frozenset({"insert", "delete", "update"})
_Change: TypeAlias = "tuple[Op, list[Any], list[str] | None] | Truncation"
_OPENED, _CLOSED = b"{}"


class JsonOptions(BaseModel):
    """Options of the JSON format.

    :param update_format: the form of a record: a row (``raw``), a change (``insert_delete``), a row with the number of times that
        it is added or removed (``weighted``), a change in Debezium's form (``debezium``) or in Snowflake's (``snowflake``)
    :param json_flavor: the forms of dates and times, bytes and exact numbers
    :param array: True if each top-level value is a list of records, accepted or rejected as a whole
    :param buffer_size_records: the maximum number of changes in an array that an output writes
    :param key_fields: the columns of the key of a message that an output writes; by default those of its index
    :param lines: ``single`` promises one record a line, so that a broken record never affects its neighbours
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    update_format: Literal["insert_delete", "raw", "weighted", "debezium", "snowflake"] = "insert_delete"
    json_flavor: JsonFlavor = JsonFlavor.DEFAULT
    array: bool = False
    lines: Literal["multiple", "single"] = "multiple"
    buffer_size_records: int = Field(default=10_000, ge=1)
    key_fields: tuple[str, ...] | None = None

    @property
    def written_flavor(self) -> JsonFlavor:
        """The flavor of the output: if none was given, changes for Snowflake are in its own."""
        if self.update_format == "snowflake" and "json_flavor" not in self.model_fields_set:
            return JsonFlavor.SNOWFLAKE
        return self.json_flavor


class JsonParser:
    """A parser of a sequence of JSON values, separated by white space or nothing, into changes of one table."""

    def __init__(self, schema: RelationSchema, options: JsonOptions | None = None, now: Now = wall_clock) -> None:
        self._schema = schema
        self._options = options or JsonOptions()
        forms = FORMS[self._options.json_flavor]
        self._reader = RowReader(schema, forms, now)
        self._debezium = DebeziumChanges(schema, self._reader, fields_of_object, completed_object)
        self._vectorised = (
            None
            if forms.has_numeric_times
            else JsonColumns(schema, self._reader, self._options.update_format, array=self._options.array)
        )

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:
        """Parse ``data``, which holds whole records only; nothing is left over."""
        skipped = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        return self._parse(data[skipped:], first_index, final=True, skipped=skipped)

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Parse the records of the complete lines of ``data``."""
        complete = data.rfind(b"\n") + 1
        if complete == 0:
            return RowBuffer(self._schema).finish(0, first_index)
        return self._parse(data[:complete], first_index, final=False, skipped=0)

    @property
    def repeats_deletes(self) -> bool:
        """True for Debezium, which writes a message without a payload after each delete."""
        return self._options.update_format == "debezium"

    def begin(self, metadata: pa.Table | None) -> None:
        """Begin another batch of documents."""
        self._reader.begin(metadata)

    def read_together(self, documents: Sequence[bytes], numbers: Sequence[int], buffer: RowBuffer) -> bool:
        """Add the changes of documents that are one object each, or return False if they have to be read one by one."""
        vectorised = self._without_described if self._reader.described else self._vectorised
        if vectorised is None or self._options.array:
            return False
        lines = _lines_of_objects(documents) or _lines_of_objects([document.strip() for document in documents])
        read = None if lines is None else vectorised.read(lines)
        if read is None or read.records != len(documents):
            return False
        if not self._reader.described:
            buffer.add_changes(read.columns, read.operations)
            return True
        columns = self._fill_described(read, numbers)
        if columns is None:
            return False
        buffer.add_changes(columns, read.operations)
        return True

    def read_document(self, document: bytes, buffer: RowBuffer) -> None:
        """Add the changes of a document to a buffer."""
        self._reader.at(buffer.document or 0)
        self._records(document.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape"), 0, buffer, True)

    @cached_property
    def _without_described(self) -> JsonColumns | None:
        """The reader of the columns that do not depend on metadata, for records that name none of the others."""
        if self._vectorised is None:
            return None
        columns = tuple(column for column in self._schema.columns if column.name not in self._reader.described)
        rest = RelationSchema(self._schema.name, columns, self._schema.primary_key)
        return JsonColumns(rest, self._reader, self._options.update_format, array=False)

    def _fill_described(self, read: ColumnChanges, numbers: Sequence[int]) -> list[ArrowColumn] | None:
        """Return all columns of records that are one row each, or None if they have to be read one by one."""
        if len(read.operations) != len(numbers) or not pc.all(pc.equal(read.operations, int(Op.INSERT))).as_py():
            return None
        others = iter(read.columns)
        columns: list[ArrowColumn] = []
        for column, kind in zip(self._schema.columns, self._schema.arrow, strict=True):
            if column.name in self._reader.described:
                values = self._reader.described_array(column.name, numbers, kind.type)
                if values is None:
                    return None
                columns.append(values)
            else:
                columns.append(next(others))
        return columns

    def state(self) -> dict[str, Any]:
        """Return an empty state: nothing is remembered between calls."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing, because nothing is remembered between calls."""

    def _parse(self, data: bytes, first_index: int, *, final: bool, skipped: int) -> Parsed:
        buffer = RowBuffer(self._schema)
        self._reader.begin()
        if self._vectorised is not None:
            read = self._vectorised.read(data)
            if read is not None:
                buffer.add_changes(read.columns, read.operations)
                return buffer.finish(len(data) + skipped, first_index + read.records)
        # Bytes that are not UTF-8 become lone surrogates, which every string conversion refuses.
        text = data.decode("utf-8", "surrogateescape")
        end, index = self._records(text, first_index, buffer, final)
        consumed = len(data) if end == len(text) else len(text[:end].encode("utf-8", "surrogateescape"))
        return buffer.finish(consumed + skipped, index)

    def _records(self, text: str, index: int, buffer: RowBuffer, final: bool) -> tuple[int, int]:
        """Read values from ``text``.

        :returns: the offset at which reading stopped, and the index after the last record
        """
        at = _skip_space(text, 0)
        while at < len(text):
            limit = _line_end(text, at) if self._options.lines == "single" else len(text)
            try:
                value, end = jsontext.DECODER.raw_decode(text if limit == len(text) else text[:limit], at)
            except jsontext.MALFORMED as error:
                place = getattr(error, "pos", at)
                if not final and limit == len(text) and place >= len(text.rstrip(" \t\r\n")):
                    return at, index
                reason = getattr(error, "msg", str(error))
                buffer.reject(index, f"record {index}: malformed JSON: {reason} in {excerpt(text[at : at + 200])}")
                index += 1
                at = _skip_space(text, _resume(text, at, place))
                continue
            index = self._take(value, index, buffer, text, at, end)
            at = _skip_space(text, end)
        return len(text), index

    def _take(self, value: Any, index: int, buffer: RowBuffer, text: str, start: int, end: int) -> int:
        """Add one top-level value's records to ``buffer``.

        :returns: the index of the next record
        """
        if not self._options.array:
            try:
                for change in self._changes(value):
                    _add(change, buffer)
            except RecordProblem as problem:
                buffer.reject(index, f"record {index}: {problem} in {excerpt(text[start : min(end, start + 200)])}")
            return index + 1
        if not isinstance(value, list):
            buffer.reject(index, f"record {index}: not an array of records: {excerpt(text[start : min(end, start + 200)])}")
            return index + 1
        changes: list[_Change] = []
        problems = []
        for number, item in enumerate(value, index):
            try:
                changes += self._changes(item)
            except RecordProblem as problem:
                problems.append((number, f"record {number}: {problem} in {excerpt(jsontext.dumps_for_message(item))}"))
        whole = f"; the whole array of {len(value)} records is rejected" if len(value) > 1 else ""
        for number, message in problems:
            buffer.reject(number, message + whole)
        for change in changes if not problems else ():
            _add(change, buffer)
        return index + len(value)

    def _changes(self, value: Any) -> Sequence[_Change]:
        match self._options.update_format:
            case "raw":
                return ((Op.INSERT, self._reader.row(value), None),)
            case "weighted":
                return self._read_weighted(value)
            case "debezium":
                return self._read_debezium(value)
            case _:
                return (self._change(value),)

    def _read_weighted(self, value: Any) -> Sequence[_Change]:
        weight = value.get("weight") if isinstance(value, dict) and "data" in value else None
        if type(weight) is not int or abs(weight) > GREATEST_WEIGHT:
            raise RecordProblem(f'not a weighted row; wanted {{"weight": n, "data": row}}, n between +/-{GREATEST_WEIGHT}')
        row = value["data"]
        change: _Change = (Op.INSERT, self._reader.row(row), None) if weight > 0 else (Op.DELETE, self._reader.key(row), None)
        return [change] * abs(weight)

    def _read_debezium(self, value: Any) -> Sequence[_Change]:
        # With schemas switched off in Debezium, there is only the payload.
        payload = value if not isinstance(value, dict) or value.get("payload") is None else value["payload"]
        if not isinstance(payload, dict) or not isinstance(payload.get("op"), str):
            raise RecordProblem(
                'not a change of Debezium; wanted {"payload": {"op": "c", "u", "d", "r" or "t", "before": row, "after": row}}'
            )
        changes = self._debezium.of(payload["op"], payload.get("before"), payload.get("after"))
        return [self._read_change(change) for change in changes]

    def _read_change(self, change: RowChange | Truncation) -> _Change:
        if isinstance(change, Truncation):
            return change
        row = change.row
        if change.left_out:
            row = {name: value for name, value in row.items() if name not in change.left_out}
        match change.op:
            case Op.DELETE:
                return Op.DELETE, self._reader.key(row), None
            case Op.UPDATE:
                return Op.UPDATE, *self._reader.update(row)
        return Op.INSERT, self._reader.row(row), None

    def _change(self, value: Any) -> _Change:
        if isinstance(value, dict) and len(value) > 1:
            # Some writers give all three actions, and null for those that do not apply.
            value = {action: row for action, row in value.items() if row is not None or action not in _ACTIONS}
        if not isinstance(value, dict) or len(value) != 1:
            raise RecordProblem('not a change; wanted {"insert": row}, {"delete": row} or {"update": row}')
        ((action, row),) = value.items()
        if action == "insert":
            return Op.INSERT, self._reader.row(row), None
        if action == "delete":
            return Op.DELETE, self._reader.key(row), None
        if action == "update":
            return Op.UPDATE, *self._reader.update(row)
        raise RecordProblem(f"{excerpt(action, 40)!r} is not a change; wanted insert, delete or update")


def _add(change: _Change, buffer: RowBuffer) -> None:
    if isinstance(change, Truncation):
        buffer.truncate()
    else:
        buffer.add(*change)


def _lines_of_objects(documents: Sequence[bytes]) -> bytes | None:
    """Return the documents joined by line breaks, or None unless each begins and ends like an object.

    Such a document cannot be a part of an object with its neighbours. So if there are as many objects as documents, each document
    is one object.
    """
    lines = b"\n".join(documents)
    if not lines:
        return None
    places = np.frombuffer(lines, np.uint8)
    sizes = np.fromiter(map(len, documents), np.int64, len(documents))
    ends = np.cumsum(sizes + 1) - 2
    # An empty document seems to end before it begins, with a line break.
    if (places[ends - sizes + 1] == _OPENED).all() and (places[ends] == _CLOSED).all():
        return lines
    return None


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _resume(text: str, start: int, place: int) -> int:
    """Find the offset at which to resume after a record that began at ``start`` and broke at ``place``.

    If it broke within its first line, the next line is taken as the next record. If it broke later, the record was spread over
    lines, and the text after it is searched for a line that opens a value without indentation.
    """
    line_end = _line_end(text, start)
    if place < line_end:
        return line_end
    match = _NEXT_RECORD.search(text, line_end)
    return match.start() if match else len(text)
