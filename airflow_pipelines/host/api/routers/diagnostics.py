"""Diagnostics of a pipeline: time series, profiles, the dataflow graph."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.responses import Response, StreamingResponse

from airflow_pipelines.host.api.routers.common import HostFleet, Runner, runner_of
from airflow_pipelines.host.metrics.profile import zip_profile

router = APIRouter(prefix="/deployments/{deployment_id}")
of_all = APIRouter()
"""The routes that concern all deployments at once."""


@router.get("/activity")
def activity(runner: Runner, since: int = 0) -> dict[str, Any]:
    """Return the rows per second of connectors and relations, and the time of views, in the last minutes."""
    runner.requests.serving()
    return runner.requests.activity.to_wire(since)


@router.get("/time_series")
def time_series(runner: Runner) -> dict[str, Any]:
    """Return the samples of the last minute, oldest first."""
    runner.requests.serving()
    return runner.requests.series.to_wire()


@router.get("/time_series_stream")
def time_series_stream(runner: Runner) -> StreamingResponse:
    """Stream the samples of the last minute, then each new one, until the pipeline stops."""
    runner.requests.serving()

    async def lines() -> AsyncIterator[bytes]:
        async for sample in runner.requests.series.stream(lambda: runner.requests.is_serving):
            yield json.dumps(sample).encode() + b"\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


@of_all.get("/figures")
def figures(fleet: HostFleet) -> dict[str, Any]:
    """Return the list's figures of each deployment that can be read now, by its id."""
    return fleet.figures()


@router.get("/spark_application", dependencies=[Depends(runner_of)])
def spark_application(fleet: HostFleet) -> dict[str, Any]:
    """Return the Spark application that the pipeline runs in, and the address of its own web page."""
    return fleet.application()


@router.get("/circuit_json_profile")
def circuit_json_profile(runner: Runner) -> dict[str, Any]:
    """Return the costs of the newest steps, operator by operator, and the physical plans of their queries."""
    return runner.requests.profile()


@router.get("/circuit_profile")
def circuit_profile(runner: Runner) -> Response:
    """Return the profile as a ZIP file, with the dataflow graph."""
    content = zip_profile(runner.requests.profile(), runner.requests.dataflow())
    return Response(content, media_type="application/octet-stream")
