"""The parts that all routers share: they find the runner and the relation of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar
from uuid import UUID

import anyio.to_thread
from fastapi import Depends, Request

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import READ_ONLY_HEADER, Problem
from airflow_pipelines.engine.allowed_changes import NotATableError, changed_table
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.outputs.listeners import Listener
from airflow_pipelines.host.outputs.outputs import OutputEndpoint
from airflow_pipelines.host.runs.fleet import Fleet
from airflow_pipelines.host.runs.runner import PipelineRunner
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.program.names import SYSTEM_VIEW, canonical
from airflow_pipelines.program.relations import Table, ViewKind
from airflow_pipelines.serving.path_segments import segment

T = TypeVar("T")


def _fleet(request: Request) -> Fleet:
    fleet: Fleet = request.app.state.fleet
    return fleet


async def fleet_of(request: Request) -> Fleet:
    """Return the host's fleet. It is asynchronous, because a synchronous dependency would need a thread of its own."""
    return _fleet(request)


def is_read_only(request: Request) -> bool:
    """Return True if the service calls for a client that may not change anything."""
    return READ_ONLY_HEADER in request.headers


def runner_of(request: Request, deployment_id: UUID) -> PipelineRunner:
    """Return the runner of the deployment in the path."""
    return _fleet(request).get(deployment_id)


async def slowly(request: Request, work: Callable[[], T]) -> T:
    """Return the result of ``work``, which may take long. It gets a thread that no quick request waits for."""
    limiter: anyio.CapacityLimiter = request.app.state.slow
    return await anyio.to_thread.run_sync(work, limiter=limiter)


async def wait_for_disconnect(request: Request) -> None:
    """Wait until the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


HostFleet = Annotated[Fleet, Depends(fleet_of)]
Runner = Annotated[PipelineRunner, Depends(runner_of)]


def table_of(live: LivePipeline, name: str) -> Table:
    """Return a table by its name in a URL.

    :raises Problem: if there is no such table
    """
    try:
        return changed_table(live.program, canonical(segment(name)))
    except NotATableError as error:
        known = ", ".join(error.tables) or "none"
        raise Problem(ErrorCode.UNKNOWN_INPUT_STREAM, f"There is no table {name}; tables: {known}.") from error


def listenable(live: LivePipeline, name: str) -> str:
    """Return the canonical name of a view or a table.

    :raises Problem: if there is no such view or table
    """
    relation = canonical(segment(name))
    program = live.program
    view = program.views.get(relation)
    if relation == SYSTEM_VIEW or relation in program.tables or (view is not None and view.kind is not ViewKind.LOCAL):
        return relation
    views = sorted(view.name for view in program.views.values() if view.kind is not ViewKind.LOCAL)
    known = f"views: {', '.join(views) or 'none'}; tables: {', '.join(sorted(program.tables)) or 'none'}"
    raise Problem(ErrorCode.UNKNOWN_OUTPUT_STREAM, f"There is no view or table {name}; {known}.")


def check_contents(live: LivePipeline, relation: str, consequence: str, otherwise: str = "") -> None:
    """Refuse a listenable relation that is not materialized: its changes can be read, but not its rows.

    :param live: the pipeline
    :param relation: its canonical name
    :param consequence: the operation that is not possible with it
    :param otherwise: the alternative to having it materialized
    :raises Problem: if it is not materialized
    """
    view, table = live.program.views.get(relation), live.program.tables.get(relation)
    if view is not None and view.kind is not ViewKind.MATERIALIZED:
        kind, cure = "view", "CREATE MATERIALIZED VIEW"
    elif table is not None and not table.materialized:
        kind, cure = "table", "'materialized' = 'true'"
    else:
        return
    message = f"The {kind} {relation} is not materialized, so {consequence}: declare it with {cure}{otherwise}."
    raise Problem(ErrorCode.INVALID_PARAM, message)


def input_endpoint(live: LivePipeline, table: str, connector: str) -> InputEndpoint:
    """Return an input of a table by its connector name.

    :raises Problem: if there is no such connector
    """
    relation = canonical(segment(table))
    endpoint = live.endpoints.inputs.get(f"{relation}.{segment(connector)}")
    if endpoint is None or endpoint.table != relation:
        known = ", ".join(sorted(e.name for e in live.endpoints.inputs.all if e.table == relation)) or "none"
        raise Problem(ErrorCode.UNKNOWN_INPUT_ENDPOINT, f"The table {table} has no connector {connector}; its connectors: {known}.")
    return endpoint


def output_endpoint(live: LivePipeline, view: str, connector: str) -> OutputEndpoint | Listener:
    """Return an output of a view, or a listener to it, by its connector name.

    :raises Problem: if there is no such connector
    """
    relation = canonical(segment(view))
    of_view = {output.name: output for output in live.endpoints.outputs.all if output.view == relation}
    endpoint = of_view.get(f"{relation}.{segment(connector)}")
    if endpoint is None:
        known = ", ".join(sorted(of_view)) or "none"
        raise Problem(ErrorCode.UNKNOWN_OUTPUT_ENDPOINT, f"The view {view} has no connector {connector}; its connectors: {known}.")
    return endpoint
