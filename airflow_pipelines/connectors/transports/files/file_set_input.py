"""An input that reads many files one after the other, either once or following what is added."""

from __future__ import annotations

import posixpath
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorFailure, CountedError, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.files.group_readers import GROUPED, GroupReader
from airflow_pipelines.connectors.transports.files.listing import Found, Listing
from airflow_pipelines.connectors.transports.files.progress import FileProgress
from airflow_pipelines.connectors.transports.files.readers import FileReader, Growth, TextReader, check_size
from airflow_pipelines.connectors.transports.files.store import FileStore
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.formats.tables import TableParser
from airflow_pipelines.systems.files.compression import Compression, Decompressed, compression_of

_POLL_S: Final = 0.2
_REMOTE_POLL_S: Final = 2.0
_SHARE_OF_LISTING: Final = 0.2
"""The maximum share of the time that is spent on listings that find nothing new."""
_MAX_KEPT_ERRORS: Final = 100
_CHUNK_S: Final = 0.1
"""The time, in seconds, for which small files are put together into one chunk."""
_CLOSE_S: Final = 1.0
_KNOWN_AHEAD: Final = 32
"""The number of next files that are known before they are needed."""


@dataclass(frozen=True, slots=True)
class FileReadOptions:
    """The settings for reading files.

    :param context: the context of the connector: its format, and the table that the rows are for
    :param follow: True to go on with what is added
    :param compression: the compression of text files
    :param block_bytes: the number of bytes of a text that are parsed at a time
    """

    context: InputContext
    follow: bool
    compression: Compression
    block_bytes: int


class FileSetInput:
    """An input over files, read in the order of their names."""

    def __init__(self, store: FileStore, listing: Listing, reading: FileReadOptions) -> None:
        """Make an input that stands at the beginning.

        :param store: the store that opens the files
        :param listing: the listing that finds the files
        :param reading: the settings for reading them
        """
        self._store = store
        self._listing = listing
        self._reading = reading
        self._progress = FileProgress(in_order=not reading.follow)
        self._pages: Iterator[Sequence[Found]] | None = None
        self._queue: deque[Found] = deque()
        self._reader: FileReader | None = None
        self._sizes: dict[str, int | None] = {}
        """The size at which a file had nothing more to read, for each file that is not done."""
        self._unread = _Unread()
        self._next_listing = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def start(self, position: Position | None) -> None:
        """Seek to ``position`` and find the files.

        :raises ConnectorFailure: when there is nothing to read, or it may not be read
        """
        if position is not None:
            self._progress.restore(position)
        self._list()
        self._look_ahead()
        if not self._queue and self._progress.is_empty and not (self._reading.follow and self._listing.can_grow):
            self._listing.check()
        if self._queue:
            # Report now, and not in the reading thread, that a file may not be read.
            self._open_reader(self._queue[0])

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next records of the files, or None if nothing came within ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while not self._closed.is_set():
            with self._lock:
                chunk = None if self._closed.is_set() else self._next_chunk(max_records)
                if self._closed.is_set():
                    self._release()
            if chunk is not None:
                return chunk
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            self._closed.wait(min(_POLL_S, remaining))
        return None

    def lag(self) -> Lag | None:
        """Return the number of bytes that were found and not read yet, or None if the size of a file is not known."""
        left = self._unread.bytes
        return None if left is None else Lag(bytes=left)

    def close(self) -> None:
        """Close all files; a read in another thread then returns."""
        self._closed.set()
        if self._lock.acquire(timeout=_CLOSE_S):
            # Else a read waits for another machine, and releases everything when it returns.
            self._lock.release()
            self._release()

    def _release(self) -> None:
        self._let_go()
        self._store.close()

    def _next_chunk(self, max_records: int) -> InputChunk | None:
        """Return the next records, and put those of several files together as long as they are small."""
        taken = _Taken()
        ended = False
        try:
            self._take(taken, max_records)
            ended = not self._reading.follow and self._next_file() is None
        except ConnectorFailure:
            # Return what was read before; the next read raises the failure again.
            if not taken.parts:
                raise
        return taken.chunk(self._progress.to_position(), ended) if taken.parts or ended else None

    def _take(self, taken: _Taken, max_records: int) -> None:
        until = time.monotonic() + _CHUNK_S
        while taken.records < max_records and taken.size < self._reading.block_bytes:
            entry = self._next_file()
            if entry is None:
                return
            outcome = self._read_some(entry, max_records - taken.records)
            if outcome is not None:
                taken.add(entry.name, *outcome)
            if self._closed.is_set() or (taken.parts and time.monotonic() > until):
                return

    def _read_some(self, entry: Found, max_records: int) -> tuple[Parsed, int] | None:
        """Read the next records of a file. Go on to the next file if there are no more."""
        try:
            reader = self._open_reader(entry)
            outcome = reader.read(max_records)
        except FileNotFoundError as error:
            if self._reading.follow:
                self._leave()
                return None
            self._let_go()
            raise ConnectorFailure(f"file {entry.path} was there at the start and is gone") from error
        except OSError as error:
            self._let_go()
            raise ConnectorFailure(f"file {entry.path} cannot be read: {error}") from error
        except BaseException:
            # A retry opens the file again at its place.
            self._let_go()
            raise
        self._progress.stands(entry.name, reader.place())
        self._count_unread(entry)
        if reader.done:
            self._sizes.pop(entry.name, None)
            self._progress.finish(entry.name)
            self._leave()
        elif outcome is None:
            # A followed file is opened again when it has grown: there may be many, and remote ones show their growth only then.
            self._sizes[entry.name] = entry.size
            self._leave()
        return outcome

    def _next_file(self) -> Found | None:
        self._look_ahead()
        if not self._queue and self._reading.follow and time.monotonic() >= self._next_listing:
            self._list()
            self._look_ahead()
        return self._queue[0] if self._queue else None

    def _list(self) -> None:
        """Start a new listing of the files."""
        self._pages = iter(self._listing.pages(self._progress.through))

    def _look_ahead(self) -> None:
        """Queue the files of the next pages of the listing until enough files are known."""
        begin = time.monotonic()
        while self._pages is not None and len(self._queue) < _KNOWN_AHEAD:
            try:
                page = next(self._pages, None)
            except BaseException:
                # A retry begins with the files that are not done.
                self._let_go()
                self._queue.clear()
                self._unread = _Unread()
                self._list()
                raise
            if page is None:
                self._pages = None
                now = time.monotonic()
                least = _POLL_S if self._store.is_local else _REMOTE_POLL_S
                self._next_listing = now + max(least, (now - begin) / _SHARE_OF_LISTING)
            else:
                new = [entry for entry in page if not self._progress.is_done(entry.name) and self._is_new(entry)]
                self._queue.extend(new)
                for entry in new:
                    self._count_unread(entry)

    def _is_new(self, entry: Found) -> bool:
        """Return True if a file that is not done has something to read."""
        if not self._reading.follow or entry.size is None:
            return True
        if entry.name in self._sizes:
            return self._sizes[entry.name] != entry.size
        offset: int = self._progress.place(entry.name).get("offset", 0)
        return self._growth(entry) is not Growth.APPENDED or entry.size != offset

    def _count_unread(self, entry: Found) -> None:
        """Record the number of unread bytes of a file.

        A file whose place is not a byte offset counts as a whole until it is done.
        """
        by_bytes = self._reading.context.format not in GROUPED and self._compression(entry) is Compression.NONE
        offset = int(self._progress.place(entry.name).get("offset", 0)) if by_bytes else 0
        self._unread.note(entry.name, None if entry.size is None else max(0, entry.size - offset))

    def _leave(self) -> None:
        """Go on to the next file."""
        self._unread.forget(self._queue.popleft().name)
        self._let_go()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _open_reader(self, entry: Found) -> FileReader:
        if self._reader is None:
            try:
                self._reader = self._new_reader(entry)
            except PermissionError as error:
                raise ConnectorFailure(
                    f"file {entry.path} may not be read: {error.strerror or error}. Check its permissions and those of its folders "
                    "for the user that runs the pipeline."
                ) from error
        return self._reader

    def _new_reader(self, entry: Found) -> FileReader:
        place, growth, context = self._progress.place(entry.name), self._growth(entry), self._reading.context
        groups = GROUPED.get(context.format or "")
        if groups is not None:
            parser = TableParser(context.schema, context.now)
            return GroupReader(self._file(entry), groups, parser, place, growth)
        compression = self._compression(entry)
        if compression is Compression.NONE:
            check_size(entry.path, entry.size, place)
        file = self._file(entry)
        text = file if compression is Compression.NONE else Decompressed(file, compression)
        return TextReader(text, entry.path, context.new_parser(), place, growth, self._reading.block_bytes)

    def _file(self, entry: Found) -> Any:
        return self._store.open(entry, list(islice(self._queue, 1, _KNOWN_AHEAD)))

    def _compression(self, entry: Found) -> Compression:
        return compression_of(entry.name, self._reading.compression)

    def _growth(self, entry: Found) -> Growth:
        if not self._reading.follow:
            return Growth.NONE
        if self._reading.context.format in GROUPED or self._compression(entry) is not Compression.NONE:
            return Growth.ARRIVING
        return Growth.APPENDED if self._store.grows else Growth.NONE


