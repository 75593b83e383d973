"""The methods of Pipeline are those of the reference; what they do is tested in tests/_pipeline."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from airflow_pipelines import (
    Pipeline,
)
from tests.scripted import Scripted


@pytest.fixture
def service() -> Scripted:
    return Scripted()


REFERENCE = [
    "activate",
    "all",
    "approve",
    "bootstrap_policy",
    "checkpoint",
    "checkpoint_status",
    "checkpoints",
    "clear_storage",
    "commit_transaction",
    "completion_token_status",
    "created_at",
    "delete",
    "deployment_config",
    "deployment_desired_status",
    "deployment_error",
    "deployment_location",
    "deployment_resources_desired_status",
    "deployment_resources_status",
    "deployment_runtime_desired_status",
    "deployment_runtime_status",
    "deployment_runtime_status_details",
    "deployment_status_since",
    "description",
    "dismiss_error",
    "errors",
    "event",
    "events",
    "execute",
    "foreach_chunk",
    "generate_completion_token",
    "get",
    "get_samply_profile",
    "id",
    "input_connector_stats",
    "input_json",
    "input_pandas",
    "is_complete",
    "last_successful_checkpoint_sync",
    "listen",
    "logs",
    "modify",
    "name",
    "output_connector_stats",
    "pause",
    "pause_connector",
    "platform_version",
    "program_code",
    "program_config",
    "program_error",
    "program_info",
    "program_status",
    "program_status_since",
    "program_version",
    "query",
    "query_hash",
    "query_parquet",
    "query_tabular",
    "rebalance",
    "refresh",
    "restart",
    "resume",
    "resume_connector",
    "runtime_config",
    "set_runtime_config",
    "start",
    "start_paused",
    "start_samply_profile",
    "start_standby",
    "start_transaction",
    "stats",
    "status",
    "stop",
    "storage_status",
    "storage_status_details",
    "support_bundle",
    "sync_checkpoint",
    "sync_checkpoint_status",
    "tables",
    "testing_force_update_platform_version",
    "transaction_id",
    "transaction_status",
    "udf_rust",
    "udf_toml",
    "update_runtime",
    "version",
    "views",
    "wait_for_completion",
    "wait_for_idle",
    "wait_for_status",
    "wait_for_token",
]

NOT_AVAILABLE: dict[str, tuple[Any, ...]] = {
    "activate": (),
    "start_standby": (),
    "start_transaction": (),
    "commit_transaction": (),
    "rebalance": (),
    "start_compaction": (),
    "start_samply_profile": (),
    "get_samply_profile": (),
    "support_bundle": (),
    "testing_force_update_platform_version": ("1",),
    "update_runtime": (),
    "metrics": (),
    "query_arrow": ("select 1",),
    "query_arrow_dicts": ("select 1",),
    "remote_checkpoints": (),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_every_method_of_the_reference_exists_and_is_documented(name: str) -> None:
    member = inspect.getattr_static(Pipeline, name)
    member = getattr(member, "__func__", member)
    assert inspect.getdoc(member)


@pytest.mark.parametrize("name", NOT_AVAILABLE)
def test_a_method_outside_this_release_says_so_by_its_name(name: str, service: Scripted) -> None:
    pipeline = Pipeline(service.client)
    with pytest.raises(NotImplementedError, match=rf"^Pipeline\.{name} is not available in this release$"):
        getattr(pipeline, name)(*NOT_AVAILABLE[name])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("start", ["bootstrap_policy", "wait", "timeout_s", "dismiss_error"]),
        ("start_paused", ["bootstrap_policy", "wait", "timeout_s", "dismiss_error"]),
        ("stop", ["force", "wait", "timeout_s"]),
        ("restart", ["bootstrap_policy", "timeout_s", "dismiss_error"]),
        ("input_json", ["table_name", "data", "update_format", "force", "wait", "kwargs"]),
        ("modify", ["sql", "udf_rust", "udf_toml", "program_config", "runtime_config", "description"]),
        ("wait_for_idle", ["idle_interval_s", "timeout_s", "poll_interval_s"]),
        ("clear_storage", ["wait", "timeout_s", "poll_interval_s"]),
        ("wait_for_status", ["expected_status", "timeout"]),
        ("wait_for_completion", ["force_stop", "timeout_s"]),
    ],
)
def test_positional_parameters_are_the_references(name: str, parameters: list[str]) -> None:
    signature = inspect.signature(getattr(Pipeline, name))
    found = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert found[1:] == parameters
