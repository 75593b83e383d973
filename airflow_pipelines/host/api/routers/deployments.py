"""Health, compilation, and the lifecycle of deployments."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, BackgroundTasks, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.exposition import exposition, metrics_to_wire
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.program_versions import expected_change
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.engine.dataflow import dataflow, dataflow_overview
from airflow_pipelines.host.api.routers.common import HostFleet, Runner, slowly
from airflow_pipelines.host.changes.bootstrap import BootstrapMode
from airflow_pipelines.host.metrics.monitoring import measure
from airflow_pipelines.program.sources import ProgramSource

router = APIRouter()


class CompileRequest(BaseModel):
    """A program to compile: the fields of its source."""

    program_code: str
    udf_python: str = ""
    stream_files: dict[str, str] = Field(default_factory=dict)
    stream_arguments: list[str] = Field(default_factory=list)
    ir: bool = False
    """True if the dataflow graph is to include the stages of all views."""

    @property
    def source(self) -> ProgramSource:
        """The program's source."""
        return ProgramSource.from_wire(self.model_dump())


class ApprovalRequest(BaseModel):
    """The programs that an approval expects to approve: a ProgramChange in JSON form."""

    programs: Any


@router.get("/health")
async def health(fleet: HostFleet) -> dict[str, Any]:
    """Return the health of the host and its deployments. It waits for no thread that other requests might hold."""
    return {"status": "healthy", "deployments": [str(deployment_id) for deployment_id in fleet.deployments]}


@router.post("/shutdown", status_code=202)
def shutdown(request: Request, background: BackgroundTasks) -> str:
    """End the process. A shared host refuses while a pipeline runs on it."""
    if not request.app.state.may_shut_down():
        raise Problem(ErrorCode.HOST_IN_USE, "Pipelines run on this shared host; stop them first.")
    background.add_task(request.app.state.shut_down)
    return "The host is shutting down"


@router.post("/compile")
async def compile_program(request: Request, fleet: HostFleet, body: CompileRequest) -> dict[str, Any]:
    """Compile a program without running it."""
    program = await slowly(request, lambda: fleet.compile(body.source))
    info = program.info.to_wire()
    info["dataflow"] = dataflow(program, body.program_code) if body.ir else dataflow_overview(program)
    return {"program_info": info, "messages": [warning.to_wire() for warning in program.warnings]}


@router.post("/deployments", status_code=202)
async def deploy(request: Request, fleet: HostFleet, deployment: Deployment) -> dict[str, str]:
    """Start a deployment; its progress is in the registry's transitions."""
    await slowly(request, lambda: fleet.deploy(deployment))
    return {"deployment_id": str(deployment.deployment_id)}


@router.delete("/deployments/{deployment_id}")
async def take_down(request: Request, fleet: HostFleet, deployment_id: UUID) -> None:
    """End a deployment now, without a checkpoint."""
    await slowly(request, lambda: fleet.take_down(deployment_id))


@router.post("/deployments/{deployment_id}/pause", status_code=202)
def pause(runner: Runner) -> str:
    """Stop taking inputs after the step in progress."""
    runner.pause()
    return "Pipeline is pausing"


@router.post("/deployments/{deployment_id}/resume", status_code=202)
def resume(runner: Runner) -> str:
    """Take inputs again."""
    runner.resume()
    return "Pipeline is resuming"


@router.post("/deployments/{deployment_id}/activate", status_code=202)
def activate(runner: Runner, initial: Literal[RuntimeStatus.RUNNING, RuntimeStatus.PAUSED] = RuntimeStatus.RUNNING) -> str:
    """Leave standby: pull once more, and go on from the newest checkpoint."""
    runner.activate(initial)
    return "Pipeline is activating"


@router.post("/deployments/{deployment_id}/approve")
async def approve(
    request: Request,
    runner: Runner,
    body: ApprovalRequest | None = None,
    silent_bootstrap: bool = False,
    concurrent_bootstrap: bool = False,
) -> dict[str, bool]:
    """Let a deployment that awaits approval go on. Answer when it has left that state."""
    expected = None if body is None else expected_change(body.programs)
    mode = BootstrapMode.of(silent=silent_bootstrap, concurrent=concurrent_bootstrap)
    return {"approved": await slowly(request, lambda: runner.approval.approve(mode, expected))}


@router.post("/deployments/{deployment_id}/suspend", status_code=202)
def suspend(runner: Runner) -> str:
    """Checkpoint, then end the deployment."""
    runner.suspend()
    return "Pipeline is suspending"


@router.post("/deployments/{deployment_id}/start_compaction")
def start_compaction(runner: Runner) -> str:
    """Merge the batches of all traces when the step in progress is over."""
    runner.requests.start_compaction()
    return "Compaction started"


@router.get("/deployments/{deployment_id}/stats")
def stats(runner: Runner, include_connector_errors: bool = False) -> dict[str, Any]:
    """Return the counters of the pipeline and its connectors."""
    return runner.requests.stats(errors=include_connector_errors)


@router.get("/deployments/{deployment_id}/metrics")
def metrics(runner: Runner, format: str = "prometheus") -> Response:
    """Return the counters in the format of a monitoring system."""
    measured = measure(runner.requests.stats(), runner.deployment.pipeline_name, runner.requests.memory_limit)
    if format == "json":
        return JSONResponse(metrics_to_wire(measured))
    if format == "prometheus":
        return PlainTextResponse(exposition(measured))
    raise Problem(ErrorCode.INVALID_PARAM, f"Unknown metrics format {format!r}; known formats: prometheus, json.")


@router.get("/deployments/{deployment_id}/steps")
def steps(runner: Runner) -> list[dict[str, Any]]:
    """Return figures of the newest steps, oldest first."""
    return runner.requests.recent_steps()