class _Unread:
    """The number of unread bytes of the queued files. Written by the thread that reads, and read by others."""

    def __init__(self) -> None:
        self._left: dict[str, int | None] = {}
        self._sum = 0
        self._unknown = 0

    @property
    def bytes(self) -> int | None:
        """The total of all files, or None if the size of one is not known."""
        return None if self._unknown else self._sum

    def note(self, name: str, left: int | None) -> None:
        """Record the number of unread bytes of a file."""
        self.forget(name)
        self._left[name] = left
        self._sum += left or 0
        self._unknown += left is None

    def forget(self, name: str) -> None:
        """Remove a file that is not queued any more."""
        if name in self._left:
            left = self._left.pop(name)
            self._sum -= left or 0
            self._unknown -= left is None


class _Taken:
    """The results of several reads."""

    def __init__(self) -> None:
        self.parts: list[Parsed] = []
        self.records = 0
        self.size = 0
        self._errors: list[CountedError] = []

    def add(self, name: str, parsed: Parsed, size: int) -> None:
        """Add the result of a read of one file."""
        self.parts.append(parsed)
        self.records += parsed.records
        self.size += size
        shown = posixpath.basename(name)
        self._errors += [
            CountedError("parse", f"{shown}: {error.message}", error.index) for error in parsed.errors[-_MAX_KEPT_ERRORS:]
        ]

    def chunk(self, position: Position, ended: bool) -> InputChunk:
        """Return all results as one chunk."""
        changes = [part.changes for part in self.parts if part.changes is not None]
        return InputChunk(
            changes=_concat_changes(changes) if changes else None,
            records=self.records,
            size_bytes=self.size,
            position=position,
            parse_errors=tuple(self._errors[-_MAX_KEPT_ERRORS:]),
            num_parse_errors=sum(part.num_errors for part in self.parts),
            end_of_input=ended,
        )


def _concat_changes(changes: list[TableChanges]) -> TableChanges:
    if len(changes) == 1:
        return changes[0]
    return TableChanges(changes[0].table, pa.concat_tables([each.rows for each in changes], promote_options="default"))
