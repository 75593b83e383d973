"""The parameters of routes beyond FastAPI's own types, and the answers to invalid requests in the contract's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.strict_json import StrictJsonError, parse_json
from airflow_pipelines.service import errors


async def json_body(request: Request) -> Any:
    """Return the body as JSON; an empty one is null.

    A body must declare that it is JSON: a page of another site may send other types without asking for permission first.
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


def _parse_flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in {"true", "false"}:
        raise PydanticCustomError("flag", "must be true or false")
    return text == "true"


Flag = Annotated[bool, BeforeValidator(_parse_flag)]
"""A query parameter that is true or false."""


def invalid_request(error: RequestValidationError) -> Problem:
    """Return the error for invalid parameters of a request, in the contract's form.

    :param error: the error that FastAPI found
    """
    return errors.invalid_param("; ".join(_describe_error(item) for item in error.errors()))


def _describe_error(item: Mapping[str, Any]) -> str:
    where, name = item["loc"][0], ".".join(str(part) for part in item["loc"][1:])
    if where != "query":
        return f"Invalid request: {where}.{name}: {item['msg']}"
    if item["type"] == "missing":
        return f"The query parameter '{name}' is missing"
    match item["type"]:
        case "enum":
            wanted = f"must be {item['ctx']['expected']}"
        case "uuid_parsing":
            wanted = "must be a UUID"
        case _:
            wanted = item["msg"]
    return f"The query parameter '{name}' {wanted}, not '{item['input']}'"
