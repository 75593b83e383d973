"""Writers of the changes of a view to one file: JSON or CSV, which may be compressed, or Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.connectors.left_out import LeftOutRows, parts_that_fit, problems_of, records_that_fit
from airflow_pipelines.connectors.transports.lake.columns import table_rows, table_schema
from airflow_pipelines.connectors.transports.lake.readable_texts import check_texts
from airflow_pipelines.rows.formats.csv import CsvOptions
from airflow_pipelines.rows.formats.definition import ChangeEncoder
from airflow_pipelines.rows.formats.delta import with_operations
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.systems.files.compression import ENDINGS, Compression

OP_COLUMN: Final = "__op"
"""The column of a Parquet file with the operation: ``i``, ``d`` or, for the new row of an update by an index, ``u``."""


class ChangesFile(Protocol):
    """A file that is being written."""

    rows: int
    """The number of changes in the file."""
    size: int
    """The size of the file in bytes; while it is written, an estimate."""

    @property
    def is_full(self) -> bool:
        """True if the next change belongs into another file."""

    @property
    def room(self) -> int:
        """The number of changes that may be added at a time."""

    def add(self, changes: pa.Table) -> None:
        """Add changes: rows with a weight of 1 or -1 as the last column, and maybe with updates."""

    def finish(self) -> None:
        """Write what is left; the file is on disk, or in its store, when this returns."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """The kind of the files to write.

    :param ending: the ending of their names
    :param begin: a function that takes an open file and returns the writer of its contents
    """

    ending: str
    begin: Callable[[Any], ChangesFile]


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits at which a file is full.

    :param rows: the maximum number of changes; None for any number
    :param size: the approximate maximum number of bytes; None for any number
    """

    rows: int | None
    size: int | None

    def are_reached(self, rows: int, size: int) -> bool:
        """Return True if a file has reached either limit."""
        return (self.rows is not None and rows >= self.rows) or (self.size is not None and size >= self.size)


def text_files(
    encoding: CsvOptions | JsonOptions,
    new_encoder: Callable[[], ChangeEncoder],
    compression: Compression,
    limits: FileLimits,
    left_out: LeftOutRows,
) -> FileKind:
    """Return the kind of files with a line for each change, or with arrays of changes.

    :param encoding: the options of the format
    :param new_encoder: a function that returns the encoder for one file
    :param compression: the compression of the files
    :param limits: the limits at which they are full
    :param left_out: the collector of the rows that the format cannot write
    """
    compressed = next((ending for ending, kind in ENDINGS.items() if kind is compression), "")
    ending = ("csv" if isinstance(encoding, CsvOptions) else "json") + compressed
    size = encoding.buffer_size_records if isinstance(encoding, JsonOptions) and encoding.array else None
    return FileKind(ending, lambda file: _TextFile(file, new_encoder(), size, compression, limits, left_out))


def parquet_files(schema: RelationSchema, limits: FileLimits, left_out: LeftOutRows) -> FileKind:
    """Return the kind of Parquet files with a column that has the operation of each change.

    :param schema: the schema of the view
    :param limits: the limits at which they are full
    :param left_out: the collector of the rows that such files cannot have
    """
    return FileKind("parquet", lambda file: _ParquetFile(file, schema, limits, left_out))


class _TextFile:
    def __init__(
        self,
        file: Any,
        encoder: ChangeEncoder,
        array_size: int | None,
        compression: Compression,
        limits: FileLimits,
        left_out: LeftOutRows,
    ) -> None:
        self.rows = 0
        self.size = 0
        self._file = file
        self._encoder = encoder
        self._array_size = array_size
        self._limits = limits
        self._left_out = left_out
        is_plain = compression is Compression.NONE
        self._stream = file if is_plain else pa.CompressedOutputStream(pa.PythonFile(_KeptOpen(file), mode="w"), compression.value)

    @property
    def is_full(self) -> bool:
        return self._limits.are_reached(self.rows, self.size)

    @property
    def room(self) -> int:
        return (self._limits.rows or 1 << 30) - self.rows

    def add(self, changes: pa.Table) -> None:
        messages = [message.rstrip(b"\n") for message in records_that_fit(changes, self._encoder.messages, self._left_out)]
        size = self._array_size
        if size is not None:
            arrays = (messages[begin : begin + size] for begin in range(0, len(messages), size))
            lines = [b"[" + b",".join(array) + b"]" for array in arrays]
        else:
            lines = messages
        data = b"".join(line + b"\n" for line in lines)
        self._stream.write(data)
        self.rows += len(messages)
        self.size += len(data)

    def finish(self) -> None:
        if self._stream is not self._file:
            self._stream.close()
        self.size = _complete(self._file)


class _ParquetFile:
    def __init__(self, file: Any, schema: RelationSchema, limits: FileLimits, left_out: LeftOutRows) -> None:
        self.rows = 0
        self.size = 0
        self._file = file
        self._limits = limits
        self._left_out = left_out
        self._columns = schema.columns
        self._schema = table_schema(schema.columns)
        self._writer = pq.ParquetWriter(_KeptOpen(file), self._schema.append(pa.field(OP_COLUMN, pa.string())), compression="zstd")
        self._waiting: list[pa.Table] = []

    @property
    def is_full(self) -> bool:
        return self._limits.are_reached(self.rows, self.size)

    @property
    def room(self) -> int:
        return (self._limits.rows or 1 << 30) - self.rows

    def add(self, changes: pa.Table) -> None:
        for plain in parts_that_fit(changes, problems_of(self._plain), self._left_out.add):
            self._waiting.append(plain)
            self.rows += plain.num_rows
            self.size += plain.nbytes

    def _plain(self, changes: pa.Table) -> pa.Table:
        changes, ops = with_operations(changes)
        plain = table_rows(changes, self._columns, self._schema)
        check_texts(plain)
        return plain.append_column(OP_COLUMN, ops)

    def finish(self) -> None:
        # Write one row group: the limits, and the size of a step's batches, bound the rows in memory.
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._writer.close()
        self.size = _complete(self._file)


class _KeptOpen:
    """A file that stays open when the writer on top of it is closed."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return int(self._file.write(data))

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is complete."""

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: the owner of the file closes it."""


def _complete(file: Any) -> int:
    """Flush and close a file that is complete, and return its size in bytes."""
    size = int(file.tell())
    flush(file)
    file.close()
    return size


def flush(file: Any) -> None:
    """Flush a file, and sync it to disk if it is a file of this machine."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except (AttributeError, OSError, ValueError):
        # It is not a file of this machine.
        return
