"""A source that reads files, once or as they appear."""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.time import Duration
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.base import Source
from airflow_pipelines.datastream.connectors.file_formats import BulkFormat, FileFormat, StreamFormat
from airflow_pipelines.datastream.connectors.file_systems import access, file_system, open_file
from airflow_pipelines.streams.sources import Polled, SourceReader

_HIDDEN = (".", "_")
_RECORDS_AT_ONCE = 10_000
_WAS_CHANGED = (
    "it was changed while it was being read. Put back the file as it was, or give the source another uid, so that it begins anew"
)
_IN_ORDER = "each file is read by one task, in the order of the files' names"


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """The enumeration of files of a source, and whether several tasks can read one file. It is accepted without effect.

    :param splittable: True if several tasks may read one file

    >>> from airflow_pipelines.datastream.connectors import FileEnumeratorProvider, FileSource, StreamFormat
    >>> enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()
    >>> builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/sales")
    >>> builder = builder.set_file_enumerator(enumerator)
    >>> enumerator
    FileEnumeratorProvider(splittable=False)
    """

    splittable: bool

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return a value with which several tasks may read one file.

        :returns: the value
        """
        return FileEnumeratorProvider(splittable=True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return a value with which one task reads a file.

        :returns: the value
        """
        return FileEnumeratorProvider(splittable=False)


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """The assignment of files to tasks. It is accepted without effect.

    :param by_locality: True if a task reads files that are near to it

    >>> from airflow_pipelines.datastream.connectors import FileSource, FileSplitAssignerProvider, StreamFormat
    >>> assigner = FileSplitAssignerProvider.locality_aware_split_assigner()
    >>> builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/sales")
    >>> builder = builder.set_split_assigner(assigner)
    >>> assigner
    FileSplitAssignerProvider(by_locality=True)
    """

    by_locality: bool

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Return a value with which a task reads files that are near to it.

        :returns: the value
        """
        return FileSplitAssignerProvider(by_locality=True)


@dataclass(frozen=True)
class FileSource(Source):
    """A source that reads files. Use :meth:`for_record_stream_format` or :meth:`for_bulk_file_format` to make one.

    A path is a file or a folder, whose files are read recursively; names that begin with ``.`` or ``_`` are skipped. It can be a
    URL of a file system that ``fsspec`` knows. A file that appears while a folder is watched is read once, so it has to be complete
    when it appears: write it under another name, and rename it.

    :param stream_format: the format of the files
    :param paths: files and folders
    :param discovery_interval: seconds between two polls for new files; None to read the files that are there and end
    """

    stream_format: FileFormat
    paths: tuple[str, ...]
    discovery_interval: float | None = None
    gives_timestamps = False

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Return a builder for a source.

        :param stream_format: the format of the files
        :param paths: files and folders, at least one
        :returns: the builder
        """
        checks.instance("stream_format", stream_format, StreamFormat, "use StreamFormat.text_line_format()")
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Return a builder for a source of files that are read as a whole.

        :param bulk_format: the format of the files
        :param paths: files and folders, at least one
        :returns: the builder
        """
        checks.instance("bulk_format", bulk_format, BulkFormat, "use ParquetColumnarRowInputFormat(...) or another")
        return FileSourceBuilder(bulk_format, paths)

    @property
    def is_bounded(self) -> bool:
        """True unless it polls for new files."""
        return self.discovery_interval is None

    @property
    def places(self) -> Sequence[str]:
        """The paths of the source, whose order does not matter.

        While folders are watched, adding or removing one changes nothing for the others; otherwise all files are found at the
        beginning.
        """
        paths = sorted(self.paths)
        if self.discovery_interval is None:
            return (" and ".join(paths),)
        return tuple(f"what appears in {path}" for path in paths)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records.

        :returns: the type
        """
        return self.stream_format.get_produced_type()

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Return one part for each task: the files whose paths hash to it.

        :param parallelism: the number of tasks that read
        :returns: the number of each part, and the number of parts
        """
        return [(part, parallelism) for part in range(parallelism)]

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Return a reader of the files of a part.

        :param split: the number of the part, and the number of parts
        :param position: the position to resume at, None for the beginning
        :returns: the reader
        """
        part, parts = split
        return _FileReader(self, lambda: [path for path in _files(self.paths) if _part(path, parts) == part], position)


