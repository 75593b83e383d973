"""Endpoints of API keys."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from airflow_pipelines.service import errors
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.api_keys import ApiKey, ApiKeys, KeyScope
from airflow_pipelines.service.edits import check_name
from airflow_pipelines.service.parameters import Body


def router(keys: ApiKeys) -> APIRouter:
    """Return the endpoints under /v0/api_keys."""
    router = APIRouter(prefix="/v0/api_keys")

    @router.get("")
    def list_keys() -> JsonAnswer:
        return JsonAnswer([_to_json(key) for key in keys.all()])

    @router.post("")
    def create(body: Body) -> JsonAnswer:
        fields = body if isinstance(body, dict) else {}
        made, key = keys.create(check_name(fields.get("name")), _parse_scope(fields.get("role", KeyScope.WRITE.value)))
        return JsonAnswer({"id": str(made.id), "name": made.name, "api_key": key}, 201)

    @router.get("/{key_name}")
    def get(key_name: str) -> JsonAnswer:
        return JsonAnswer(_to_json(keys.get(key_name)))

    @router.delete("/{key_name}")
    def delete(key_name: str) -> Response:
        keys.delete(key_name)
        return Response(status_code=200)

    return router


def _parse_scope(role: Any) -> KeyScope:
    try:
        return KeyScope(role)
    except ValueError as error:
        raise errors.invalid_param(f"The field 'role' must be 'read' or 'write', not {role!r}") from error


def _to_json(key: ApiKey) -> dict[str, Any]:
    scopes = ["Read"] if key.scope is KeyScope.READ else ["Read", "Write"]
    return {"id": str(key.id), "name": key.name, "role": key.scope.value, "scopes": scopes}
