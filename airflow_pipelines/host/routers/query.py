"""Ad-hoc queries and changes."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import StreamingResponse

from airflow_pipelines.compiler.adhoc import AdhocError, AdhocResult, run_adhoc
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.failures import spark_complaint
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.values.intervals import shown_in_order
from airflow_pipelines.host.live import LivePipeline
from airflow_pipelines.host.queries import Query
from airflow_pipelines.host.rendering import FORMATS, check_format, counted
from airflow_pipelines.host.routers.common import Runner, is_read_only
from airflow_pipelines.host.runner import PipelineRunner
from airflow_pipelines.program.messages import ProgramErrors

router = APIRouter(prefix="/deployments/{deployment_id}")
ReadOnly = Annotated[bool, Depends(is_read_only)]


@router.get("/query")
async def query(request: Request, runner: Runner, sql: str, read_only: ReadOnly, format: str = "text") -> StreamingResponse:
    """Run ad-hoc SQL. A query reads one step's contents; INSERT and DELETE answer when a step has committed them."""
    return await _answered(request, runner, sql, format, read_only=read_only)


@router.post("/query")
async def long_query(
    request: Request, runner: Runner, sql: Annotated[str, Body(embed=True)], read_only: ReadOnly, format: str = "text"
) -> StreamingResponse:
    """The same for a long text, which comes in the body: ``{"sql": ...}``."""
    return await _answered(request, runner, sql, format, read_only=read_only)


async def _answered(request: Request, runner: PipelineRunner, sql: str, format: str, *, read_only: bool) -> StreamingResponse:
    check_format(format)
    live = runner.serving()
    result, table = await runner.queries.run(lambda query: _run(live, sql, query), lambda: _left(request))
    if result.changes:
        if read_only:
            raise Problem(ErrorCode.SCOPE_EXCEEDED, "This API key may only read, and INSERT and DELETE change tables.")
        rows = sum(change.rows.num_rows for change in result.changes)
        size = sum(change.rows.nbytes for change in result.changes)
        push = runner.push(list(result.changes), rows, size, force=False)
        await asyncio.wrap_future(push.committed)
    media_type, render = FORMATS[format]
    return StreamingResponse(render(table), media_type=media_type)


def _run(live: LivePipeline, sql: str, query: Query) -> tuple[AdhocResult, Any]:
    """The request's changes, and the table that answers it."""
    collect = query.collector.collected
    try:
        result = run_adhoc(live.circuit, sql, live.clock.now, collect)
        if result.frame is None:
            return result, counted(result.count)
        return result, shown_in_order(collect(result.frame), result.frame.schema)
    except (AdhocError, ProgramErrors) as error:
        raise Problem(ErrorCode.AD_HOC_QUERY_ERROR, str(error)) from error
    except MemoryError as error:
        raise Problem(ErrorCode.AD_HOC_QUERY_ERROR, f"{error}: ask for less.") from error
    except SPARK_ERRORS as error:
        raise Problem(ErrorCode.AD_HOC_QUERY_ERROR, spark_complaint(error)) from error


async def _left(request: Request) -> None:
    """Returns when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
