"""The raw format: the input becomes the value of a table's only column, as a whole or line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.converting import Converter
from airflow_pipelines.rows.formats.parsed import Parsed, RecordProblem, RowBuffer, excerpt
from airflow_pipelines.rows.formats.values import text_converter
from airflow_pipelines.rows.schema import RelationSchema


class RawOptions(BaseModel):
    """Options of the raw format.

    :param mode: ``blob``: the whole input is one row; ``lines``: each line is one row
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["blob", "lines"] = "blob"


class RawParser:
    """A parser of raw bytes into rows of one VARCHAR, VARBINARY or BINARY column."""

    def __init__(self, schema: RelationSchema, options: RawOptions | None = None) -> None:
        """Make a parser for one table.

        :param schema: the table
        :param options: the options of the format
        :raises RecordProblem: when the table has another form
        """
        kinds = [column.type for column in schema.columns]
        if len(kinds) != 1 or not (kinds[0].is_binary or (kinds[0].is_text and not kinds[0].is_padded)):
            raise RecordProblem("format 'raw' needs a table with one column, of type VARCHAR or VARBINARY")
        (column,) = schema.columns
        self._schema = schema
        self._lines = (options or RawOptions()).mode == "lines"
        self._text: Converter | None = text_converter(column.type) if column.type.is_text else None
        self._size = column.type.precision
        self._fills_up = column.type.is_padded

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:
        """Parse ``data``, which holds whole records only; nothing is left over."""
        if not self._lines:
            return self._rows([data] if data else [], first_index, len(data))
        return self._rows(data.removesuffix(b"\n").split(b"\n") if data else [], first_index, len(data))

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Parse the complete lines of ``data``; a blob is complete at the end only."""
        complete = data.rfind(b"\n") + 1 if self._lines else 0
        return self.parse(data[:complete], first_index)

    @property
    def repeats_deletes(self) -> bool:
        """False, because a document without a payload has no meaning."""
        return False

    def begin(self, metadata: pa.Table | None) -> None:
        """Do nothing: no column of such a table has a DEFAULT that would be used."""

    def read_together(self, documents: Sequence[bytes], numbers: Sequence[int], buffer: RowBuffer) -> bool:  # noqa: ARG002
        """Add each document as a row, or return False if they have to be read one by one."""
        if self._lines or self._size is not None:
            return False
        values = pa.array(documents, pa.binary())
        if self._text is not None:
            try:
                values = values.cast(pa.string())
            except pa.ArrowInvalid:
                return False
        buffer.add_inserts([values], len(documents))
        return True

    def read_document(self, document: bytes, buffer: RowBuffer) -> None:
        """Add the rows of a document to a buffer."""
        records = document.removesuffix(b"\n").split(b"\n") if self._lines else [document]
        self._add(records, 0, buffer)

    def state(self) -> dict[str, Any]:
        """Return an empty state: nothing is remembered between calls."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing, because nothing is remembered between calls."""

    def _rows(self, records: list[bytes], first_index: int, consumed: int) -> Parsed:
        buffer = RowBuffer(self._schema)
        self._add(records, first_index, buffer)
        return buffer.finish(consumed, first_index + len(records))

    def _add(self, records: Sequence[bytes], first_index: int, buffer: RowBuffer) -> None:
        for index, record in enumerate(records, first_index):
            try:
                buffer.add(Op.INSERT, [self._value(record.removesuffix(b"\r") if self._lines else record)])
            except RecordProblem as problem:
                buffer.reject(index, f"record {index}: {problem}")

    def _value(self, record: bytes) -> str | bytes:
        if self._text is not None:
            try:
                text: str = self._text(record.decode())
            except UnicodeDecodeError as error:
                shown = excerpt(record.decode("utf-8", "backslashreplace"), 60)
                raise RecordProblem(f"{shown!r} is not valid UTF-8 text; a VARBINARY column takes any bytes") from error
            return text
        if self._size is not None and len(record) > self._size:
            raise RecordProblem(f"{len(record)} bytes are more than the column's {self._size}")
        return record.ljust(self._size, b"\0") if self._fills_up and self._size is not None else record
