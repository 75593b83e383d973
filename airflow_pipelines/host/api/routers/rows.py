"""The ingress of rows."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pyarrow.compute as pc
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from airflow_pipelines.connectors.base import CountedError
from airflow_pipelines.connectors.http import parse_ingress
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.push_keys import IDEMPOTENCY_KEY_HEADER, check_push_key
from airflow_pipelines.engine.allowed_changes import allowed_changes, truncation_problem
from airflow_pipelines.host.api.routers.common import Runner, table_of
from airflow_pipelines.host.inputs.push_keys import kept_key
from airflow_pipelines.host.runs.runner import PipelineRunner
from airflow_pipelines.program.names import canonical
from airflow_pipelines.rows.formats.option_errors import UnknownOptionError
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.serving.bounds import expand_body

router = APIRouter(prefix="/deployments/{deployment_id}")
CLOCK_TABLE = RelationSchema("now", (Column("now", ColumnType("TIMESTAMP", nullable=False)),))
"""The pseudo-table of a clock that is driven by requests."""
_OURS = frozenset({"format", "force", "pipeline_name"})


@router.post("/ingress/{table}")
async def ingress(request: Request, runner: Runner, table: str, format: str = "csv", force: bool = False) -> dict[str, Any]:
    """Take rows, and answer with a completion token. Wait while the pipeline is paused, unless forced.

    Rows whose idempotency key has come before are not taken again, and the answer says so.
    """
    live = runner.requests.serving()
    if canonical(table) == CLOCK_TABLE.name and CLOCK_TABLE.name not in live.program.tables:
        return await run_in_threadpool(_set_clock, runner, format, dict(request.query_params), await request.body())
    relation = table_of(live, table)
    options = {key: value for key, value in request.query_params.items() if key not in _OURS}
    key = _read_key(request, relation.name)
    body = await run_in_threadpool(expand_body, await request.body(), request.headers.get("content-encoding", ""))
    try:
        schema = live.program.schemas[relation.name]
        parsed = await run_in_threadpool(parse_ingress, schema, body, format, options, live.clock.now)
    except UnknownOptionError as error:
        raise Problem(ErrorCode.INVALID_PARAM, str(error)) from error
    identity = json.dumps([format, sorted(options.items())]).encode()
    name = f"{relation.name}.api-ingress-{hashlib.blake2b(identity, digest_size=8).hexdigest()}"
    endpoint = live.endpoints.inputs.get_push_endpoint(name, relation.name)
    errors = [CountedError("parse", error.message, error.index) for error in parsed.errors]
    changes, dropped = parsed.changes, 0
    if changes is not None and changes.truncates and (problem := truncation_problem(live.program, relation)) is not None:
        errors.append(CountedError("parse", f"{problem}; no row behind it was taken"))
        changes, dropped = None, 1
    elif changes is not None:
        changes, refused = allowed_changes(changes, relation)
        dropped = sum(part.count for part in refused)
        errors += [CountedError("parse", part.reason) for part in refused]
    num_errors = parsed.num_errors + dropped
    push = None
    if changes is not None:
        push = runner.requests.push([changes], parsed.records - dropped, len(body), force=force, endpoint=endpoint, key=key)
    repeats = push is not None and push.repeats
    if num_errors and not repeats:
        endpoint.metrics.parse_errors.extend(errors, num_errors)
        runner.requests.wake()
    if push is not None:
        accepted = asyncio.wrap_future(push.accepted)
        # A client that sends rows again must not cancel the first push, which is still in progress.
        await (asyncio.shield(accepted) if repeats else accepted)
    if num_errors:
        listed = "\n".join(error.message for error in errors)
        details = {"num_errors": num_errors, "errors": [{"index": error.index, "message": error.message} for error in errors]}
        raise Problem(ErrorCode.PARSE_ERRORS, f"Errors parsing input data ({num_errors} errors):\n{listed}", details)
    token: dict[str, Any] = {"token": runner.requests.token(endpoint)}
    return token if key is None else {**token, "already_there": repeats}


def _read_key(request: Request, table: str) -> str | None:
    """Return the stored form of a request's idempotency key, or None if it has none.

    :raises Problem: if the key is not valid
    """
    given = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if given is None:
        return None
    try:
        return kept_key(table, check_push_key(given))
    except ValueError as error:
        raise Problem(ErrorCode.INVALID_PARAM, f"The header Idempotency-Key: {error}") from error


def _set_clock(runner: PipelineRunner, format_name: str, query: dict[str, str], body: bytes) -> dict[str, str]:
    """Move a clock that is driven by requests to the latest time among the rows of its pseudo-table."""
    try:
        options = {key: value for key, value in query.items() if key not in _OURS}
        parsed = parse_ingress(CLOCK_TABLE, body, format_name, options)
    except UnknownOptionError as error:
        raise Problem(ErrorCode.INVALID_PARAM, str(error)) from error
    if parsed.changes is None or not parsed.changes.rows.num_rows or parsed.num_errors:
        listed = "; ".join(error.message for error in parsed.errors) or "there is none"
        raise Problem(
            ErrorCode.PARSE_ERRORS, f"A row of {CLOCK_TABLE.name} is a time, such as {{'now': '2026-01-01 00:00:00'}}: {listed}"
        )
    times = parsed.changes.rows[CLOCK_TABLE.columns[0].name]
    runner.requests.set_clock(pc.max(times).value)
    # The clock has moved once this answers. The token is for an input that has received nothing, so it is complete.
    return {
        "token": runner.requests.token(
            runner.requests.serving().endpoints.inputs.get_push_endpoint(f"{CLOCK_TABLE.name}.api-ingress", CLOCK_TABLE.name)
        )
    }
