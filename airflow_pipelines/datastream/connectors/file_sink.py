"""A sink that writes files, each element exactly once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Self
from uuid import uuid4

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.serialization import Encoder
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.base import Sink
from airflow_pipelines.datastream.connectors.file_buckets import (
    BucketAssigner,
    BucketContext,
    DateTimeBucketAssigner,
    OutputFileConfig,
    RollingPolicy,
)
from airflow_pipelines.datastream.connectors.file_formats import BulkWriter, BulkWriterFactory, LineWriterFactory
from airflow_pipelines.datastream.connectors.finished_files import (
    Compaction,
    FileCompactor,
    FileCompactStrategy,
    FinishedFile,
    WaitingFiles,
)
from airflow_pipelines.streams.clock import Clock, SystemClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo

_MOST_OPEN = 100


@dataclass(frozen=True)
class FilesSink(Sink):
    """A sink that writes elements to files.

    An open file has a hidden name, which begins with ``.``. The sink closes its open files at each checkpoint, and at the end of
    the program. When the checkpoint is durable, it renames them to their final names. So a reader sees each element once, whatever
    fails in between, and can move a file away as soon as it is visible. Without checkpoints, the files become visible when the
    program ends.

    :param base_path: the folder for all files
    :param writer_factory: the factory that knows the format of the files
    :param bucket_assigner: the assigner that names the folder within it
    :param rolling_policy: the policy that closes files between checkpoints
    :param file_config: the configuration of file names
    :param compaction: the compaction of small files before they become visible; None for none
    :param clock: the clock for processing time
    """

    base_path: Path
    writer_factory: BulkWriterFactory
    bucket_assigner: BucketAssigner = field(default_factory=DateTimeBucketAssigner)
    rolling_policy: RollingPolicy = field(default_factory=RollingPolicy.default_rolling_policy)
    file_config: OutputFileConfig = field(default_factory=OutputFileConfig)
    compaction: Compaction | None = None
    clock: Clock = field(default_factory=SystemClock)

    def for_type(self, type_info: TypeInformation | None) -> Self:
        """See :meth:`Sink.for_type`."""
        return self if type_info is None else replace(self, writer_factory=self.writer_factory.for_type(type_info))

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task.

        :param subtask: the task that writes
        :returns: its writer
        """
        return _FileWriter(self)


class _Builder:
    """The settings that all builders of file sinks share.

    :param base_path: the folder for all files
    :param writer_factory: the factory that knows the format of the files
    """

    def __init__(self, base_path: str, writer_factory: BulkWriterFactory) -> None:
        folder = Path(checks.absolute_path("base_path", base_path))
        self._settings: dict[str, Any] = {"base_path": folder, "writer_factory": writer_factory}

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
        """Set the assigner of elements to folders.

        :param bucket_assigner: an assigner from ``BucketAssigner``, or a custom one; one folder for each hour by default
        :returns: this object
        """
        hint = "use BucketAssigner.base_path_bucket_assigner() or another"
        self._settings["bucket_assigner"] = checks.instance("bucket_assigner", bucket_assigner, BucketAssigner, hint)
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
        """Set the policy that closes files between checkpoints.

        :param rolling_policy: a policy from ``RollingPolicy``
        :returns: this object
        """
        policy = checks.instance("rolling_policy", rolling_policy, RollingPolicy, "use RollingPolicy.default_rolling_policy()")
        self._settings["rolling_policy"] = policy
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
        """Set the configuration of file names.

        :param output_file_config: prefix and suffix
        :returns: this object
        """
        config = checks.instance("output_file_config", output_file_config, OutputFileConfig, "use OutputFileConfig('part', '.txt')")
        self._settings["file_config"] = config
        return self

    @no_effect("the age of files is looked at when an element comes, and each checkpoint closes them all")
    def with_bucket_check_interval(self, interval: int) -> Self:
        """Set the interval between two checks of the age of files.

        :param interval: milliseconds
        :returns: this object
        """
        checks.integer("interval", interval, 1)
        return self


class _CompactingBuilder(_Builder):
    """The settings of builders of a :class:`FileSink`."""

    def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
        """Compact small files before they become visible.

        :param strategy: the strategy that says when, from ``FileCompactStrategy.builder()``
        :param compactor: the compactor that says how, such as ``FileCompactor.concat_file_compactor()``
        :returns: this object
        :raises ValueError: if files of this format cannot be compacted in this way
        """
        checks.instance("strategy", strategy, FileCompactStrategy, "use FileCompactStrategy.builder()")
        checks.instance("compactor", compactor, FileCompactor, "use FileCompactor.concat_file_compactor() or another")
        self._settings["compaction"] = Compaction(strategy, compactor.for_format(self._settings["writer_factory"]))
        return self

    def disable_compact(self) -> Self:
        """Show files as they were written. This is the default. Files that wait for their compaction are shown at the next start.

        :returns: this object
        """
        self._settings["compaction"] = None
        return self

    def build(self) -> FileSink:
        """Make the sink.

        :returns: the sink
        """
        return FileSink(**self._settings)


