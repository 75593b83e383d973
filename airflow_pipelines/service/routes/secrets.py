"""Endpoints of secrets, which are written and deleted here and never answered."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from airflow_pipelines.common.secret_files import OWN, SecretError, SecretFiles
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.parameters import Body


def router(files: SecretFiles) -> APIRouter:
    """Return the endpoints under /v0/secrets."""
    router = APIRouter(prefix="/v0/secrets")

    @router.get("")
    def list_secrets() -> JsonAnswer:
        return JsonAnswer([{"name": name} for name in files.names()])

    @router.put("/{secret_name:path}")
    def write(secret_name: str, body: Body) -> Response:
        value = body.get("value") if isinstance(body, dict) else None
        if not isinstance(value, str) or not value:
            raise errors.invalid_param("The field 'value' must be a string that is not empty")
        _check_is_unowned(secret_name)
        try:
            files.write(secret_name, value)
        except SecretError as error:
            raise errors.invalid_param(str(error)) from error
        return Response(status_code=200)

    @router.delete("/{secret_name:path}")
    def delete(secret_name: str) -> Response:
        _check_is_unowned(secret_name)
        try:
            files.delete(secret_name)
        except SecretError as error:
            raise Problem(ErrorCode.UNKNOWN_SECRET, str(error), {"name": secret_name}) from error
        return Response(status_code=200)

    return router


def _check_is_unowned(name: str) -> None:
    if name == OWN or name.startswith((f"{OWN}/", f"{OWN}:")):
        raise errors.invalid_param(f"Secrets under '{OWN}/' belong to pipelines: change the pipeline's configuration instead")
