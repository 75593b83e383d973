from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.datastream.common.execution_config import ExecutionConfig, ExecutionMode
from airflow_pipelines.datastream.common.restart_strategy import RestartStrategies


@pytest.mark.parametrize(
    ("name", "default", "value", "refused"),
    [
        ("parallelism", -1, 4, 0),
        ("max_parallelism", -1, 32767, 32768),
        ("auto_watermark_interval", 200, 0, -1),
        ("latency_tracking_interval", 0, 5, "5"),
        ("restart_strategy", RestartStrategies.fall_back_restart(), RestartStrategies.no_restart(), "none"),
        ("execution_mode", ExecutionMode.PIPELINED, ExecutionMode.BATCH, 2),
        ("task_cancellation_interval", 30_000, 1, -1),
        ("task_cancellation_timeout", 180_000, 0, True),
        ("global_job_parameters", {}, {"a": "b"}, ["a"]),
    ],
)
def test_keeps_what_is_set(name: str, default: Any, value: Any, refused: Any) -> None:
    config = ExecutionConfig()
    get, set_ = getattr(config, f"get_{name}"), getattr(config, f"set_{name}")
    assert get() == default
    assert set_(value) is config
    assert get() == value
    with pytest.raises((TypeError, ValueError)):
        set_(refused)
    assert get() == value


@pytest.mark.parametrize(
    ("name", "getter", "default"),
    [
        ("closure_cleaner", "is_closure_cleaner_enabled", True),
        ("force_kryo", "is_force_kryo_enabled", False),
        ("auto_generated_uids", "has_auto_generated_uids_enabled", True),
        ("force_avro", "is_force_avro_enabled", False),
        ("object_reuse", "is_object_reuse_enabled", False),
    ],
)
def test_switches_go_on_and_off(name: str, getter: str, default: bool) -> None:
    config = ExecutionConfig()
    assert getattr(config, getter)() is default
    assert getattr(getattr(config, f"enable_{name}")(), getter)() is True
    assert getattr(getattr(config, f"disable_{name}")(), getter)() is False


def test_parameters_of_functions_are_text() -> None:
    config = ExecutionConfig().set_global_job_parameters({"limit": 5, "strict": True})
    assert config.get_global_job_parameters() == {"limit": "5", "strict": "true"}


def test_registrations_are_kept() -> None:
    config = ExecutionConfig().register_type_with_kryo_serializer("a.B", "a.S").add_default_kryo_serializer("a.C", "a.T")
    config.register_kryo_type("a.D").register_pojo_type("a.E")
    assert config.get_registered_types_with_kryo_serializer_classes() == {"a.B": "a.S"}
    assert config.get_default_kryo_serializer_classes() == {"a.C": "a.T"}
    assert config.get_registered_kryo_types() == ["a.B", "a.D", "a.E"]
    assert config.disable_generic_types().has_generic_types_disabled()
    assert config.disable_auto_type_registration().is_auto_type_registration_disabled()
    assert config.set_use_snapshot_compression(True).is_use_snapshot_compression()
