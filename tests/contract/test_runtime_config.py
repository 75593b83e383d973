"""The runtime configuration: its wire form, what an earlier release stored, and what each field does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_pipelines.contract.runtime_config import RuntimeConfig, effects, zone_offset_us

FILLED = (
    '{"workers": 8, "hosts": 1, "storage": {"backend": {"name": "default"}, "min_storage_bytes": null, '
    '"min_step_storage_bytes": null, "compression": "default", "cache_mib": null}, "fault_tolerance": {"model": "none", '
    '"checkpoint_interval_secs": 60}, "cpu_profiler": true, "tracing": false, "tracing_endpoint_jaeger": "127.0.0.1:6831", '
    '"min_batch_size_records": 0, "max_buffering_delay_usecs": 0, "resources": {"cpu_cores_min": null, "cpu_cores_max": null, '
    '"memory_mb_min": null, "memory_mb_max": null, "storage_mb_max": null, "storage_class": null, "service_account_name": null, '
    '"namespace": null}, "clock_resolution_usecs": 1000000, "clock_timezone_offset": null, "pin_cpus": [], '
    '"provisioning_timeout_secs": null, "max_parallel_connector_init": null, "init_containers": null, '
    '"checkpoint_during_suspend": true, "http_workers": null, "io_workers": null, "dev_tweaks": {}, "env": {}, "logging": null, '
    '"pipeline_template_configmap": null, "datafusion_memory_mb": null, "max_rss_mb": null}'
)


def test_the_wire_form_has_all_fields_in_their_order() -> None:
    assert json.dumps(RuntimeConfig().to_wire()) == FILLED


@pytest.mark.parametrize("section", ["storage", "dev_tweaks"])
def test_what_is_kept_as_given_is_not_converted(section: str) -> None:
    given: dict[str, Any] = {
        "storage": {"backend": {"name": "file", "config": {"sync": {"push_interval": 5, "bucket": "b", "region": None}}}},
        "dev_tweaks": {"of_another_release": {"a": [1]}, "now_offset": 5},
    }
    wire = RuntimeConfig.model_validate({section: given[section]}).to_wire()[section]
    kept = wire["backend"] if section == "storage" else wire
    assert json.dumps(kept) == json.dumps(given[section].get("backend", given[section]))


def test_the_fault_tolerance_of_older_clients_is_exactly_once_for_service_and_host() -> None:
    checked = RuntimeConfig.model_validate({"fault_tolerance": "latest_checkpoint"})
    assert checked.to_wire()["fault_tolerance"] == {"model": "exactly_once", "checkpoint_interval_secs": 60}
    assert RuntimeConfig.from_stored({"fault_tolerance": "latest_checkpoint"}) == checked


@pytest.mark.parametrize(("given", "kept"), [(-5, 1), (0, 1), (1, 1), (3_600, 3_600), (3_601, 3_600), (None, None)])
def test_the_interval_of_checkpoints_is_moved_to_its_limits(given: int | None, kept: int | None) -> None:
    checked = RuntimeConfig.model_validate({"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": given}})
    assert checked.fault_tolerance.checkpoint_interval_secs == kept


def test_a_stored_configuration_of_another_release_loads() -> None:
    stored = {
        "workers": None,
        "storage": {"backend": {"name": "file", "config": {"sync": {"bucket": "b", "later": 1}}, "later": 1}, "later": 1},
        "resources": None,
        "env": None,
        "checkpoint_during_suspend": False,
        "later": {"a": 1},
    }
    config = RuntimeConfig.from_stored(stored)
    assert (config.workers, config.checkpoint_during_suspend, config.env) == (8, False, {})
    assert config.sync is not None
    assert config.sync.bucket == "b"
    assert RuntimeConfig.from_stored({"storage": None}).storage is None


def test_a_stored_configuration_that_makes_no_sense_is_refused_without_its_secrets() -> None:
    sync = {"secret_key": "hush", "push_interval": "hush"}
    with pytest.raises(ValueError, match=r"storage\.backend\.config\.sync\.bucket: Field required") as refused:
        RuntimeConfig.from_stored({"storage": {"backend": {"config": {"sync": sync}}}})
    assert "hush" not in str(refused.value)
    assert "sync.push_interval" in str(refused.value)


def test_a_repr_shows_no_secret() -> None:
    sync = {"bucket": "b", "access_key": "hush", "secret_key": "hush"}
    config = RuntimeConfig.model_validate({"env": {"A": "hush"}, "storage": {"backend": {"config": {"sync": sync}}}})
    assert "hush" not in repr(config)


def test_spark_of_a_pipelines_own_is_left_out_where_it_is_not_given() -> None:
    assert "spark" not in RuntimeConfig().to_wire()
    given = {"spark": {"conf": {"spark.executor.cores": "2"}, "packages": ["g:a:1"], "driver_memory": "4g"}}
    assert (
        RuntimeConfig.from_stored(RuntimeConfig.model_validate(given).to_wire()).spark == RuntimeConfig.model_validate(given).spark
    )


@pytest.mark.parametrize(
    "wrong",
    [{"conf": {"executor.cores": "2"}}, {"conf": {"spark.master": "local"}}, {"driver_memory": "lots"}, {"jars": ["x"]}],
)
def test_spark_properties_that_a_pipeline_cannot_set_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RuntimeConfig.model_validate({"spark": wrong})


def test_each_field_has_its_line_in_the_documentation(repository: Path) -> None:
    page = (repository / "docs" / "runtime-config.md").read_text()
    lines = [f"| `{path}` | {'' if effect.active else '**no effect:** '}{effect.text} |" for path, effect in effects()]
    assert [line for line in page.splitlines() if line.startswith("| `")] == lines


def test_each_field_with_a_value_says_what_it_does() -> None:
    def paths(value: dict[str, Any], prefix: str = "") -> set[str]:
        sections = {name for name, each in value.items() if isinstance(each, dict) and name != "env"}
        return {prefix + name for name in value.keys() - sections}.union(
            *(paths(value[name], f"{prefix}{name}.") for name in sections)
        )

    assert paths(RuntimeConfig().to_wire()) <= {path for path, _ in effects()}


@pytest.mark.parametrize(
    ("text", "offset_us"), [(None, 0), ("", 0), ("Z", 0), ("UTC", 0), ("+02:00", 7_200_000_000), ("-0530", -19_800_000_000)]
)
def test_offsets_from_utc(text: str | None, offset_us: int) -> None:
    assert zone_offset_us(text) == offset_us


@pytest.mark.parametrize("text", ["Berlin", "+19:00", "+01:60", "2"])
def test_what_is_no_offset_from_utc(text: str) -> None:
    with pytest.raises(ValueError, match="is an offset such as"):
        zone_offset_us(text)
