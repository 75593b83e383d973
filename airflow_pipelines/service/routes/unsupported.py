"""The contract's endpoints that this release does not or cannot have; the error of each names it."""

from __future__ import annotations

from fastapi import APIRouter

from airflow_pipelines.service import errors
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.diagnostics import NO_NATIVE_PROFILER

_NATIVE_PROFILES = (("GET", "heap_profile"), ("GET", "samply_profile"), ("POST", "samply_profile"))
_OF_SERVICE = (("POST", "tenants"), ("POST", "oidc_trust"))


def router(control_plane: ControlPlane) -> APIRouter:
    """Return the endpoints under /v0 that answer 501; a pipeline's name is checked first."""
    router = APIRouter(prefix="/v0")
    for method, tail in _NATIVE_PROFILES:
        _refuse_for_pipeline(router, control_plane, method, tail, NO_NATIVE_PROFILER)
    for method, tail in _OF_SERVICE:
        _refuse(router, method, tail)
    return router


def _refuse_for_pipeline(
    router: APIRouter, control_plane: ControlPlane, method: str, tail: str, instead: str | None = None
) -> None:
    def refuse(name: str) -> None:
        control_plane.store.require(name)
        raise errors.not_supported(f"{method} /v0/pipelines/{{name}}/{tail}", instead)

    router.add_api_route(f"/pipelines/{{name}}/{tail}", refuse, methods=[method], name=f"unsupported {tail}")


def _refuse(router: APIRouter, method: str, tail: str) -> None:
    def refuse() -> None:
        raise errors.not_supported(f"{method} /v0/{tail}")

    router.add_api_route(f"/{tail}", refuse, methods=[method], name=f"unsupported {tail}")
