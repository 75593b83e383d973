"""Reads many files one after the other: once, or following what is added."""

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

from airflow_pipelines.connectors.base import ConnectorError, ConnectorFailure, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.files.compression import Compression, Decompressed, compression_of
from airflow_pipelines.connectors.transports.files.group_readers import GROUPED, GroupReader
from airflow_pipelines.connectors.transports.files.listing import Found, Listing
from airflow_pipelines.connectors.transports.files.progress import Progress
from airflow_pipelines.connectors.transports.files.readers import FileReader, Growth, TextReader, check_size
from airflow_pipelines.connectors.transports.files.store import FileStore
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.formats.tables import TableParser

_POLL_S: Final = 0.2
_REMOTE_POLL_S: Final = 2.0
_SHARE_OF_LISTING: Final = 0.2
"""At most this share of the time is spent with listings that find nothing new."""
_MAX_KEPT_ERRORS: Final = 100
_CHUNK_S: Final = 0.1
"""Small files are put together for so long."""
_CLOSE_S: Final = 1.0
_KNOWN_AHEAD: Final = 32
"""How many of the next files are known before they are needed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read.

    :param context: of the connector: its format, and the table that the rows are for
    :param follow: whether to go on with what is added
    :param compression: of text files
    :param block_bytes: how much of a text is parsed at a time
    """

    context: InputContext
    follow: bool
    compression: Compression
    block_bytes: int


class FileSetInput:
    """An input over files, read in the order of their names."""

    def __init__(self, store: FileStore, listing: Listing, reading: Reading) -> None:
        """Make an input that stands at the beginning.

        :param store: opens the files
        :param listing: finds them
        :param reading: how they are read
        """
        self._store = store
        self._listing = listing
        self._reading = reading
        self._progress = Progress(in_order=not reading.follow)
        self._pages: Iterator[Sequence[Found]] | None = None
        self._queue: deque[Found] = deque()
        self._reader: FileReader | None = None
        self._sizes: dict[str, int | None] = {}
        """Of files that are not done: the size at which there was nothing more to read."""
        self._unread = _Unread()
        self._next_listing = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def start(self, position: Position | None) -> None:
        """Go to ``position`` and find the files.

        :raises ConnectorFailure: when there is nothing to read, or it may not be read
        """
        if position is not None:
            self._progress.restore(position)
        self._list()
        self._look_ahead()
        if not self._queue and self._progress.is_empty and not (self._reading.follow and self._listing.can_grow):
            self._listing.check()
        if self._queue:
            # What may not be read is found out now rather than from the thread that reads.
            self._opened(self._queue[0])

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """The next records of the files, or None when nothing came within ``timeout_s``."""
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
        """How many bytes the files have that were found and not read; None where a size is not known."""
        left = self._unread.bytes
        return None if left is None else Lag(bytes=left)

    def close(self) -> None:
        """Close all files; a read in another thread comes back."""
        self._closed.set()
        if self._lock.acquire(timeout=_CLOSE_S):
            # Else a read waits for another machine, and lets go of everything when it is back.
            self._lock.release()
            self._release()

    def _release(self) -> None:
        self._let_go()
        self._store.close()

    def _next_chunk(self, max_records: int) -> InputChunk | None:
        """What the next files have, put together as long as they are small."""
        taken = _Taken()
        ended = False
        try:
            self._take(taken, max_records)
            ended = not self._reading.follow and self._next_file() is None
        except ConnectorFailure:
            # What was read before comes first; then the failure comes again.
            if not taken.parts:
                raise
        return taken.chunk(self._progress.to_position(), ended) if taken.parts or ended else None

    def _take(self, taken: _Taken, max_records: int) -> None:
        until = time.monotonic() + _CHUNK_S
        while taken.records < max_records and taken.size < self._reading.block_bytes:
            found = self._next_file()
            if found is None:
                return
            outcome = self._read_some(found, max_records - taken.records)
            if outcome is not None:
                taken.add(found.name, *outcome)
            if self._closed.is_set() or (taken.parts and time.monotonic() > until):
                return

    def _read_some(self, found: Found, max_records: int) -> tuple[Parsed, int] | None:
        """What a file has next; it is left when that is all."""
        try:
            reader = self._opened(found)
            outcome = reader.read(max_records)
        except FileNotFoundError as error:
            if self._reading.follow:
                self._leave()
                return None
            self._let_go()
            raise ConnectorFailure(f"file {found.path} was there at the start and is gone") from error
        except OSError as error:
            self._let_go()
            raise ConnectorFailure(f"file {found.path} cannot be read: {error}") from error
        except BaseException:
            # It is opened again where it stands if somebody tries once more.
            self._let_go()
            raise
        self._progress.stands(found.name, reader.place())
        self._count_unread(found)
        if reader.done:
            self._sizes.pop(found.name, None)
            self._progress.finish(found.name)
            self._leave()
        elif outcome is None:
            # A followed file is opened again when it has grown: there may be many, and remote ones show their growth only then.
            self._sizes[found.name] = found.size
            self._leave()
        return outcome

    def _next_file(self) -> Found | None:
        self._look_ahead()
        if not self._queue and self._reading.follow and time.monotonic() >= self._next_listing:
            self._list()
            self._look_ahead()
        return self._queue[0] if self._queue else None

    def _list(self) -> None:
        """Begin to look for files anew."""
        self._pages = iter(self._listing.pages(self._progress.through))

    def _look_ahead(self) -> None:
        """Take over what the next pages of the listing have, until some files are known."""
        begin = time.monotonic()
        while self._pages is not None and len(self._queue) < _KNOWN_AHEAD:
            try:
                page = next(self._pages, None)
            except BaseException:
                # Whoever tries once more begins with what is not done.
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
                new = [found for found in page if not self._progress.is_done(found.name) and self._is_new(found)]
                self._queue.extend(new)
                for found in new:
                    self._count_unread(found)

    def _is_new(self, found: Found) -> bool:
        """Whether a file that is not done has something to read."""
        if not self._reading.follow or found.size is None:
            return True
        if found.name in self._sizes:
            return self._sizes[found.name] != found.size
        offset: int = self._progress.place(found.name).get("offset", 0)
        return self._growth(found) is not Growth.APPENDED or found.size != offset

    def _count_unread(self, found: Found) -> None:
        """Note what is left of a file. One whose place is no byte of it counts as a whole until it is done."""
        by_bytes = self._reading.context.format not in GROUPED and self._compression(found) is Compression.NONE
        offset = int(self._progress.place(found.name).get("offset", 0)) if by_bytes else 0
        self._unread.note(found.name, None if found.size is None else max(0, found.size - offset))

    def _leave(self) -> None:
        """Go on to the next file."""
        self._unread.forget(self._queue.popleft().name)
        self._let_go()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _opened(self, found: Found) -> FileReader:
        if self._reader is None:
            try:
                self._reader = self._new_reader(found)
            except PermissionError as error:
                raise ConnectorFailure(
                    f"file {found.path} may not be read: {error.strerror or error}. Check its permissions and those of its folders "
                    "for the user that runs the pipeline."
                ) from error
        return self._reader

    def _new_reader(self, found: Found) -> FileReader:
        place, growth, context = self._progress.place(found.name), self._growth(found), self._reading.context
        groups = GROUPED.get(context.format or "")
        if groups is not None:
            parser = TableParser(context.schema, context.now)
            return GroupReader(self._file(found), groups, parser, place, growth)
        compression = self._compression(found)
        if compression is Compression.NONE:
            check_size(found.path, found.size, place)
        file = self._file(found)
        text = file if compression is Compression.NONE else Decompressed(file, compression)
        return TextReader(text, found.path, context.new_parser(), place, growth, self._reading.block_bytes)

    def _file(self, found: Found) -> Any:
        return self._store.open(found, list(islice(self._queue, 1, _KNOWN_AHEAD)))

    def _compression(self, found: Found) -> Compression:
        return compression_of(found.name, self._reading.compression)

    def _growth(self, found: Found) -> Growth:
        if not self._reading.follow:
            return Growth.NONE
        if self._reading.context.format in GROUPED or self._compression(found) is not Compression.NONE:
            return Growth.ARRIVING
        return Growth.APPENDED if self._store.grows else Growth.NONE


