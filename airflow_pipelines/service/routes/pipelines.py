"""Endpoints of pipelines as records: create, read, change, delete, events, logs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.events import event_to_wire
from airflow_pipelines.service.follow import follow_log
from airflow_pipelines.service.log_lines import MOST_LINES, last_lines, lines_after
from airflow_pipelines.service.parameters import Body, Flag
from airflow_pipelines.service.records import Selector, descriptor, edit_answer


def router(control_plane: ControlPlane) -> APIRouter:
    """Return the endpoints under /v0/pipelines."""
    router = APIRouter(prefix="/v0/pipelines")
    _add_records(router, control_plane)
    _add_module(router, control_plane)
    _add_history(router, control_plane)
    return router


def _add_records(router: APIRouter, control_plane: ControlPlane) -> None:
    @router.get("")
    def list_pipelines(selector: Selector = Selector.ALL) -> JsonAnswer:
        return JsonAnswer([descriptor(record, selector) for record in control_plane.pipelines()])

    @router.post("")
    def create(body: Body) -> JsonAnswer:
        return JsonAnswer(edit_answer(control_plane.create(body)), 201)

    @router.get("/{name}")
    def get(name: str, selector: Selector = Selector.ALL) -> JsonAnswer:
        return JsonAnswer(descriptor(control_plane.pipeline(name), selector))

    @router.put("/{name}")
    def put(name: str, body: Body, allow_compile_errors: Flag = True) -> JsonAnswer:
        record, created = control_plane.put(name, body, allow_compile_errors=allow_compile_errors)
        return JsonAnswer(edit_answer(record), 201 if created else 200)

    @router.post("/{name}/validate")
    def validate(name: str, body: Body) -> Response:
        control_plane.check_put(name, body)
        return Response(status_code=200)

    @router.patch("/{name}")
    def patch(name: str, body: Body, allow_compile_errors: Flag = True) -> JsonAnswer:
        return JsonAnswer(edit_answer(control_plane.patch(name, body, allow_compile_errors=allow_compile_errors)))

    @router.delete("/{name}")
    def delete(name: str) -> Response:
        control_plane.delete(name)
        return Response(status_code=200)


def _add_module(router: APIRouter, control_plane: ControlPlane) -> None:
    @router.get("/{name}/udf_python")
    def module(name: str) -> JsonAnswer:
        # The descriptor's keys are the contract's, so that this field of ours has an endpoint of its own.
        return JsonAnswer({"udf_python": control_plane.pipeline(name).udf_python})


def _add_history(router: APIRouter, control_plane: ControlPlane) -> None:
    @router.get("/{name}/deployment")
    def deployment(name: str) -> JsonAnswer:
        record = control_plane.pipeline(name)
        host = None if record.host_id is None else control_plane.registry.get(record.host_id)
        location = None
        if host is not None:
            location = {
                "host_id": str(host.host_id),
                "kind": host.kind,
                "machine": host.machine,
                "pid": host.pid,
                "log": host.log_path,
            }
        return JsonAnswer({"deployment_config": record.deployment_config, "deployment_location": location})

    @router.get("/{name}/logs")
    def logs(name: str, from_end: Flag = False) -> StreamingResponse:
        record = control_plane.pipeline(name)
        lines = follow_log(control_plane, record.id, control_plane.files.log(record), from_end=from_end)
        return StreamingResponse(lines, media_type="text/plain; charset=utf-8")

    @router.get("/{name}/log_lines")
    def log_lines(
        name: str,
        limit: Annotated[int, Query(ge=1, le=MOST_LINES)] = 500,
        after: Annotated[int | None, Query(ge=0)] = None,
    ) -> JsonAnswer:
        path = control_plane.files.log(control_plane.pipeline(name))
        lines = last_lines(path, limit) if after is None else lines_after(path, after, limit)
        return JsonAnswer(lines.to_wire())

    @router.get("/{name}/events")
    def events(name: str, selector: Selector = Selector.STATUS) -> JsonAnswer:
        return JsonAnswer([event_to_wire(event, selector) for event in control_plane.events(name)])

    @router.get("/{name}/events/{event_id}")
    def event(name: str, event_id: str, selector: Selector = Selector.STATUS) -> JsonAnswer:
        history = control_plane.events(name)
        if event_id == "latest":
            if not history:
                raise Problem(ErrorCode.NO_PIPELINE_MONITOR_EVENTS_AVAILABLE, f"Pipeline '{name}' has no events")
            return JsonAnswer(event_to_wire(history[0], selector))
        for each in history:
            if each.event_id == _uuid(event_id):
                return JsonAnswer(event_to_wire(each, selector))
        raise Problem(
            ErrorCode.UNKNOWN_PIPELINE_MONITOR_EVENT, f"Pipeline '{name}' has no event {event_id}; only the newest are kept"
        )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Problem(ErrorCode.INVALID_PARAM, f"'{text}' is no event id: give a UUID or 'latest'") from error
