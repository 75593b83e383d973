"""The clock of a pipeline that is driven by requests."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from airflow_pipelines.host.routers.common import Runner

router = APIRouter(prefix="/deployments/{deployment_id}")


class Advance(BaseModel):
    """By how many milliseconds the clock moves; None: by one tick."""

    delta_ms: int | None = None


@router.post("/clock/advance")
def advance(runner: Runner, body: Advance | None = None) -> dict[str, Any]:
    """Move the clock; answers when a step has taken the new time."""
    return runner.advance_clock(None if body is None else body.delta_ms)
