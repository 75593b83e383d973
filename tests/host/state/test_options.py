"""Reading runtime configurations."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.common.references import ReferenceWithoutValueError
from airflow_pipelines.contract.runtime_config import RuntimeConfig
from airflow_pipelines.contract.statuses import CrashGuarantee
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits, PlanLimits
from airflow_pipelines.engine.storage.batch_store import Verification
from airflow_pipelines.host.state.options import RuntimeOptions
from airflow_pipelines.program.streams import StreamRun


def options_of(stored: dict[str, Any]) -> RuntimeOptions:
    return RuntimeOptions.of(RuntimeConfig.from_stored(stored))


@pytest.mark.parametrize(
    ("config", "storage", "model", "interval"),
    [
        ({}, True, CrashGuarantee.NONE, None),
        ({"storage": False}, False, CrashGuarantee.NONE, None),
        ({"storage": {}, "fault_tolerance": {"model": "none", "checkpoint_interval_secs": 5}}, True, CrashGuarantee.NONE, None),
        ({"fault_tolerance": {"model": "at_least_once"}}, True, CrashGuarantee.AT_LEAST_ONCE, 60.0),
        ({"fault_tolerance": "latest_checkpoint"}, True, CrashGuarantee.EXACTLY_ONCE, 60.0),
        ({"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 0}}, True, CrashGuarantee.EXACTLY_ONCE, 1.0),
        ({"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": None}}, True, CrashGuarantee.EXACTLY_ONCE, None),
        (
            {"fault_tolerance": {"model": "at_least_once", "checkpoint_interval_secs": 9999}},
            True,
            CrashGuarantee.AT_LEAST_ONCE,
            3600.0,
        ),
    ],
)
def test_models_and_intervals(config: dict[str, Any], storage: bool, model: CrashGuarantee, interval: float | None) -> None:
    options = options_of(config)
    assert (options.storage, options.fault_tolerance, options.checkpoint_interval_s) == (storage, model, interval)


def test_prepared_queries_can_be_switched_off() -> None:
    assert options_of({"dev_tweaks": {"prepared_queries": False}}).limits == Limits(plans=PlanLimits(queries=0))
    for config in ({}, {"dev_tweaks": None}, {"dev_tweaks": {"prepared_queries": True}}):
        assert options_of(config).limits == DEFAULT_LIMITS
    with pytest.raises(ValueError, match=r"dev_tweaks.prepared_queries: Input should be a valid boolean"):
        options_of({"dev_tweaks": {"prepared_queries": "off"}})


def test_how_often_batches_are_verified_can_be_set() -> None:
    assert options_of({}).verification is Verification.ONCE
    assert options_of({"dev_tweaks": {"verify_batches": "always"}}).verification is Verification.ALWAYS
    with pytest.raises(ValueError, match=r"dev_tweaks.verify_batches: Input should be 'once', 'always' or 'never'"):
        options_of({"dev_tweaks": {"verify_batches": True}})


def test_sync_is_found_in_the_backend() -> None:
    config = {"storage": {"backend": {"name": "file", "config": {"sync": {"bucket": "b/p", "push_interval": 5}}}}}
    options = options_of(config)
    assert options.sync is not None
    assert (options.sync.bucket, options.sync.push_interval_s) == ("b/p", 5.0)


def test_references_in_the_sync_configuration_have_values() -> None:
    sync = {"bucket": "${env:BUCKET}/p", "secret_key": "${env:KEY}", "start_from_checkpoint": "latest"}
    options = options_of({"env": {"BUCKET": "b", "KEY": "hush"}, "storage": {"backend": {"config": {"sync": sync}}}})
    assert options.sync is not None
    assert (options.sync.bucket, options.sync.secret_key, options.sync.region) == ("b/p", "hush", "us-east-1")


def test_a_reference_without_a_value_is_named() -> None:
    with pytest.raises(ReferenceWithoutValueError, match=r"\$\{env:NOWHERE\} has no value"):
        options_of({"storage": {"backend": {"config": {"sync": {"bucket": "${env:NOWHERE}"}}}}})


@pytest.mark.parametrize(
    ("fault_tolerance", "program_ms", "interval_s"),
    [
        ({}, None, None),
        ({}, 5000, 5.0),
        ({}, 10, 1.0),
        ({"model": "exactly_once"}, 5000, 60.0),
        ({"model": "exactly_once", "checkpoint_interval_secs": 7}, 5000, 7.0),
        ({"model": "exactly_once", "checkpoint_interval_secs": None}, 5000, 5.0),
    ],
)
def test_a_stream_program_says_how_often_checkpoints_are_taken_where_the_configuration_does_not(
    fault_tolerance: dict[str, Any], program_ms: int | None, interval_s: float | None
) -> None:
    options = options_of({"fault_tolerance": fault_tolerance})
    assert options.completed(StreamRun(None, program_ms)).checkpoint_interval_s == interval_s