class FileSink(FilesSink):
    """A sink that writes files. Use :meth:`for_row_format` or :meth:`for_bulk_format` to make one."""

    class RowFormatBuilder(_CompactingBuilder):
        """A builder of sinks that write each element as a line."""

    class BulkFormatBuilder(_CompactingBuilder):
        """A builder of sinks whose files have another format, such as Parquet."""

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Return a builder for a sink that writes each element as a line.

        :param base_path: absolute path of the folder for all files
        :param encoder: the encoder of the lines, from ``Encoder.simple_string_encoder()``
        :returns: the builder
        """
        return FileSink.RowFormatBuilder(base_path, _write_lines(encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Return a builder for a sink whose files have a format of their own.

        Such files are closed at checkpoints only, unless another rolling policy is set.

        :param base_path: absolute path of the folder for all files
        :param writer_factory: the format, such as ``ParquetBulkWriters.for_row_type(...)``
        :returns: the builder
        """
        checks.instance("writer_factory", writer_factory, BulkWriterFactory, "use ParquetBulkWriters.for_row_type(...) or another")
        return FileSink.BulkFormatBuilder(base_path, writer_factory).with_rolling_policy(
            RollingPolicy.on_checkpoint_rolling_policy()
        )


def _write_lines(encoder: Encoder) -> BulkWriterFactory:
    return LineWriterFactory(checks.instance("encoder", encoder, Encoder, "use Encoder.simple_string_encoder()"))


class StreamingFileSink(FilesSink):
    """A sink that writes files, for ``add_sink``. Use :meth:`for_row_format` to make one.

    >>> import tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.common import Encoder
    >>> from airflow_pipelines.datastream.connectors import StreamingFileSink
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     builder = StreamingFileSink.for_row_format(folder, Encoder.simple_string_encoder())
    ...     end = env.from_collection(["apples", "pears"]).add_sink(builder.build())
    ...     result = env.execute("fruits")
    ...     list(env.read_text_file(folder).execute_and_collect())
    ['apples', 'pears']
    """

    class DefaultRowFormatBuilder(_Builder):
        """A builder of file sinks."""

        def build(self) -> StreamingFileSink:
            """Make the sink.

            :returns: the sink
            """
            return StreamingFileSink(**self._settings)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Return a builder for a sink that writes each element as a line.

        :param base_path: absolute path of the folder for all files
        :param encoder: the encoder of the lines, from ``Encoder.simple_string_encoder()``
        :returns: the builder
        """
        return StreamingFileSink.DefaultRowFormatBuilder(base_path, _write_lines(encoder))


@dataclass
class _Part:
    hidden: Path
    final: Path
    file: BinaryIO
    writer: BulkWriter
    begun: int
    last: int


class _FileWriter(SinkWriter):
    def __init__(self, sink: FilesSink) -> None:
        self._sink = sink
        self._id = uuid4()
        self._number = 0
        self._watermark = MIN_TIMESTAMP
        self._open: dict[str, _Part] = {}
        self._closed: list[FinishedFile] = []
        self._waiting = WaitingFiles(sink.compaction)

    def write(self, batch: Batch) -> None:
        now, assign = self._sink.clock.now(), self._sink.bucket_assigner.get_bucket_id
        elements: dict[str, list[Any]] = {}
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            bucket = assign(value, BucketContext(timestamp, now, self._watermark))
            elements.setdefault(bucket, []).append(value)
        for bucket, each in elements.items():
            self._append(bucket, each, now)

    def _append(self, bucket: str, elements: list[Any], now: int) -> None:
        is_over = self._sink.rolling_policy.is_over
        for element in elements:
            part = self._open.pop(bucket, None)
            if part is not None and is_over(part.file.tell(), part.begun, part.last, now):
                self._finish(part)
                part = None
            if part is None:
                part = self._begin(bucket, now)
            # The dict is in LRU order: the part that was written last comes last.
            self._open[bucket] = part
            part.writer.add_element(element)
            part.last = now
        while len(self._open) > _MOST_OPEN:
            self._finish(self._open.pop(next(iter(self._open))))

    def _begin(self, bucket: str, now: int) -> _Part:
        relative = PurePosixPath(checks.instance("the bucket id", bucket, str, "get_bucket_id must return a str"))
        if relative.is_absolute() or ".." in relative.parts:
            raise ValueError(f"The bucket id {bucket!r} leads out of the base path: get_bucket_id must return a path below it")
        folder = self._sink.base_path / relative
        folder.mkdir(parents=True, exist_ok=True)
        config = self._sink.file_config
        name = f"{config.part_prefix}-{self._id}-{self._number}{config.part_suffix}"
        self._number += 1
        hidden = folder / f".{name}.inprogress"
        file = hidden.open("xb")
        return _Part(hidden, folder / name, file, self._sink.writer_factory.create(file), begun=now, last=now)

    def _finish(self, part: _Part) -> None:
        part.writer.finish()
        part.file.flush()
        os.fsync(part.file.fileno())
        self._closed.append(FinishedFile(str(part.hidden), str(part.final), part.file.tell()))
        part.file.close()

    def watermark(self, timestamp: int) -> None:
        self._watermark = timestamp

    def end(self) -> None:
        self._waiting.end()

    def prepare(self) -> Any | None:
        for part in self._open.values():
            self._finish(part)
        self._open.clear()
        prepared, self._closed = self._closed, []
        return prepared or None

    def commit(self, prepared: Any) -> None:
        self._waiting.add(prepared)

    def finish_commit(self) -> Any | None:
        return self._waiting.show()

    def close(self) -> None:
        for part in self._open.values():
            part.file.close()
            part.hidden.unlink(missing_ok=True)
        for file in self._closed:
            Path(file.hidden).unlink(missing_ok=True)
        self._open.clear()
        self._closed.clear()
