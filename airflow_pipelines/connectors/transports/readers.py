"""Reading one file piece by piece, each piece ending where a record ends."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.formats.parquet import ParquetParser
from airflow_pipelines.connectors.formats.parsed import Parsed, Parser, RecordError

BLOCK_BYTES = 4 << 20
"""How much of a text file is parsed at a time, unless the reader is told otherwise."""
MAX_RECORD_BYTES = 256 << 20
"""A single record, or JSON array, longer than this is refused rather than held in memory."""

_BOM = b"\xef\xbb\xbf"
_SMALLEST_READ = 64 << 10


class FileReader(Protocol):
    """Reads one file from a place on."""

    done: bool
    """Whether the file has been read to its end, for good."""

    def read(self, max_records: int) -> tuple[Parsed, int] | None:
        """The next records and how many bytes they took, or None when there is nothing complete to read now."""

    def place(self) -> dict[str, Any]:
        """Where reading goes on, as JSON."""

    def close(self) -> None:
        """Let go of the file."""


class TextReader:
    """Reads a CSV or JSON file in blocks; a file that is followed is never done, and only its complete lines are read."""

    def __init__(
        self, filesystem: Any, path: str, parser: Parser, place: dict[str, Any], *, follow: bool, block_bytes: int
    ) -> None:
        self.done = False
        self._path = path
        self._parser = parser
        self._follow = follow
        self._block_bytes = block_bytes
        self._offset = int(place.get("offset", 0))
        self._index = int(place.get("index", 0))
        parser.restore(place.get("state", {}))
        size = filesystem.size(path)
        if size is not None and size < self._offset:
            raise ConnectorFailure(
                f"file {path} has {size} bytes, but {self._offset} were read before; a file must only grow while it is read. "
                "Put new data into new files."
            )
        # No read-ahead cache: a followed file changes under it.
        self._file = filesystem.open(path, "rb", cache_type="none")
        self._file.seek(self._offset)
        self._buffer = b""
        self._ended = False
        self._bytes_per_record = 100.0

    def read(self, max_records: int) -> tuple[Parsed, int] | None:
        """The next records and how many bytes they took, or None when there is nothing complete to read now."""
        wanted = min(self._block_bytes, max(_SMALLEST_READ, int(max_records * self._bytes_per_record)))
        while True:
            self._fill(wanted)
            parsed = self._parse(max_records)
            if parsed is not None:
                return self._took(parsed)
            if self._ended:
                self.done = not self._follow
                return None
            if len(self._buffer) > MAX_RECORD_BYTES:
                raise ConnectorFailure(
                    f"file {self._path}: the record at byte {self._offset} is longer than {MAX_RECORD_BYTES} bytes. "
                    "Check the format and its options, or split the file."
                )
            # Twice as much each time, so that a long record is not parsed again and again.
            wanted = max(2 * len(self._buffer), wanted)

    def place(self) -> dict[str, Any]:
        """Where reading goes on: byte, index of the next record, and what the parser remembers."""
        return {"offset": self._offset, "index": self._index, "state": self._parser.state()}

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _fill(self, wanted: int) -> None:
        """Read until the buffer holds ``wanted`` bytes or the file, as it is now, ends."""
        self._ended = False
        while len(self._buffer) < wanted and not self._ended:
            more = self._file.read(wanted - len(self._buffer))
            # Short reads happen before the end on some file systems; nothing at all is the end.
            self._ended = not more
            self._buffer += more
        if self._offset == 0 and self._buffer.startswith(_BOM):
            self._buffer = self._buffer[len(_BOM) :]
            self._offset = len(_BOM)

    def _parse(self, max_records: int) -> Parsed | None:
        if not self._buffer:
            return None
        lines = max_records
        while (end := _end_of_line(self._buffer, lines)) is not None:
            parsed = self._parser.parse_prefix(self._buffer[:end], self._index)
            if parsed.consumed:
                return parsed
            # The first record has more lines than that.
            lines *= 2
        if self._ended and not self._follow:
            return self._parser.parse(self._buffer, self._index)
        parsed = self._parser.parse_prefix(self._buffer, self._index)
        return parsed if parsed.consumed else None

    def _took(self, parsed: Parsed) -> tuple[Parsed, int]:
        if parsed.records:
            self._bytes_per_record = max(1.0, parsed.consumed / parsed.records)
        self._buffer = self._buffer[parsed.consumed :]
        self._offset += parsed.consumed
        self._index = parsed.next_index
        if not self._buffer and not self._follow:
            self._fill(_SMALLEST_READ)
            self.done = self._ended
        return parsed, parsed.consumed


class ParquetReader:
    """Reads a Parquet file in row ranges."""

    def __init__(self, filesystem: Any, path: str, parser: ParquetParser, place: dict[str, Any], *, follow: bool) -> None:
        self.done = False
        self._path = path
        self._parser = parser
        self._row = int(place.get("offset", 0))
        self._follow = follow
        self._handle = filesystem.open(path, "rb")
        self._file: Any = None
        self._cached: tuple[int, pa.Table] | None = None

    def read(self, max_records: int) -> tuple[Parsed, int] | None:
        """The next rows and how many bytes they took; None while a followed file is still being written."""
        if self._file is None:
            try:
                self._file = pq.ParquetFile(self._handle)
            except (pa.ArrowInvalid, OSError) as error:
                if self._follow:
                    return None
                self.done = True
                problem = RecordError(0, f"not a Parquet file: {error}")
                return Parsed(None, 0, (problem,), 1, 0, 0), 0
        try:
            table = self._rows(max_records)
        except (pa.ArrowInvalid, OSError) as error:
            raise ConnectorFailure(f"file {self._path}: cannot be read from row {self._row} on: {error}") from error
        parsed = self._parser.parse_table(table, self._row)
        self._row += table.num_rows
        self.done = self._row >= self._file.metadata.num_rows
        return parsed, table.nbytes

    def place(self) -> dict[str, Any]:
        """Where reading goes on: the row."""
        return {"offset": self._row}

    def close(self) -> None:
        """Let go of the file."""
        self._handle.close()

    def _rows(self, max_records: int) -> pa.Table:
        """At most ``max_records`` rows from the current one on, all of one row group."""
        start = 0
        for group in range(self._file.metadata.num_row_groups):
            rows = self._file.metadata.row_group(group).num_rows
            if self._row < start + rows:
                return self._group(group).slice(self._row - start, max_records)
            start += rows
        return self._file.schema_arrow.empty_table()

    def _group(self, number: int) -> pa.Table:
        if self._cached is None or self._cached[0] != number:
            self._cached = (number, self._file.read_row_group(number))
        return self._cached[1]


def _end_of_line(data: bytes, lines: int) -> int | None:
    """Where the given number of lines ends, or None when ``data`` has no more lines than that."""
    if data.count(b"\n") <= lines:
        return None
    end = 0
    if lines < 1000:
        for _ in range(lines):
            end = data.index(b"\n", end) + 1
        return end
    import numpy as np

    places = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    return int(places[lines - 1]) + 1
