"""Finished files of a file sink: they have hidden names until they are shown, some of them after they were compacted."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NamedTuple

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.connectors.file_formats import BulkWriterFactory, FileFormat

_log = logging.getLogger("airflow_pipelines.datastream")
_COPIED_BYTES = 1 << 20


class FinishedFile(NamedTuple):
    """A file that is complete and hidden.

    :param hidden: the path that it has
    :param final: the path under which it is to be shown
    :param size: its size in bytes
    """

    hidden: str
    final: str
    size: int = 0


@dataclass(frozen=True)
class FileCompactStrategy:
    """The strategy that decides when the files of a folder are compacted into one. Use :meth:`builder` to make one.

    :param size_threshold: the number of bytes that are enough for a file; None for any number
    :param checkpoints: the number of checkpoints after which files are compacted whatever their size; None for any number

    >>> from airflow_pipelines.datastream.connectors import FileCompactStrategy
    >>> FileCompactStrategy.builder().set_size_threshold(1024).enable_compaction_on_checkpoint(5).build()
    FileCompactStrategy(size_threshold=1024, checkpoints=5)
    """

    size_threshold: int | None = None
    checkpoints: int | None = None

    class Builder:
        """A builder of strategies."""

        def __init__(self) -> None:
            self._strategy = FileCompactStrategy()

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact the files of a folder when they are as large as this together.

            :param size_threshold: bytes
            :returns: this object
            """
            self._strategy = replace(self._strategy, size_threshold=checks.integer("size_threshold", size_threshold, 1))
            return self

        def enable_compaction_on_checkpoint(self, num_checkpoints_before_compaction: int) -> FileCompactStrategy.Builder:
            """Compact files after some checkpoints, also if they are small.

            :param num_checkpoints_before_compaction: the number of checkpoints
            :returns: this object
            """
            number = checks.integer("num_checkpoints_before_compaction", num_checkpoints_before_compaction, 1)
            self._strategy = replace(self._strategy, checkpoints=number)
            return self

        @no_effect("each task compacts its own files, when a checkpoint is durable")
        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Set the number of threads that compact.

            :param num_compact_threads: the number of threads
            :returns: this object
            """
            checks.integer("num_compact_threads", num_compact_threads, 1)
            return self

        def build(self) -> FileCompactStrategy:
            """Make the strategy.

            :returns: the strategy
            :raises ValueError: if neither a size nor a number of checkpoints was set: files would never be shown
            """
            if self._strategy == FileCompactStrategy():
                raise ValueError(
                    "A FileCompactStrategy needs set_size_threshold(...), enable_compaction_on_checkpoint(...) or both: otherwise"
                    " no file would ever be shown"
                )
            return self._strategy

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Return a builder.

        :returns: the builder
        """
        return FileCompactStrategy.Builder()


class FileCompactor(ABC):
    r"""The way in which files become one.

    >>> import pathlib, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.common import Encoder
    >>> from airflow_pipelines.datastream.connectors import BucketAssigner, FileCompactor, FileCompactStrategy, FileSink
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    >>> strategy = FileCompactStrategy.builder().set_size_threshold(1024).build()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     builder = FileSink.for_row_format(folder, Encoder.simple_string_encoder())
    ...     builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     sink = builder.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()
    ...     end = env.from_collection(["pears", "plums"]).sink_to(sink)
    ...     result = env.execute("fruits")
    ...     [file.read_text() for file in pathlib.Path(folder).iterdir()]
    ['pears\nplums\n']
    """

    @abstractmethod
    def compact(self, files: list[Path], target: IO[bytes]) -> None:
        """Write the elements of some files to another one.

        :param files: the files, in the order of their elements
        :param target: the other file, which is empty
        """

    def for_format(self, writer_factory: BulkWriterFactory) -> FileCompactor:
        """Return the compactor for files of a format.

        :param writer_factory: the factory that knows the format
        :returns: this compactor by default
        :raises ValueError: if it cannot compact such files
        """
        return self

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Return a compactor that puts the bytes of files after each other, for formats such as lines of text.

        :param file_delimiter: bytes between two files; None for none
        :returns: the compactor
        """
        if file_delimiter is not None and not isinstance(file_delimiter, bytes):
            raise TypeError(f"file_delimiter takes bytes, not {file_delimiter!r:.60}")
        return _Concatenating(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Return a compactor that leaves files as they are, and shows them when they would be compacted.

        :returns: the compactor
        """
        return _Identical()

    @staticmethod
    def record_wise_file_compactor(file_format: FileFormat) -> FileCompactor:
        """Return a compactor that reads the elements of files and writes them again, for formats such as Parquet.

        :param file_format: the format in which the files are read
        :returns: the compactor
        """
        return _RecordWise(checks.instance("file_format", file_format, FileFormat, "use ParquetColumnarRowInputFormat(...)"))


@dataclass(frozen=True)
class _Concatenating(FileCompactor):
    delimiter: bytes

    def compact(self, files: list[Path], target: IO[bytes]) -> None:
        for number, path in enumerate(files):
            if number:
                target.write(self.delimiter)
            with path.open("rb") as file:
                while data := file.read(_COPIED_BYTES):
                    target.write(data)

    def for_format(self, writer_factory: BulkWriterFactory) -> FileCompactor:
        if not writer_factory.can_concatenate:
            raise ValueError(
                f"Files of {type(writer_factory).__name__} cannot be put after each other: use"
                " FileCompactor.record_wise_file_compactor(format), with the format in which they are read"
            )
        return self


