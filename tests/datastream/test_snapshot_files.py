from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream import (
    Configuration,
    ExternalizedCheckpointCleanup,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    StreamProgramError,
    Types,
)
from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig
from airflow_pipelines.datastream.common import JobStatus, WatermarkStrategy
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.connectors import NumberSequenceSource
from airflow_pipelines.datastream.snapshot_files import CheckpointFiles, read_savepoint
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.streams.snapshots import Snapshot

LAST = 60_000


class _Sum(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        total = (self.total.value() or 0) + value
        self.total.update(total)
        if value == LAST:
            yield total


class _FailsWithout(MapFunction):
    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def map(self, value: int) -> int:
        if value == LAST and not self.flag.exists():
            raise ConnectionError("gone")
        return value


def _program(tmp_path: Path, configuration: Configuration | None = None) -> tuple[StreamExecutionEnvironment, Any]:
    environment = StreamExecutionEnvironment.get_execution_environment(configuration).enable_checkpointing(10)
    config = environment.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{tmp_path / 'checkpoints'}")
    config.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    numbers = environment.from_source(NumberSequenceSource(1, LAST), WatermarkStrategy.no_watermarks(), "numbers")
    sums = numbers.map(_FailsWithout(tmp_path / "flag")).key_by(lambda _: 0).process(_Sum()).uid("sum")
    return environment, sums


def test_a_program_goes_on_from_the_checkpoint_of_one_that_failed(tmp_path: Path) -> None:
    environment, sums = _program(tmp_path)
    sums.print()
    with pytest.raises(ConnectionError, match="gone"):
        environment.execute()
    [checkpoint] = list((tmp_path / "checkpoints").glob("*/chk-*"))
    (tmp_path / "flag").touch()
    configuration = Configuration().set_string("execution.savepoint.path", str(checkpoint))
    _, sums = _program(tmp_path, configuration)
    assert list(sums.execute_and_collect()) == [LAST * (LAST + 1) // 2]


def test_checkpoints_are_removed_when_the_program_ends(tmp_path: Path) -> None:
    (tmp_path / "flag").touch()
    environment, sums = _program(tmp_path)
    sums.print()
    environment.execute()
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize(
    ("cleanup", "kept_after"),
    [
        (None, set()),
        (ExternalizedCheckpointCleanup.NO_EXTERNALIZED_CHECKPOINTS, set()),
        (ExternalizedCheckpointCleanup.DELETE_ON_CANCELLATION, {JobStatus.FAILED}),
        (ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION, {JobStatus.FAILED, JobStatus.CANCELED}),
    ],
)
def test_clean_up_decides_what_is_kept(
    tmp_path: Path, cleanup: ExternalizedCheckpointCleanup | None, kept_after: set[JobStatus]
) -> None:
    config = CheckpointConfig().set_checkpoint_storage_dir(str(tmp_path))
    if cleanup is not None:
        config.set_externalized_checkpoint_cleanup(cleanup)
    for status in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED):
        files = CheckpointFiles.of(config, JobID.generate())
        assert files is not None
        files.write(Snapshot())
        files.write(Snapshot())
        assert [path.name for path in files.folder.iterdir()] == ["chk-2"]
        assert read_savepoint(str(files.folder / "chk-2")) == Snapshot()
        files.end(status)
        assert files.folder.exists() == (status in kept_after)


def test_failed_checkpoints_are_tolerated_as_often_as_was_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "flag").touch()
    (tmp_path / "checkpoints").write_text("a file where the folder should be")
    environment, sums = _program(tmp_path)
    sums.print()
    environment.get_checkpoint_config().set_fail_on_checkpointing_errors(False)
    environment.execute()
    assert "A checkpoint cannot be written, and the program goes on without it" in caplog.text
    environment, sums = _program(tmp_path)
    sums.print()
    with pytest.raises(NotADirectoryError):
        environment.execute()


def test_only_local_folders_are_taken(tmp_path: Path) -> None:
    with pytest.raises(StreamProgramError, match="in local folders, not in s3://b/c"):
        CheckpointFiles.of(CheckpointConfig().set_checkpoint_storage_dir("s3://b/c"), JobID.generate())
    with pytest.raises(StreamProgramError, match=r"There is no savepoint at .*state.bin is missing"):
        read_savepoint(str(tmp_path))
