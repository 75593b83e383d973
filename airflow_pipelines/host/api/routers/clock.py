"""The clock of a pipeline that is driven by requests."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.strict_json import StrictJsonError, parse_json
from airflow_pipelines.host.api.routers.common import Runner

router = APIRouter(prefix="/deployments/{deployment_id}")


@router.post("/clock/advance")
async def advance(request: Request, runner: Runner) -> dict[str, Any]:
    """Move the clock by ``delta_ms`` of the body, or by one tick without it. Answer when a step has taken the new time."""
    delta_ms = _parse_delta_ms(await request.body())
    return await run_in_threadpool(runner.requests.advance_clock, delta_ms)


def _parse_delta_ms(body: bytes) -> int | None:
    try:
        wanted = parse_json(body) if body.strip() else None
    except StrictJsonError as error:
        raise Problem(ErrorCode.INVALID_PARAM, f"The body is not JSON: {error}") from error
    delta = wanted.get("delta_ms") if isinstance(wanted, dict) else wanted
    if delta is None:
        return None
    if isinstance(delta, bool) or not isinstance(delta, int):
        raise Problem(
            ErrorCode.INVALID_PARAM,
            f'The body is {{"delta_ms": <milliseconds or null>}}, not {body[:100].decode(errors="replace")}',
        )
    return delta
