"""Readers of one file, piece by piece, where each piece ends at the end of a record."""

from __future__ import annotations

import hashlib
from enum import Enum, auto
from typing import Any, Protocol

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.rows.formats.parsed import BYTE_ORDER_MARK, Parsed, Parser, RecordError
from airflow_pipelines.systems.files.compression import DamagedFileError

BLOCK_BYTES = 4 << 20
"""The default number of bytes of a text file that are parsed at a time."""
MAX_RECORD_BYTES = 256 << 20
"""The maximum size of a single record, or JSON array; a longer one is refused rather than held in memory."""

_SMALLEST_READ = 64 << 10
_MARKED_BYTES = 256
"""The number of bytes before a place that are compared with those read before when reading resumes there."""


class Growth(Enum):
    """The changes that may still happen to a file."""

    NONE = auto()
    """A file that is complete."""
    APPENDED = auto()
    """A file to which lines may be appended at any time."""
    ARRIVING = auto()
    """A file whose end may be missing as yet; with it, the file is complete."""


class ByteFile(Protocol):
    """The part of a file's interface that a reader of text needs."""

    def seek(self, offset: int, /) -> Any:
        """Continue reading at a byte offset."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``; none at the end."""

    def close(self) -> None:
        """Close the file."""


def check_size(path: str, size: int | None, place: dict[str, Any]) -> None:
    """Refuse a file that is shorter than what was read of it.

    :param path: the path to show in messages
    :param size: the size in bytes; None where it is not known
    :param place: the place where a reader is to resume
    :raises ConnectorFailure: when it is shorter
    """
    offset = int(place.get("offset", 0))
    if size is not None and size < offset:
        raise ConnectorFailure(
            f"file {path} has {size} bytes, but {offset} were read before; a file must only grow while it is read. "
            "Put new data into new files."
        )


class FileReader(Protocol):
    """A reader of one file from a place on."""

    done: bool
    """True if the file has been read to its end, for good."""

    def read(self, max_records: int) -> tuple[Parsed, int] | None:
        """Return the next records and their size in bytes, or None if there is nothing complete to read now."""

    def place(self) -> dict[str, Any]:
        """Return the place where reading goes on, as JSON."""

    def close(self) -> None:
        """Close the file."""


