"""Ad-hoc queries and changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import Response, StreamingResponse
from pyspark.sql import DataFrame

from airflow_pipelines.compiler.adhoc import AdhocError, AdhocResult, NotYetEvaluatedError, run_adhoc
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import QUERY_FAILED_HEADER, Problem
from airflow_pipelines.engine.spark.failures import spark_complaint
from airflow_pipelines.engine.spark.intervals import shown_in_order
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS, is_out_of_memory
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.host.api.routers.common import Runner, is_read_only, wait_for_disconnect
from airflow_pipelines.host.queries.queries import Query, QueryAnswer
from airflow_pipelines.host.queries.rendering import Format, NotRepresentableError, format_of, make_count_table
from airflow_pipelines.host.queries.result_values import with_unsigned_integers, with_variants_as_json
from airflow_pipelines.host.runs.runner import PipelineRunner
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.rows.changes import TableChanges

router = APIRouter(prefix="/deployments/{deployment_id}")
ReadOnly = Annotated[bool, Depends(is_read_only)]


@router.get("/query")
async def query(request: Request, runner: Runner, sql: str, read_only: ReadOnly, format: str = "text") -> Response:
    """Run ad-hoc SQL. A query reads one step's contents; INSERT and DELETE answer when a step has committed them."""
    return await _respond(request, runner, sql, format, read_only=read_only)


@router.post("/query")
async def long_query(
    request: Request, runner: Runner, sql: Annotated[str, Body(embed=True)], read_only: ReadOnly, format: str = "text"
) -> Response:
    """Run ad-hoc SQL whose text is too long for an address and comes in the body: ``{"sql": ...}``."""
    return await _respond(request, runner, sql, format, read_only=read_only)


class EvaluationFailed(Problem):
    """The error of a query that Spark understands, but that fails while it runs."""


async def _respond(request: Request, runner: PipelineRunner, sql: str, format: str, *, read_only: bool) -> Response:
    wanted = format_of(format)
    live = runner.requests.readable()
    try:
        reply = await runner.queries.run(
            lambda query: _answer(live, sql, query, wanted), lambda: wait_for_disconnect(request), holds=wanted.failure is None
        )
    except EvaluationFailed as failed:
        if wanted.failure is None:
            raise
        headers = {QUERY_FAILED_HEADER: failed.code.value}
        return Response(wanted.failure(failed), media_type=wanted.media_type, headers=headers)
    try:
        if reply.head and read_only:
            raise Problem(ErrorCode.SCOPE_EXCEEDED, "This API key may only read, and INSERT and DELETE change tables.")
        if reply.head:
            await _commit(runner, reply.head)
    except BaseException:
        reply.cancel()
        raise
    return StreamingResponse(_with_failure(reply.parts, wanted), media_type=wanted.media_type)


async def _commit(runner: PipelineRunner, changes: tuple[TableChanges, ...]) -> None:
    """Give changes to the next step, and wait until it has committed them."""
    rows = sum(change.rows.num_rows for change in changes)
    size = sum(change.rows.nbytes for change in changes)
    push = runner.requests.push(list(changes), rows, size, force=False)
    await asyncio.wrap_future(push.committed)


async def _with_failure(parts: AsyncIterator[bytes], wanted: Format) -> AsyncIterator[bytes]:
    """Yield a body that ends with the error that interrupts it, if its format has a place for that; otherwise raise the error."""
    try:
        async for part in parts:
            yield part
    except Problem as problem:
        if wanted.failure is None:
            raise
        yield wanted.failure(problem)


def _answer(live: LivePipeline, sql: str, query: Query, wanted: Format) -> QueryAnswer[tuple[TableChanges, ...]]:
    """Return the changes of a request, and its rows in a format."""
    with _convert_errors(Problem):
        result = run_adhoc(live.circuit, sql, live.clock.now, query.collector.collected)
        if result.frame is not None and result.changes:
            # If the query fails, the changes before it must not be made.
            table = _make_readable(query.collector.collected(result.frame), result.frame)
            return QueryAnswer(result.changes, _render(iter([table]), wanted, Problem))
    return QueryAnswer(result.changes, _stream(result, query, wanted))


def _stream(result: AdhocResult, query: Query, wanted: Format) -> Iterator[bytes]:
    """Yield the result of a request in a format, as it arrives. Until the end, the result keeps the files that are read."""
    frame = result.frame
    if frame is None:
        yield from wanted.render(iter([make_count_table(result.count)]))
        return
    yield from _render((_make_readable(table, frame) for table in stream_tables(frame, query.connection)), wanted, EvaluationFailed)


def _render(tables: Iterator[pa.Table], wanted: Format, failure: type[Problem]) -> Iterator[bytes]:
    with _convert_errors(failure):
        yield from wanted.render(tables)


def _make_readable(table: pa.Table, frame: DataFrame) -> pa.Table:
    """Return a result's rows in types that readers know.

    Intervals and VARIANTs become texts, unsigned integers get unsigned types.
    """
    return with_variants_as_json(shown_in_order(with_unsigned_integers(table, frame.schema), frame.schema))


def _too_large(cause: str) -> Problem:
    """Return the Problem of a request that needs more memory than there is. It has its own status, whatever the format."""
    return Problem(
        ErrorCode.AD_HOC_QUERY_ERROR,
        "The request was ended: it makes a value, or needs rows at once, for which the host has no memory"
        f" ({cause.strip().rstrip('.')}). Make shorter texts and arrays, or ask for fewer rows; or give hosts more memory"
        " (AIRFLOW_PIPELINES_DRIVER_MEMORY).",
    )


@contextmanager
def _convert_errors(kind: type[Problem]) -> Iterator[None]:
    """Convert the errors of a request into problems for the client.

    :param kind: the class of the problems
    """
    try:
        yield
    except NotYetEvaluatedError as error:
        raise kind(ErrorCode.BOOTSTRAP_IN_PROGRESS, str(error)) from error
    except (AdhocError, ProgramErrors, NotRepresentableError) as error:
        raise kind(ErrorCode.AD_HOC_QUERY_ERROR, str(error)) from error
    except MemoryError as error:
        raise _too_large(str(error)) from error
    except SPARK_ERRORS as error:
        if is_out_of_memory(error):
            raise _too_large(spark_complaint(error)) from error
        raise kind(ErrorCode.AD_HOC_QUERY_ERROR, spark_complaint(error)) from error
