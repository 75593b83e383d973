"""Endpoints that move a pipeline from state to state."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from airflow_pipelines.contract.enums import BootstrapPolicy
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.program_versions import ProgramChange, expected_change
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service import errors
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.lifecycle.requests import BootstrapFlags, Initial, RuntimeAction, StartRequest
from airflow_pipelines.service.parameters import Body, Flag
from airflow_pipelines.service.program_changes import ProgramChanges
from airflow_pipelines.service.records import edit_answer

InitialName = Annotated[str, Query(json_schema_extra={"enum": [each.value for each in Initial]})]
"""The initial status of a pipeline. The contract has an error code of its own for other texts."""
ActiveName = Annotated[str, Query(json_schema_extra={"enum": ["Running", "Paused"]})]
"""The status of a pipeline after standby. The contract has an error code of its own for other texts."""


def router(control_plane: ControlPlane) -> APIRouter:
    """Return the POST endpoints under /v0/pipelines/{name}."""
    router = APIRouter(prefix="/v0/pipelines/{name}")
    _add_moves(router, control_plane)
    _add_repairs(router, control_plane)
    _add_comparisons(router, ProgramChanges(control_plane))
    return router


def _add_moves(router: APIRouter, control_plane: ControlPlane) -> None:
    @router.post("/start")
    def start(
        name: str,
        initial: InitialName = Initial.RUNNING.value,
        bootstrap_policy: BootstrapPolicy = BootstrapPolicy.AWAIT_APPROVAL,
        silent_bootstrap: Flag = False,
        concurrent_bootstrap: Flag = False,
        dismiss_error: Flag = True,
        from_checkpoint: UUID | None = None,
    ) -> JsonAnswer:
        request = StartRequest(
            initial=_parse_initial(initial),
            policy=bootstrap_policy,
            flags=BootstrapFlags(silent=silent_bootstrap, concurrent=concurrent_bootstrap),
            dismiss_error=dismiss_error,
            deployer=control_plane.deployers.default,
            from_checkpoint=from_checkpoint,
        )
        control_plane.start(name, request)
        return JsonAnswer("Pipeline is starting", 202)

    @router.post("/stop")
    def stop(name: str, force: Flag = False) -> JsonAnswer:
        control_plane.stop(name, force=force)
        return JsonAnswer("Pipeline is stopping", 202)

    @router.post("/pause")
    def pause(name: str) -> JsonAnswer:
        control_plane.move(name, RuntimeAction.PAUSE)
        return JsonAnswer("Pipeline is pausing", 202)

    @router.post("/resume")
    def resume(name: str) -> JsonAnswer:
        control_plane.move(name, RuntimeAction.RESUME)
        return JsonAnswer("Pipeline is resuming", 202)

    @router.post("/activate")
    def activate(name: str, initial: ActiveName = "Running") -> JsonAnswer:
        if initial.lower() not in {"running", "paused"}:
            raise Problem(ErrorCode.INVALID_ACTIVATE_STATUS, f"A pipeline is activated to Running or Paused, not '{initial}'")
        control_plane.activate(name, RuntimeStatus(initial.capitalize()))
        return JsonAnswer("Pipeline is activating", 202)

    @router.post("/approve")
    def approve(name: str, body: Body, silent_bootstrap: Flag = False, concurrent_bootstrap: Flag = False) -> JsonAnswer:
        flags = BootstrapFlags(silent=silent_bootstrap, concurrent=concurrent_bootstrap)
        flags.check()
        control_plane.approve(name, flags, _parse_expected_change(body))
        return JsonAnswer("Pipeline change approved")


def _add_repairs(router: APIRouter, control_plane: ControlPlane) -> None:
    @router.post("/clear")
    def clear(name: str) -> JsonAnswer:
        control_plane.clear(name)
        return JsonAnswer("Pipeline storage is being cleared", 202)

    @router.post("/dismiss_error")
    def dismiss_error(name: str) -> Response:
        control_plane.dismiss_error(name)
        return Response(status_code=200)

    @router.post("/update_runtime")
    def update_runtime(name: str) -> JsonAnswer:
        return JsonAnswer(edit_answer(control_plane.update_runtime(name)))

    @router.post("/testing")
    def testing(name: str, set_platform_version: str | None = None) -> Response:
        control_plane.check_testing(name)
        if set_platform_version is not None:
            control_plane.pretend_platform_version(name, set_platform_version)
        return Response(status_code=200)

    @router.post("/rebalance")
    def rebalance(name: str) -> JsonAnswer:
        # Spark decides where partitions are anew at every step, so there is nothing to balance.
        control_plane.target(name)
        return JsonAnswer("Nothing to rebalance")


def _add_comparisons(router: APIRouter, changes: ProgramChanges) -> None:
    @router.post("/diff")
    def diff(name: str, body: Body) -> JsonAnswer:
        return JsonAnswer(changes.diff(name, body))

    @router.post("/plan")
    def plan(name: str, body: Body) -> JsonAnswer:
        return JsonAnswer(changes.plan(name, body))


def _parse_expected_change(body: Any) -> ProgramChange | None:
    """Return the programs that an approval expects.

    It expects none if there is no body, or the JSON text null, which clients send for none.
    """
    if body is None:
        return None
    if not isinstance(body, dict) or body.keys() != {"programs"}:
        raise errors.invalid_param(
            'The body of an approval is {"programs": ...} with what the waiting pipeline shows under that name, or nothing at all'
        )
    return expected_change(body["programs"])


def _parse_initial(value: str) -> Initial:
    try:
        return Initial(value.lower())
    except ValueError as error:
        raise Problem(
            ErrorCode.UNSUPPORTED_PIPELINE_ACTION, f"A pipeline starts as running, paused or standby, not '{value}'"
        ) from error