@dataclass(frozen=True)
class _Identical(FileCompactor):
    def compact(self, files: list[Path], target: IO[bytes]) -> None:
        raise AssertionError("files are shown as they are")  # see _show_group


@dataclass(frozen=True)
class _RecordWise(FileCompactor):
    file_format: FileFormat
    writer_factory: BulkWriterFactory | None = None

    def compact(self, files: list[Path], target: IO[bytes]) -> None:
        assert self.writer_factory is not None  # noqa: S101 (a builder calls for_format)
        writer = self.writer_factory.create(target)
        for path in files:
            with path.open("rb") as file:
                for element in self.file_format.records(str(path), file):
                    writer.add_element(element)
        writer.finish()

    def for_format(self, writer_factory: BulkWriterFactory) -> FileCompactor:
        return replace(self, writer_factory=writer_factory)


@dataclass(frozen=True)
class Compaction:
    """The compaction of the files of a sink.

    :param strategy: the strategy that says when
    :param compactor: the compactor that says how
    """

    strategy: FileCompactStrategy
    compactor: FileCompactor


@dataclass(frozen=True)
class Waiting:
    """Files that wait for their compaction, as they are stored in checkpoints.

    :param files: the files
    :param checkpoints: the number of checkpoints since the last compaction
    """

    files: tuple[FinishedFile, ...]
    checkpoints: int


class WaitingFiles:
    """The finished files of durable checkpoints that are not shown yet.

    Whatever is interrupted in between is done again at the next start, with the same files. So a compacted file has a name that
    follows from its parts, it is complete before one of them is removed, and it is shown when all of them are.

    :param compaction: the compaction of files; None to show each at once
    """

    def __init__(self, compaction: Compaction | None) -> None:
        self._compaction = compaction
        self._files: dict[str, FinishedFile] = {}
        self._checkpoints = 0
        self._is_last = False

    def add(self, files: Waiting | Iterable[tuple[str, str] | tuple[str, str, int]]) -> None:
        """Add files of a checkpoint that is durable. Without compaction they are shown at once.

        :param files: the files, or those that waited before
        """
        if isinstance(files, Waiting):
            self._checkpoints = max(self._checkpoints, files.checkpoints)
            files = files.files
        for each in files:
            file = FinishedFile(*each)
            if self._compaction is None:
                _rename(Path(file.hidden), Path(file.final))
            else:
                self._files[file.hidden] = file

    def end(self) -> None:
        """Handle that no other files follow: those that wait need not wait any longer."""
        self._is_last = True

    def show(self) -> Waiting | None:
        """Show the files that need not wait any longer, after they were compacted.

        :returns: those that go on waiting; None if there are none
        """
        if self._compaction is None:
            return None
        self._checkpoints += 1
        strategy = self._compaction.strategy
        all_are_due = self._is_last or (strategy.checkpoints is not None and self._checkpoints >= strategy.checkpoints)
        for folder, files in self._by_folder().items():
            size = sum(file.size for file in files)
            if all_are_due or (strategy.size_threshold is not None and size >= strategy.size_threshold):
                _show_group(files, self._compaction.compactor, folder)
                for file in files:
                    del self._files[file.hidden]
        if all_are_due:
            self._checkpoints = 0
        return Waiting(tuple(self._files.values()), self._checkpoints) if self._files else None

    def _by_folder(self) -> dict[Path, list[FinishedFile]]:
        folders: dict[Path, list[FinishedFile]] = {}
        for file in self._files.values():
            folders.setdefault(Path(file.final).parent, []).append(file)
        return folders


def _show_group(files: list[FinishedFile], compactor: FileCompactor, folder: Path) -> None:
    if len(files) == 1 or isinstance(compactor, _Identical):
        for file in files:
            _rename(Path(file.hidden), Path(file.final))
        return
    parts = [Path(file.hidden) for file in files]
    target = folder / f"compacted-{Path(files[0].final).name}"
    complete = folder / f".{target.name}.complete"
    if not complete.exists():
        parts = [part for part in parts if part.exists()]
        if not parts:
            return  # it was shown before
        _write_complete(complete, lambda file: compactor.compact(parts, file))
    for part in parts:
        part.unlink(missing_ok=True)
    with _durable_names(folder):
        complete.replace(target)


def _write_complete(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file that has its name when it is complete."""
    begun = path.with_suffix(".inprogress")
    with begun.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    with _durable_names(path.parent):
        begun.replace(path)


def _rename(hidden: Path, final: Path) -> None:
    if not hidden.exists() and not final.exists():
        # Readers can move files away, and then no trace of the rename is left.
        _log.warning("%s is not there: it was taken away after it had been shown, or %s was removed before", final, hidden)
        return
    with _durable_names(final.parent):
        if hidden.exists():
            hidden.replace(final)


@contextmanager
def _durable_names(folder: Path) -> Iterator[None]:
    """Make the names of files durable that the context gives to files of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
