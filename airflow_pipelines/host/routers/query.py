"""Ad-hoc queries and changes."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from fastapi.responses import StreamingResponse
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from starlette.concurrency import run_in_threadpool

from airflow_pipelines.engine.adhoc import AdhocError, AdhocResult, run_adhoc
from airflow_pipelines.engine.arrow import collected
from airflow_pipelines.engine.failures import spark_complaint
from airflow_pipelines.engine.intervals import shown_in_order
from airflow_pipelines.host.live import LivePipeline
from airflow_pipelines.host.problems import Problem
from airflow_pipelines.host.rendering import FORMATS, check_format, counted
from airflow_pipelines.host.routers.common import Runner, is_read_only
from airflow_pipelines.host.runner import PipelineRunner
from airflow_pipelines.sql.errors import ProgramErrors

router = APIRouter(prefix="/deployments/{deployment_id}")
ReadOnly = Annotated[bool, Depends(is_read_only)]


@router.get("/query")
async def query(runner: Runner, sql: str, read_only: ReadOnly, format: str = "text") -> StreamingResponse:
    """Run ad-hoc SQL. A query reads one step's contents; INSERT and DELETE answer when a step has committed them."""
    return await _answered(runner, sql, format, read_only=read_only)


@router.post("/query")
async def long_query(
    runner: Runner, sql: Annotated[str, Body(embed=True)], read_only: ReadOnly, format: str = "text"
) -> StreamingResponse:
    """The same for a long text, which comes in the body: ``{"sql": ...}``."""
    return await _answered(runner, sql, format, read_only=read_only)


async def _answered(runner: PipelineRunner, sql: str, format: str, *, read_only: bool) -> StreamingResponse:
    check_format(format)
    live = runner.serving()
    result = await run_in_threadpool(_run, live, sql)
    if result.changes:
        if read_only:
            raise Problem(403, "ScopeExceeded", "This API key may only read, and INSERT and DELETE change tables.")
        rows = sum(change.rows.num_rows for change in result.changes)
        size = sum(change.rows.nbytes for change in result.changes)
        push = runner.push(list(result.changes), rows, size, force=False)
        await asyncio.wrap_future(push.committed)
    table = await run_in_threadpool(_collect, result)
    media_type, render = FORMATS[format]
    return StreamingResponse(render(table), media_type=media_type)


def _run(live: LivePipeline, sql: str) -> AdhocResult:
    try:
        return run_adhoc(live.circuit, sql, live.clock.now)
    except (AdhocError, ProgramErrors) as error:
        raise Problem(400, "AdHocQueryError", str(error)) from error
    except (PySparkException, Py4JJavaError) as error:
        raise Problem(400, "AdHocQueryError", spark_complaint(error)) from error


def _collect(result: AdhocResult) -> Any:
    if result.frame is None:
        return counted(result.count)
    try:
        return shown_in_order(collected(result.frame), result.frame.schema)
    except (PySparkException, Py4JJavaError) as error:
        raise Problem(400, "AdHocQueryError", spark_complaint(error)) from error
