"""Reads query parameters and bodies, answering nonsense in the contract's form."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Request

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.strict_json import StrictJsonError, parse_json
from airflow_pipelines.service import errors

E = TypeVar("E", bound=StrEnum)


async def json_body(request: Request) -> Any:
    """The body as JSON; an empty one is null.

    A body must say that it is JSON: a page of another site may send other types without having asked whether it may.
    """
    raw = await request.body()
    if not raw.strip():
        return None
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Problem(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"The body is JSON, not '{given}': send it with 'Content-Type: application/json'"
        )
    try:
        return parse_json(raw)
    except StrictJsonError as error:
        raise errors.invalid_param(f"The body is not the JSON that is wanted: {error}") from error


Body = Annotated[Any, Depends(json_body)]


def flag(request: Request, name: str, default: bool) -> bool:
    """A boolean query parameter."""
    value = request.query_params.get(name)
    if value is None:
        return default
    if value.lower() not in {"true", "false"}:
        raise errors.invalid_param(f"The query parameter '{name}' must be true or false, not '{value}'")
    return value.lower() == "true"


def identifier(request: Request, name: str) -> UUID | None:
    """A query parameter that is a UUID; None when it is left out."""
    value = request.query_params.get(name)
    try:
        return None if value is None else UUID(value)
    except ValueError as error:
        raise errors.invalid_param(f"The query parameter '{name}' must be a UUID, not '{value}'") from error


def choice(request: Request, name: str, kind: type[E], default: E) -> E:
    """A query parameter that is one of an enumeration's values."""
    value = request.query_params.get(name)
    if value is None:
        return default
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(member.value for member in kind)
        raise errors.invalid_param(f"The query parameter '{name}' must be one of {known}, not '{value}'") from error
