from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig, ExternalizedCheckpointCleanup
from airflow_pipelines.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.common.time import Duration


@pytest.mark.parametrize(
    ("name", "default", "value", "refused", "message"),
    [
        (
            "checkpointing_mode",
            CheckpointingMode.EXACTLY_ONCE,
            CheckpointingMode.AT_LEAST_ONCE,
            1,
            "CheckpointingMode.EXACTLY_ONCE, Check",
        ),
        ("checkpoint_interval", -1, 10, 9, "at least 10, not 9"),
        ("checkpoint_timeout", 600_000, 10, 0, "at least 10"),
        ("min_pause_between_checkpoints", 0, 5, -1, "at least 0"),
        ("max_concurrent_checkpoints", 1, 2, 0, "at least 1"),
        ("tolerable_checkpoint_failure_number", 0, 2, -1, "at least 0"),
        (
            "externalized_checkpoint_cleanup",
            None,
            ExternalizedCheckpointCleanup.DELETE_ON_CANCELLATION,
            "delete",
            "RETAIN_ON_CANCELLATION",
        ),
        ("alignment_timeout", Duration.of_millis(0), Duration.of_seconds(1), 1000, r"use Duration.of_millis"),
        ("checkpoint_storage", None, JobManagerCheckpointStorage(), "/tmp/c", r"use FileSystemCheckpointStorage\(path\)"),
    ],
)
def test_keeps_what_is_set(name: str, default: Any, value: Any, refused: Any, message: str) -> None:
    config = CheckpointConfig()
    get, set_ = getattr(config, f"get_{name}"), getattr(config, f"set_{name}")
    assert get() == default
    assert set_(value) is config
    assert get() == value
    with pytest.raises((TypeError, ValueError), match=message):
        set_(refused)
    assert get() == value


def test_an_interval_turns_checkpoints_on() -> None:
    assert not CheckpointConfig().is_checkpointing_enabled()
    assert CheckpointConfig().set_checkpoint_interval(1000).is_checkpointing_enabled()


def test_failing_on_errors_is_tolerating_none() -> None:
    config = CheckpointConfig()
    assert config.is_fail_on_checkpointing_errors()
    assert not config.set_tolerable_checkpoint_failure_number(2).is_fail_on_checkpointing_errors()
    assert config.set_fail_on_checkpointing_errors(True).get_tolerable_checkpoint_failure_number() == 0
    assert config.set_fail_on_checkpointing_errors(False).get_tolerable_checkpoint_failure_number() == 2**31 - 1


def test_checkpoints_are_kept_for_a_later_run_by_clean_up() -> None:
    config = CheckpointConfig()
    assert not config.is_externalized_checkpoints_enabled()
    assert config.enable_externalized_checkpoints(
        ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION
    ).is_externalized_checkpoints_enabled()
    config.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.NO_EXTERNALIZED_CHECKPOINTS)
    assert not config.is_externalized_checkpoints_enabled()


def test_unaligned_checkpoints_need_exactly_once() -> None:
    config = CheckpointConfig().enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    assert config.is_unaligned_checkpoints_enabled()
    assert config.is_force_unaligned_checkpoints()
    with pytest.raises(ValueError, match=r"call disable_unaligned_checkpoints\(\)"):
        config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    config.disable_unaligned_checkpoints().set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    with pytest.raises(ValueError, match=r"need CheckpointingMode.EXACTLY_ONCE"):
        config.enable_unaligned_checkpoints()


def test_a_folder_is_a_storage_of_files() -> None:
    storage = CheckpointConfig().set_checkpoint_storage_dir("file:///c").get_checkpoint_storage()
    assert isinstance(storage, FileSystemCheckpointStorage)
    assert storage.get_checkpoint_path() == "file:///c"


def test_defaults_are_those_of_the_document() -> None:
    assert CheckpointConfig.DEFAULT_MODE == 0
    assert CheckpointConfig.DEFAULT_TIMEOUT == 600_000
    assert CheckpointConfig.DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS == 0
    assert CheckpointConfig.DEFAULT_MAX_CONCURRENT_CHECKPOINTS == 1
