"""Getting pipelines, and the plain facts about them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    Pipeline,
    PipelineAPIError,
    PipelineFieldSelector,
    PipelineStatus,
    ProgramStatus,
)
from tests.scripted import FAILED, GET, STOPPED, Scripted, pipeline_of, problem, up


def test_an_unknown_name_is_an_error_of_the_service(service: Scripted) -> None:
    with pytest.raises(PipelineAPIError) as caught:
        Pipeline.get("nobody", service.client)
    assert caught.value.error_code == "UnknownPipelineName"


def test_a_deleted_pipeline_has_the_status_not_found(service: Scripted) -> None:
    pipeline = pipeline_of(service, problem(404, "UnknownPipelineName", "gone"))
    assert pipeline.status() is PipelineStatus.NOT_FOUND
    with pytest.raises(PipelineAPIError):
        pipeline.refresh(PipelineFieldSelector.ALL)


def test_all_pipelines_are_listed(service: Scripted) -> None:
    service.on("GET pipelines", [STOPPED, STOPPED | {"name": "q"}])
    assert [pipeline.name for pipeline in Pipeline.all(service.client)] == ["p", "q"]


def test_a_pipeline_without_a_name_says_how_to_get_one(service: Scripted) -> None:
    with pytest.raises(ValueError, match=r"Pipeline\.get"):
        Pipeline(service.client).status()


def test_a_name_cannot_leave_its_place_in_the_path(service: Scripted) -> None:
    with pytest.raises(PipelineAPIError):
        Pipeline.get("../x?a=b", service.client)
    assert service.requests[0][0] == "GET pipelines/..%2Fx%3Fa%3Db"


def test_plain_facts(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running", bootstrap_policy="reject", deployment_runtime_status="Running"))
    assert pipeline.id() == STOPPED["id"]
    assert pipeline.created_at() == datetime(2026, 5, 8, 12, 0, 0, 1, UTC)
    assert pipeline.bootstrap_policy() is BootstrapPolicy.REJECT
    assert pipeline.deployment_error() == ""
    assert pipeline.program_status() == ProgramStatus.Success
    assert pipeline.tables() == []
    assert repr(pipeline) == "Pipeline('p', client=PipelineClient(app=<ASGI app>))"


def test_the_approval_diff_is_unwrapped_only_while_it_is_awaited(service: Scripted) -> None:
    details = {"approval_diff": {"program_diff": {"added_views": ["v"]}}, "connector_stats": None}
    pipeline = pipeline_of(service, up("AwaitingApproval", deployment_runtime_status_details=details))
    assert pipeline.deployment_runtime_status_details() == details["approval_diff"]
    service.on(GET, up("Running", deployment_runtime_status_details={"connector_stats": {"num_errors": 0}}))
    assert pipeline.deployment_runtime_status_details() == {"connector_stats": {"num_errors": 0}}
    service.on(GET, STOPPED)
    assert pipeline.deployment_runtime_status_details() is None


def test_errors_lists_what_is_wrong(service: Scripted) -> None:
    broken = FAILED | {"program_error": {"sql_compilation": {"exit_code": 1, "messages": []}, "system_error": None}}
    pipeline = pipeline_of(service, broken)
    assert pipeline.errors() == [
        {"sql_compilation": {"exit_code": 1, "messages": []}},
        FAILED["deployment_error"],
    ]
    service.on(GET, STOPPED)
    assert pipeline.errors() == []
