"""A sink that writes files, each element exactly once."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
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
from airflow_pipelines.streams.clock import Clock, SystemClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo

_log = logging.getLogger("airflow_pipelines.datastream")
_MOST_OPEN = 100


@dataclass(frozen=True)
class RowFileSink(Sink):
    """A sink that writes each element as a line to a file.

    An open file has a hidden name, which begins with ``.``. The sink closes its open files at each checkpoint, and at the end of
    the program. When the checkpoint is durable, it renames them to their final names. So a reader sees each element once, whatever
    fails in between, and can move a file away as soon as it is visible. Without checkpoints, the files become visible when the
    program ends.

    :param base_path: the folder for all files
    :param encoder: the encoder of the lines
    :param bucket_assigner: the assigner that names the folder within it
    :param rolling_policy: the policy that closes files between checkpoints
    :param file_config: the configuration of file names
    :param to_text: the function that converts an element to text
    :param clock: the clock for processing time
    """

    base_path: Path
    encoder: Encoder
    bucket_assigner: BucketAssigner = field(default_factory=DateTimeBucketAssigner)
    rolling_policy: RollingPolicy = field(default_factory=RollingPolicy.default_rolling_policy)
    file_config: OutputFileConfig = field(default_factory=OutputFileConfig)
    to_text: Callable[[Any], str] = str
    clock: Clock = field(default_factory=SystemClock)

    def for_type(self, type_info: TypeInformation | None) -> Self:
        """See :meth:`Sink.for_type`."""
        return self if type_info is None else replace(self, to_text=type_info.to_text)

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task.

        :param subtask: the task that writes
        :returns: its writer
        """
        return _FileWriter(self)


class _RowFormatBuilder:
    """The settings that the builders of both file sinks share.

    :param base_path: the folder for all files
    :param encoder: the encoder of the lines
    """

    def __init__(self, base_path: str, encoder: Encoder) -> None:
        folder = Path(checks.absolute_path("base_path", base_path))
        checks.instance("encoder", encoder, Encoder, "use Encoder.simple_string_encoder()")
        self._settings: dict[str, Any] = {"base_path": folder, "encoder": encoder}

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


class FileSink(RowFileSink):
    """A sink that writes files. Use :meth:`for_row_format` to make one."""

    class RowFormatBuilder(_RowFormatBuilder):
        """A builder of file sinks."""

        def build(self) -> FileSink:
            """Make the sink.

            :returns: the sink
            """
            return FileSink(**self._settings)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Return a builder for a sink that writes each element as a line.

        :param base_path: absolute path of the folder for all files
        :param encoder: the encoder of the lines, from ``Encoder.simple_string_encoder()``
        :returns: the builder
        """
        return FileSink.RowFormatBuilder(base_path, encoder)


class StreamingFileSink(RowFileSink):
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

    class DefaultRowFormatBuilder(_RowFormatBuilder):
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
        return StreamingFileSink.DefaultRowFormatBuilder(base_path, encoder)


@dataclass
class _Part:
    hidden: Path
    final: Path
    file: BinaryIO
    begun: int
    last: int
    size: int = 0


class _FileWriter(SinkWriter):
    def __init__(self, sink: RowFileSink) -> None:
        self._sink = sink
        self._id = uuid4()
        self._number = 0
        self._watermark = MIN_TIMESTAMP
        self._open: dict[str, _Part] = {}
        self._closed: list[_Part] = []

    def write(self, batch: Batch) -> None:
        now, assign = self._sink.clock.now(), self._sink.bucket_assigner.get_bucket_id
        to_text, encode = self._sink.to_text, self._sink.encoder.encode
        lines: dict[str, list[bytes]] = {}
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            bucket = assign(value, BucketContext(timestamp, now, self._watermark))
            lines.setdefault(bucket, []).append(encode(to_text(value)))
        for bucket, each in lines.items():
            self._append(bucket, each, now)

    def _append(self, bucket: str, lines: list[bytes], now: int) -> None:
        for line in lines:
            part = self._open.pop(bucket, None)
            if part is not None and self._sink.rolling_policy.is_over(part.size, part.begun, part.last, now):
                self._finish(part)
                part = None
            if part is None:
                part = self._begin(bucket, now)
            # The dict is in LRU order: the part that was written last comes last.
            self._open[bucket] = part
            part.file.write(line)
            part.size += len(line)
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
        return _Part(hidden, folder / name, hidden.open("xb"), begun=now, last=now)

    def _finish(self, part: _Part) -> None:
        part.file.flush()
        os.fsync(part.file.fileno())
        part.file.close()
        self._closed.append(part)

    def watermark(self, timestamp: int) -> None:
        self._watermark = timestamp

    def prepare(self) -> Any | None:
        for part in self._open.values():
            self._finish(part)
        self._open.clear()
        prepared = [(str(part.hidden), str(part.final)) for part in self._closed]
        self._closed.clear()
        return prepared or None

    def commit(self, prepared: Any) -> None:
        for hidden, final in prepared:
            _rename(Path(hidden), Path(final))

    def close(self) -> None:
        for part in self._open.values():
            part.file.close()
        for part in (*self._open.values(), *self._closed):
            part.hidden.unlink(missing_ok=True)
        self._open.clear()
        self._closed.clear()


def _rename(hidden: Path, final: Path) -> None:
    if not hidden.exists() and not final.exists():
        # Readers can move files away, and then no trace of the rename is left.
        _log.warning("%s is not there: it was taken away after it had been shown, or %s was removed before", final, hidden)
        return
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        if hidden.exists():
            hidden.replace(final)
        os.fsync(folder)
    finally:
        os.close(folder)
