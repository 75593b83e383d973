"""Connectors: starting, pausing, statistics, completion tokens."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.api.routers.common import Runner, input_endpoint, output_endpoint

router = APIRouter(prefix="/deployments/{deployment_id}")


@router.get("/tables/{table}/connectors/{connector}/completion_token")
def completion_token(runner: Runner, table: str, connector: str) -> dict[str, str]:
    """Return a token for everything that the connector has received so far."""
    return {"token": runner.requests.token(input_endpoint(runner.requests.serving(), table, connector))}


@router.get("/completion_status")
def completion_status(runner: Runner, token: str, checkpoint: bool = False) -> JSONResponse:
    """Return the status of a token's input: processed and delivered or not; with ``checkpoint``, also durable or not."""
    status = runner.requests.completion(token, checkpoint=checkpoint)
    return JSONResponse(status, 200 if status["status"] == "complete" else 202)


@router.get("/tables/{table}/connectors/{connector}/stats")
def input_stats(runner: Runner, table: str, connector: str) -> dict[str, Any]:
    """Return the counters and errors of an input."""
    return input_endpoint(runner.requests.readable(), table, connector).to_wire(errors=True)


@router.get("/views/{view}/connectors/{connector}/stats")
def output_stats(runner: Runner, view: str, connector: str) -> dict[str, Any]:
    """Return the counters and errors of an output."""
    return output_endpoint(runner.requests.readable(), view, connector).to_wire(errors=True)


@router.post("/tables/{table}/connectors/{connector}/{action}")
def control(runner: Runner, table: str, connector: str, action: Literal["start", "pause"]) -> Response:
    """Start or pause a declared input."""
    live = runner.requests.serving()
    endpoint = input_endpoint(live, table, connector)
    if endpoint.transient:
        raise Problem(ErrorCode.INVALID_CONNECTOR_ACTION, f"{endpoint.name} takes rows of requests and cannot be {action}ed.")
    live.endpoints.inputs.set_paused(endpoint.name, action == "pause")
    runner.log.info("connector %s: %s", endpoint.name, "paused" if action == "pause" else "started")
    runner.requests.wake()
    return Response(status_code=200)