class FileSourceBuilder:
    """A builder of file sources.

    :param stream_format: the format of the files
    :param paths: files and folders

    >>> import pathlib, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
    >>> from airflow_pipelines.datastream.connectors import FileSource, StreamFormat
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sizes = [pathlib.Path(folder, day).write_text(f"sales of {day}") for day in ("monday", "tuesday")]
    ...     source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).process_static_file_set().build()
    ...     sorted(env.from_source(source, WatermarkStrategy.no_watermarks(), "sales").execute_and_collect())
    ['sales of monday', 'sales of tuesday']
    """

    def __init__(self, stream_format: FileFormat, paths: Sequence[str]) -> None:
        self._format = checks.instance("stream_format", stream_format, FileFormat, "use StreamFormat.text_line_format()")
        if not paths:
            raise ValueError("A file source needs at least one path: FileSource.for_record_stream_format(format, '/data/in')")
        # A relative path is relative to the folder of the program, although functions can run in another one.
        self._paths = tuple(path if "://" in checks.text("paths", path) else str(Path(path).absolute()) for path in paths)
        self._interval: float | None = None

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Keep polling for new files.

        :param discovery_interval: the time between two polls, more than 0
        :returns: this object
        """
        interval = checks.instance("discovery_interval", discovery_interval, Duration, "use Duration.of_seconds(...)")
        self._interval = checks.integer("discovery_interval in ms", interval.to_millis(), 1) / 1000
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that are there, and end. This is the default.

        :returns: this object
        """
        self._interval = None
        return self

    @no_effect(_IN_ORDER)
    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Set the enumeration of files, and whether several tasks can read one file.

        :param file_enumerator: a value from ``FileEnumeratorProvider``
        :returns: this object
        """
        checks.instance("file_enumerator", file_enumerator, FileEnumeratorProvider)
        return self

    @no_effect(_IN_ORDER)
    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Set the assignment of files to tasks.

        :param split_assigner: a value from ``FileSplitAssignerProvider``
        :returns: this object
        """
        checks.instance("split_assigner", split_assigner, FileSplitAssignerProvider)
        return self

    def build(self) -> FileSource:
        """Make the source.

        :returns: the source
        """
        return FileSource(self._format, self._paths, self._interval)


def _part(path: str, parts: int) -> int:
    return zlib.crc32(path.encode()) % parts


def _add_to_checksum(checksum: int, records: Sequence[Any]) -> int:
    text = "".join([f"{record}\n" if record.__class__ is str else f"{record!r}\n" for record in records])
    return zlib.crc32(text.encode(errors="surrogatepass"), checksum)


def _files(paths: Sequence[str]) -> list[str]:
    return [file for path in paths for file in _files_of(path)]


def _files_of(path: str) -> list[str]:
    system, root = file_system(path)
    with access(path):
        if system.isfile(root):
            return [system.unstrip_protocol(root)]
        if not system.isdir(root):
            raise FileNotFoundError(f"The file source has the path {path!r}, and there is neither a file nor a folder")
        files = [str(file) for file in system.find(root)]
    shown = (file for file in files if not any(part.startswith(_HIDDEN) for part in file.removeprefix(root).split("/")))
    return sorted(system.unstrip_protocol(file) for file in shown)


class _FileReader(SourceReader):
    """A reader of files, one after the other.

    :param source: the source
    :param find: the function that returns the current files
    :param position: files to read, number of records that were read of the first, files that were read, and the checksum of those
        records, which positions of earlier releases lack; None for the beginning
    """

    def __init__(self, source: FileSource, find: Callable[[], list[str]], position: tuple[Any, ...] | None) -> None:
        self._format = source.stream_format
        self._find = find
        self._interval = source.discovery_interval
        pending, self._skip, done, *checksum = position or ((), 0, (), 0)
        self._pending = deque(pending)
        self._done: set[str] = set(done)
        self._next_look: float = 0.0
        self._file: IO[bytes] | None = None
        self._records: Iterator[Any] = iter(())
        self._number = self._skip
        self._checksum: int | None = checksum[0] if checksum else None
        self._was_read = False
        if position is None:
            self._look()

    def _look(self) -> None:
        known = self._done | set(self._pending)
        self._pending.extend(path for path in self._find() if path not in known)
        self._next_look = time.monotonic() + (self._interval or 0.0)

    @property
    def has_input(self) -> bool:  # type: ignore[override]
        """True if files have appeared in its part, including those that were read already."""
        return bool(self._pending or self._done) or self._was_read

    def poll(self, limit: int) -> Polled:
        if self._interval is not None and time.monotonic() >= self._next_look:
            self._look()
        values: list[Any] = []
        while self._pending and len(values) < limit:
            if self._file is None:
                self._open()
            with access(self._pending[0]):
                read = list(islice(self._records, limit - len(values)))
            self._number += len(read)
            self._checksum = _add_to_checksum(self._checksum or 0, read)
            values += read
            if len(values) < limit:
                self._finish()
        return Polled(values, finished=self._interval is None and not self._pending)

    def _open(self) -> None:
        path = self._pending[0]
        self._file = file = open_file(path)
        with access(path):
            self._records = self._format.records(path, file)
            skipped, checksum = 0, 0
            while records := list(islice(self._records, min(self._skip - skipped, _RECORDS_AT_ONCE))):
                skipped += len(records)
                checksum = _add_to_checksum(checksum, records)
        if skipped < self._skip:
            raise ValueError(f"The file {path!r} has {skipped} records, and {self._skip} were read before: {_WAS_CHANGED}")
        if self._checksum not in (None, checksum):
            raise ValueError(
                f"The first {skipped} records of the file {path!r} are others than those that were read: {_WAS_CHANGED}"
            )
        self._number, self._skip, self._checksum = skipped, 0, checksum

    def _finish(self) -> None:
        self.close()
        path = self._pending.popleft()
        self._number = self._checksum = 0
        self._was_read = True
        if self._interval is not None:
            self._done.add(path)

    def position(self) -> Any:
        return tuple(self._pending), self._number, tuple(sorted(self._done)), self._checksum

    def close(self) -> None:
        self._records = iter(())
        if self._file is not None:
            self._file.close()
            self._file = None
