from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.common import no_effect
from airflow_pipelines.datastream.common.restart_strategy import RestartStrategies
from airflow_pipelines.datastream.environment_settings import EnvironmentSettings
from airflow_pipelines.datastream.execution_mode import RuntimeExecutionMode
from airflow_pipelines.datastream.slot_sharing_group import SlotSharingGroup
from airflow_pipelines.datastream.state_backend import HashMapStateBackend
from airflow_pipelines.datastream.time_characteristic import TimeCharacteristic


@pytest.mark.parametrize(
    ("name", "default", "value", "refused"),
    [
        ("parallelism", 1, 4, 0),
        ("max_parallelism", -1, 32767, 32768),
        ("default_local_parallelism", 1, 3, 0),
        ("restart_strategy", RestartStrategies.fall_back_restart(), RestartStrategies.no_restart(), "none"),
        ("default_savepoint_directory", None, "file:///s", ""),
        ("buffer_timeout", 100, -1, -2),
        ("stream_time_characteristic", TimeCharacteristic.EventTime, TimeCharacteristic.ProcessingTime, "event"),
        ("state_backend", None, HashMapStateBackend(), "hashmap"),
    ],
)
def test_keeps_what_is_set(name: str, default: Any, value: Any, refused: Any) -> None:
    settings = EnvironmentSettings()
    get, set_ = getattr(settings, f"get_{name}"), getattr(settings, f"set_{name}")
    assert get() == default
    assert set_(value) in (settings, None)
    assert get() == value
    with pytest.raises((TypeError, ValueError)):
        set_(refused)
    assert get() == value


def test_settings_of_checkpoints_are_those_of_their_configuration() -> None:
    settings = EnvironmentSettings().enable_checkpointing(500, CheckpointingMode.AT_LEAST_ONCE)
    assert (settings.get_checkpoint_interval(), settings.get_checkpointing_mode()) == (500, CheckpointingMode.AT_LEAST_ONCE)
    settings.get_checkpoint_config().set_checkpoint_interval(700)
    assert settings.get_checkpoint_interval() == 700


def test_the_notion_of_time_turns_periodic_watermarks_on_and_off() -> None:
    settings = EnvironmentSettings()
    settings.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert settings.get_config().get_auto_watermark_interval() == 0
    settings.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    assert settings.get_config().get_auto_watermark_interval() == 200


def test_parallelism_is_that_of_the_machine_unless_it_is_set() -> None:
    settings = EnvironmentSettings()
    settings.set_default_local_parallelism(3)
    assert settings.get_parallelism() == 3
    assert settings.set_parallelism(2).get_parallelism() == 2


def test_refuses_what_does_not_exist(tmp_path: Path) -> None:
    settings = EnvironmentSettings()
    for call in (settings.add_python_file, settings.set_python_requirements, settings.add_python_archive):
        with pytest.raises(FileNotFoundError, match=r"there is no '.*nothing'"):
            call(str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="requirements_cache_dir: there is no"):
        settings.set_python_requirements(__file__, str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="URLs with a scheme such as 'file:///opt/x'"):
        settings.add_classpaths("/opt/x")
    with pytest.raises(TypeError, match=r"use SlotSharingGroup.builder\(name\)"):
        settings.register_slot_sharing_group("g")  # type: ignore[arg-type]


def test_one_call_is_said_to_have_no_effect_once(caplog: pytest.LogCaptureFixture) -> None:
    no_effect._say_once.cache_clear()
    EnvironmentSettings().register_type("a.A")
    assert [record.getMessage().split(" has no effect")[0] for record in caplog.records] == ["EnvironmentSettings.register_type"]


def test_the_rest_is_kept(tmp_path: Path) -> None:
    settings = EnvironmentSettings()
    assert settings.is_chaining_enabled()
    assert not settings.disable_operator_chaining().is_chaining_enabled()
    assert settings.set_runtime_mode(RuntimeExecutionMode.BATCH) is settings
    assert settings.register_slot_sharing_group(SlotSharingGroup.builder("g").build()) is settings
    settings.register_type("a.A")
    settings.register_type_with_kryo_serializer("a.B", "a.S")
    settings.add_default_kryo_serializer("a.C", "a.T")
    assert settings.get_config().get_registered_kryo_types() == ["a.A", "a.B"]
    assert settings.get_config().get_default_kryo_serializer_classes() == {"a.C": "a.T"}
