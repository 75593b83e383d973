"""Rows in and out: ingress and egress."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from airflow_pipelines.connectors.base import ConnectorError, UnknownOptionError
from airflow_pipelines.connectors.http import parse_ingress
from airflow_pipelines.host.inputs import NO_UPDATES, without_updates
from airflow_pipelines.host.listeners import Listener, Listeners
from airflow_pipelines.host.problems import Problem
from airflow_pipelines.host.routers.common import Runner, listenable, table_of

router = APIRouter(prefix="/deployments/{deployment_id}")
_OURS = frozenset({"format", "force", "pipeline_name"})


@router.post("/ingress/{table}")
async def ingress(request: Request, runner: Runner, table: str, format: str = "csv", force: bool = False) -> dict[str, str]:
    """Take rows; answers with a completion token. Waits while the pipeline is paused, unless forced."""
    live = runner.serving()
    relation = table_of(live, table)
    options = {key: value for key, value in request.query_params.items() if key not in _OURS}
    body = await request.body()
    try:
        parsed = await run_in_threadpool(parse_ingress, live.compiled.schemas[relation.name], body, format, options)
    except UnknownOptionError as error:
        raise Problem(400, "InvalidParam", str(error)) from error
    identity = json.dumps([format, sorted(options.items())]).encode()
    name = f"{relation.name}.api-ingress-{hashlib.blake2b(identity, digest_size=8).hexdigest()}"
    endpoint = live.endpoints.pushed(name, relation.name)
    errors = [ConnectorError("parse", error.message, error.index) for error in parsed.errors]
    changes, dropped = parsed.changes, 0
    if changes is not None and relation.primary_key is None:
        changes, dropped = without_updates(changes)
        errors += [ConnectorError("parse", NO_UPDATES)] * min(dropped, 1)
    num_errors = parsed.num_errors + dropped
    endpoint.figures.parse_errors.extend(errors, num_errors)
    if changes is not None:
        push = runner.push([changes], parsed.records - dropped, len(body), force=force, endpoint=endpoint)
        await asyncio.wrap_future(push.accepted)
    if num_errors:
        listed = "\n".join(error.message for error in errors)
        details = {"num_errors": num_errors, "errors": [{"index": error.index, "message": error.message} for error in errors]}
        raise Problem(400, "ParseErrors", f"Errors parsing input data ({num_errors} errors):\n{listed}", details)
    return {"token": runner.token(endpoint)}


@router.post("/egress/{view}")
async def egress(
    request: Request,
    runner: Runner,
    view: str,
    format: str = "json",
    backpressure: bool = False,
    send_snapshot: bool = False,
) -> StreamingResponse:
    """Stream a view's changes until the pipeline stops or the client leaves."""
    live = runner.serving()
    relation = listenable(live, view)
    config = await _config(request)
    if config is not None:
        format = config.get("format", {}).get("name", format)
    if format not in {"json", "csv"}:
        raise Problem(400, "InvalidParam", f"Format {format!r} cannot be sent; known formats: csv, json.")
    if live.endpoints.listeners.count >= Listeners.MAX:
        raise Problem(429, "ApiConnectionLimit", f"The pipeline has {Listeners.MAX} listeners already; close one first.")
    listener = Listener(relation, format, backpressure, asyncio.get_running_loop())
    await run_in_threadpool(runner.listen, listener, send_snapshot=send_snapshot)

    async def body() -> Any:
        try:
            async for chunk in listener.stream():
                yield chunk
        finally:
            live.endpoints.listeners.remove(listener)

    return StreamingResponse(body(), media_type="application/json")


async def _config(request: Request) -> dict[str, Any] | None:
    content = await request.body()
    if not content:
        return None
    try:
        config = json.loads(content)
    except ValueError as error:
        raise Problem(400, "InvalidParam", f"The body is not JSON: {error}") from error
    return config if isinstance(config, dict) else None