class _Unread:
    """How many bytes are left of the files that are queued. Written by the thread that reads, and read by others."""

    def __init__(self) -> None:
        self._left: dict[str, int | None] = {}
        self._sum = 0
        self._unknown = 0

    @property
    def bytes(self) -> int | None:
        """Of all of them; None when one does not say."""
        return None if self._unknown else self._sum

    def note(self, name: str, left: int | None) -> None:
        """A file has so many left."""
        self.forget(name)
        self._left[name] = left
        self._sum += left or 0
        self._unknown += left is None

    def forget(self, name: str) -> None:
        """A file is not queued any more."""
        if name in self._left:
            left = self._left.pop(name)
            self._sum -= left or 0
            self._unknown -= left is None


class _Taken:
    """What several reads gave."""

    def __init__(self) -> None:
        self.parts: list[Parsed] = []
        self.records = 0
        self.size = 0
        self._errors: list[ConnectorError] = []

    def add(self, name: str, parsed: Parsed, size: int) -> None:
        """Add what a file gave."""
        self.parts.append(parsed)
        self.records += parsed.records
        self.size += size
        shown = posixpath.basename(name)
        self._errors += [
            ConnectorError("parse", f"{shown}: {error.message}", error.index) for error in parsed.errors[-_MAX_KEPT_ERRORS:]
        ]

    def chunk(self, position: Position, ended: bool) -> InputChunk:
        """All of it as one."""
        changes = [part.changes for part in self.parts if part.changes is not None]
        return InputChunk(
            changes=_together(changes) if changes else None,
            records=self.records,
            size_bytes=self.size,
            position=position,
            parse_errors=tuple(self._errors[-_MAX_KEPT_ERRORS:]),
            num_parse_errors=sum(part.num_errors for part in self.parts),
            end_of_input=ended,
        )


def _together(changes: list[TableChanges]) -> TableChanges:
    if len(changes) == 1:
        return changes[0]
    return TableChanges(changes[0].table, pa.concat_tables([each.rows for each in changes], promote_options="default"))
