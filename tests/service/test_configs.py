"""Configurations as they come back."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import configs

DEFAULT_STORAGE = {
    "backend": {"name": "default"},
    "min_storage_bytes": None,
    "min_step_storage_bytes": None,
    "compression": "default",
    "cache_mib": None,
}


def test_defaults() -> None:
    config = configs.runtime_config(None)
    assert config["storage"] == DEFAULT_STORAGE
    assert config["fault_tolerance"] == {"model": "none", "checkpoint_interval_secs": 60}
    assert (config["workers"], config["hosts"], config["clock_resolution_usecs"], config["cpu_profiler"]) == (8, 1, 1_000_000, True)
    assert config["resources"]["memory_mb_max"] is None
    assert configs.runtime_config(config) == config


@pytest.mark.parametrize(("given", "stored"), [(True, DEFAULT_STORAGE), ({}, DEFAULT_STORAGE), (False, None), (None, None)])
def test_storage_switches(given: Any, stored: Any) -> None:
    assert configs.runtime_config({"storage": given})["storage"] == stored


def test_sync_configuration_is_kept() -> None:
    backend = {"name": "file", "config": {"sync": {"bucket": "b/p"}}}
    assert configs.runtime_config({"storage": {"backend": backend}})["storage"]["backend"] == backend


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("latest_checkpoint", {"model": "exactly_once", "checkpoint_interval_secs": 60}),
        ({"model": "at_least_once", "checkpoint_interval_secs": 0}, {"model": "at_least_once", "checkpoint_interval_secs": 1}),
        (
            {"model": "at_least_once", "checkpoint_interval_secs": 9999},
            {"model": "at_least_once", "checkpoint_interval_secs": 3600},
        ),
        ({"model": None, "checkpoint_interval_secs": None}, {"model": "none", "checkpoint_interval_secs": None}),
        (None, {"model": "none", "checkpoint_interval_secs": 60}),
    ],
)
def test_fault_tolerance(given: Any, stored: Any) -> None:
    assert configs.runtime_config({"fault_tolerance": given})["fault_tolerance"] == stored


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"wokers": 2}, "wokers"),
        ({"resources": {"cpus": 2}}, "resources.cpus"),
        ({"workers": 0}, "workers"),
        ({"workers": "many"}, "workers"),
        ({"fault_tolerance": {"model": "twice"}}, "fault_tolerance.model"),
        ({"env": {"JAVA_HOME": "/x"}}, "JAVA_HOME"),
        ({"env": {"AIRFLOW_PIPELINES_DATABASE_URL": "x"}}, "AIRFLOW_PIPELINES_DATABASE_URL"),
        ([], "JSON object"),
        (
            {"clock_timezone_offset": "mars"},
            "clock_timezone_offset: Value error, 'clock_timezone_offset' is an offset such as '+02:00'",
        ),
        ({"dev_tweaks": {"now_http_driven": "false"}}, "dev_tweaks.now_http_driven: Input should be a valid boolean"),
        ({"dev_tweaks": {"now_offset": "soon"}}, "dev_tweaks.now_offset"),
        ({"dev_tweaks": {"now_offset": 1e300}}, "dev_tweaks.now_offset"),
        ({"dev_tweaks": {"verify_batches": "sometimes"}}, "dev_tweaks.verify_batches: Input should be 'once', 'always' or 'never'"),
        ({"dev_tweaks": {"prepared_queries": "off"}}, "dev_tweaks.prepared_queries"),
        ({"storage": {"backend": {"name": "object"}}}, "storage.backend.name: Input should be 'default' or 'file'"),
        ({"storage": {"backend": {"name": "file", "config": {"sync": {}}}}}, "storage.backend.config.sync.bucket: Field required"),
        (
            {"storage": {"backend": {"name": "file", "config": {"sync": {"bucket": "b", "start_from_checkpoint": "new"}}}}},
            "storage.backend.config.sync.start_from_checkpoint: Value error, 'latest' or the UUID of a checkpoint",
        ),
        (
            {"storage": {"backend": {"name": "file", "config": {"snyc": {}}}}},
            "config.snyc: unknown key; known: async_threads, ioop_delay, sync",
        ),
        ({"resources": {"cpus": 2}}, "unknown key; known: cpu_cores_max, cpu_cores_min, memory_mb_max"),
        ({"workers": True}, "workers: Value error, must be a number, not true or false"),
        ({"pin_cpus": [-1]}, "pin_cpus.0"),
    ],
)
def test_refusals_name_the_field(given: Any, named: str) -> None:
    with pytest.raises(Problem) as refused:
        configs.runtime_config(given)
    assert refused.value.code == "InvalidRuntimeConfig"
    assert named in refused.value.message


def test_refusals_do_not_repeat_values() -> None:
    sync = {"secret_key": "s3cret", "push_interval": "s3cret", "s3": "s3cret"}
    with pytest.raises(Problem) as refused:
        configs.runtime_config(
            {"env": {"PATH": "s3cret"}, "storage": {"backend": {"name": "file", "key": "s3cret", "config": {"sync": sync}}}}
        )
    assert "s3cret" not in str(refused.value.body())


def test_what_is_set_in_vain_is_told() -> None:
    assert configs.without_effect(configs.runtime_config(None)) == []
    assert configs.without_effect(configs.runtime_config({"storage": False, "workers": 2, "clock_timezone_offset": "+01:00"})) == []
    sync = {"bucket": "b", "flags": ["--x"], "secret_key": "s3cret"}
    lines = configs.without_effect(
        configs.runtime_config(
            {
                "tracing": True,
                "storage": {"backend": {"name": "file", "config": {"sync": sync}}},
                "dev_tweaks": {"backfill_avoidance": True, "now_offset": 5},
                "env": {"A": "s3cret"},
            }
        )
    )
    assert [line.split(" has no effect: ")[0] for line in lines] == [
        "runtime_config.storage.backend.config.sync.flags",
        "runtime_config.tracing",
        "runtime_config.dev_tweaks.backfill_avoidance",
    ]
    assert "known: now_http_driven, now_offset, prepared_queries, verify_batches" in lines[-1]
    assert not any("s3cret" in line for line in lines)
