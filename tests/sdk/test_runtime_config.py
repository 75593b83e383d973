"""Runtime configurations: what is sent, and that reading and writing back changes nothing."""

from __future__ import annotations

import inspect

import pytest

from airflow_pipelines.contract import runtime_config as contract
from airflow_pipelines.contract.enums import FaultToleranceModel
from airflow_pipelines.sdk.runtime_config import Resources, RuntimeConfig, Storage

FROM_SERVICE = {
    "workers": 8,
    "hosts": 1,
    "storage": {"backend": {"name": "default"}, "min_storage_bytes": None, "compression": "default"},
    "fault_tolerance": {"model": "none", "checkpoint_interval_secs": 60},
    "cpu_profiler": True,
    "tracing": False,
    "tracing_endpoint_jaeger": "127.0.0.1:6831",
    "min_batch_size_records": 0,
    "max_buffering_delay_usecs": 0,
    "resources": {"cpu_cores_max": 2, "cpu_cores_min": None, "namespace": "n"},
    "clock_resolution_usecs": 1_000_000,
    "pin_cpus": [],
    "checkpoint_during_suspend": True,
    "dev_tweaks": {},
    "env": {"A": "secret"},
    "logging": None,
}


def test_the_defaults_leave_everything_to_the_service() -> None:
    sent = RuntimeConfig().to_dict()
    assert sent == {"tracing": False, "cpu_profiler": True, "max_buffering_delay_usecs": 0, "min_batch_size_records": 0}
    assert RuntimeConfig.default().to_dict()["storage"] is True


def test_the_parameters_are_the_references() -> None:
    names = list(inspect.signature(RuntimeConfig).parameters)
    assert names[:16] == [
        "workers",
        "hosts",
        "storage",
        "tracing",
        "tracing_endpoint_jaeger",
        "cpu_profiler",
        "max_buffering_delay_usecs",
        "min_batch_size_records",
        "clock_resolution_usecs",
        "provisioning_timeout_secs",
        "resources",
        "fault_tolerance_model",
        "checkpoint_interval_secs",
        "dev_tweaks",
        "env",
        "logging",
    ]


def test_what_is_set_is_sent_in_wire_form() -> None:
    config = RuntimeConfig(
        workers=4,
        storage=Storage({"backend": {"name": "file"}}, min_storage_bytes=10),
        resources=Resources({"memory_mb_max": 1, "namespace": "n"}, memory_mb_max=2, cpu_cores_max=3),
        fault_tolerance_model=FaultToleranceModel.ExactlyOnce,
        env={"A": "b"},
    )
    assert config.to_dict() | {"tracing": None} == {
        "workers": 4,
        "storage": {"backend": {"name": "file"}, "min_storage_bytes": 10},
        "resources": {"cpu_cores_max": 3, "memory_mb_max": 2, "namespace": "n"},
        "fault_tolerance": {"model": "exactly_once"},
        "env": {"A": "b"},
        "tracing": None,
        "cpu_profiler": True,
        "max_buffering_delay_usecs": 0,
        "min_batch_size_records": 0,
    }


@pytest.mark.parametrize("storage", [True, False])
def test_storage_may_be_switched_on_and_off(storage: bool) -> None:
    assert RuntimeConfig(storage=storage).to_dict()["storage"] is storage
    assert RuntimeConfig.from_dict({"storage": storage}).storage is storage


def test_reading_and_writing_back_loses_nothing() -> None:
    config = RuntimeConfig.from_dict(FROM_SERVICE)
    assert config.workers == 8
    assert config.fault_tolerance_model is None
    assert config.checkpoint_interval_secs == 60
    assert config.resources == Resources(cpu_cores_max=2, config={"namespace": "n"})
    config.min_batch_size_records = 500
    sent = config.to_dict()
    expected = {key: value for key, value in FROM_SERVICE.items() if value is not None} | {"min_batch_size_records": 500}
    expected["storage"] = {"backend": {"name": "default"}, "compression": "default"}
    expected["resources"] = {"cpu_cores_max": 2, "namespace": "n"}
    assert sent == expected


def test_an_unknown_fault_tolerance_model_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown FaultToleranceModel 'perhaps'"):
        RuntimeConfig.from_dict({"fault_tolerance": {"model": "perhaps"}})


def test_repr_shows_no_secret() -> None:
    sync = {"backend": {"name": "file", "config": {"sync": {"secret_key": "hush"}}}}
    text = repr(RuntimeConfig(storage=Storage(sync), env={"PASSWORD": "hush"}))
    assert "hush" not in text
    assert "backend" in text


def test_what_python_can_say_the_contract_knows() -> None:
    def said(kind: type, *apart: str) -> set[str]:
        return set(inspect.signature(kind).parameters) - set(apart)

    fields = contract.RuntimeConfig.model_fields.keys()
    assert said(RuntimeConfig, "fault_tolerance_model", "checkpoint_interval_secs") <= fields
    assert said(Resources, "config") <= contract.Resources.model_fields.keys()
    assert said(Storage, "config") <= contract.Storage.model_fields.keys()


def test_the_defaults_of_python_are_the_contracts() -> None:
    assert contract.RuntimeConfig.model_validate(RuntimeConfig().to_dict()) == contract.RuntimeConfig()
    assert contract.RuntimeConfig.model_validate(RuntimeConfig.default().to_dict()) == contract.RuntimeConfig()