class TextReader:
    """A reader of a text file in blocks.

    A file to which lines may be appended is never done, and only its complete lines are read.
    """

    def __init__(
        self,
        file: ByteFile,
        path: str,
        parser: Parser,
        place: dict[str, Any],
        growth: Growth = Growth.NONE,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """Make a reader that starts at a place.

        :param file: the text, at its beginning
        :param path: the path to show in messages
        :param parser: the parser of the format
        :param place: the place to start at, as :meth:`place` returned it
        :param growth: the changes that may still happen to the file
        :param block_bytes: the number of bytes that are parsed at a time
        """
        self.done = False
        self._path = path
        self._parser = parser
        self._growth = growth
        self._damage: DamagedFileError | None = None
        self._block_bytes = block_bytes
        self._offset = int(place.get("offset", 0))
        self._index = int(place.get("index", 0))
        parser.restore(place.get("state", {}))
        self._file = file
        self._at_place = False
        self._mark = place.get("mark")
        self._passed = b""
        self._buffer = b""
        self._ended = False
        self._bytes_per_record = 100.0

    def read(self, max_records: int) -> tuple[Parsed, int] | None:
        """Return the next records and their size in bytes, or None if there is nothing complete to read now."""
        wanted = min(self._block_bytes, max(_SMALLEST_READ, int(max_records * self._bytes_per_record)))
        while True:
            self._fill(wanted)
            parsed = self._parse(max_records)
            if parsed is not None:
                return self._accept(parsed)
            if self._ended:
                return self._rest()
            if len(self._buffer) > MAX_RECORD_BYTES:
                raise ConnectorFailure(
                    f"file {self._path}: the record at byte {self._offset} is longer than {MAX_RECORD_BYTES} bytes. "
                    "Check the format and its options, or split the file."
                )
            # Double the size each time, so that a long record is not parsed too often.
            wanted = max(2 * len(self._buffer), wanted)

    def _rest(self) -> tuple[Parsed, int] | None:
        """Return the error for a damaged file, or None, when the file as it is now holds no further record."""
        if self._damage is not None and self._growth is Growth.NONE:
            self.done = True
            problem = RecordError(self._index, f"the file is damaged after byte {self._offset} of its text: {self._damage}")
            return Parsed(None, 0, (problem,), 1, 0, self._index), 0
        self.done = self._growth is not Growth.APPENDED and self._damage is None
        return None

    def place(self) -> dict[str, Any]:
        """Return the place where reading goes on: the offset, the index of the next record, and the state of the parser."""
        state = self._parser.state()
        mark = _digest(self._passed) if self._passed else self._mark
        known = {"mark": mark} if mark is not None else {}
        return {"offset": self._offset, "index": self._index, **known, **({"state": state} if state else {})}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fill(self, wanted: int) -> None:
        """Read until the buffer holds ``wanted`` bytes or the file, as it is now, ends."""
        self._ended = self._damage is not None
        while len(self._buffer) < wanted and not self._ended:
            try:
                more = self._next_bytes(wanted - len(self._buffer))
            except DamagedFileError as error:
                self._damage, more = error, b""
            # Short reads happen before the end on some file systems; nothing at all is the end.
            self._ended = not more
            self._buffer += more
        if self._offset == 0 and self._buffer.startswith(BYTE_ORDER_MARK):
            self._consume(len(BYTE_ORDER_MARK))

    def _next_bytes(self, size: int) -> bytes:
        if not self._at_place:
            if self._offset:
                self._go_to_place()
            self._at_place = True
        return self._file.read(size)

    def _go_to_place(self) -> None:
        """Skip what was read before, and check that its last bytes are still those that were read.

        :raises ConnectorFailure: when they are others
        """
        known = min(self._offset, _MARKED_BYTES)
        if self._offset > known:
            self._file.seek(self._offset - known)
        passed = b""
        while len(passed) < known and (more := self._file.read(known - len(passed))):
            passed += more
        # A place of an earlier release has no mark.
        if self._mark is not None and _digest(passed) != self._mark:
            raise ConnectorFailure(
                f"file {self._path} was written anew: what stands before byte {self._offset} is not what was read there; a file "
                "must only grow while it is read. Put new data into new files."
            )
        self._passed = passed

    def _consume(self, size: int) -> None:
        """Remove the first ``size`` bytes from the buffer: they are done."""
        self._passed = (self._passed + self._buffer[max(0, size - _MARKED_BYTES) : size])[-_MARKED_BYTES:]
        self._buffer = self._buffer[size:]
        self._offset += size

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
        if self._is_whole:
            return self._parser.parse(self._buffer, self._index)
        parsed = self._parser.parse_prefix(self._buffer, self._index)
        return parsed if parsed.consumed else None

    def _accept(self, parsed: Parsed) -> tuple[Parsed, int]:
        if parsed.records:
            self._bytes_per_record = max(1.0, parsed.consumed / parsed.records)
        self._consume(parsed.consumed)
        self._index = parsed.next_index
        if not self._buffer and self._growth is not Growth.APPENDED:
            self._fill(_SMALLEST_READ)
            self.done = self._is_whole and not self._buffer
        return parsed, parsed.consumed

    @property
    def _is_whole(self) -> bool:
        """True if the buffer has all that is left of a complete file."""
        return self._ended and self._growth is not Growth.APPENDED and self._damage is None


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=4).hexdigest()


def _end_of_line(data: bytes, lines: int) -> int | None:
    """Return the offset where the given number of lines ends, or None if ``data`` has no more lines than that."""
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
