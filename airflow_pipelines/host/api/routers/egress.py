"""The egress of rows: streams of a view's changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from airflow_pipelines.connectors.indexes import key_columns
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.strict_json import StrictJsonError, parse_json
from airflow_pipelines.contract.validation import mistakes
from airflow_pipelines.host.api.routers.common import Runner, check_contents, listenable
from airflow_pipelines.host.outputs.listeners import Listener, Listeners
from airflow_pipelines.rows.formats.flavors import JsonFlavor
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError

router = APIRouter(prefix="/deployments/{deployment_id}")
_EXAMPLE: Final = '{"format": {"name": "json", "config": {"array": true}}, "send_snapshot": true}'


@dataclass(frozen=True, slots=True)
class EgressOptions:
    """The options of a stream.

    :param format: ``json`` or ``csv``
    :param backpressure: True if the pipeline waits for a slow reader
    :param send_snapshot: True if the relation's contents come first
    :param json: the update format and flavor of JSON
    :param index: the index that tells updates from deletes and inserts
    """

    format: str
    backpressure: bool
    send_snapshot: bool
    json: JsonOptions
    index: str | None = None


_UpdateFormat = Literal["insert_delete", "weighted", "debezium", "snowflake"]


class _FormatConfig(BaseModel):
    array: bool = False
    update_format: _UpdateFormat = "insert_delete"
    json_flavor: JsonFlavor | None = None

    @property
    def as_json(self) -> JsonOptions:
        """The options of the JSON format."""
        return JsonOptions.model_validate({**self.model_dump(exclude_none=True), "array": True})


class _Format(BaseModel):
    name: Literal["json", "csv"] = "json"
    config: _FormatConfig = _FormatConfig()


class _TransportConfig(BaseModel):
    backpressure: bool = False


class _Transport(BaseModel):
    config: _TransportConfig = _TransportConfig()


class _Connector(BaseModel):
    """A request body in the form of a connector's declaration. Other fields have no effect on a stream."""

    transport: _Transport = _Transport()
    format: _Format = _Format()
    send_snapshot: bool = False
    index: str | None = None


@router.post("/egress/{view}")
async def egress(
    request: Request,
    runner: Runner,
    view: str,
    format: str = "json",
    backpressure: bool = False,
    send_snapshot: bool = False,
    update_format: _UpdateFormat = "insert_delete",
    json_flavor: JsonFlavor | None = None,
) -> StreamingResponse:
    """Stream the changes of a view or table until the pipeline stops or the client leaves.

    The options are in the address or in the body. Chunks of JSON are arrays, whatever ``array`` in the address says.
    """
    live = runner.requests.serving()
    relation = listenable(live, view)
    known = {"format", "array", "backpressure", "send_snapshot", "update_format", "json_flavor"}
    config = _FormatConfig(update_format=update_format, json_flavor=json_flavor)
    in_address = EgressOptions(format, backpressure, send_snapshot, config.as_json)
    options = _parse_options(await request.body(), known & request.query_params.keys()) or in_address
    if options.format not in {"json", "csv"}:
        raise Problem(ErrorCode.INVALID_PARAM, f"Format {options.format!r} cannot be sent; known formats: csv, json.")
    if options.send_snapshot:
        check_contents(live, relation, "there is no snapshot of it", ", or leave out send_snapshot")
    try:
        key = key_columns(options.index, relation, live.program.indexes)
    except InvalidOptionError as error:
        raise Problem(ErrorCode.INVALID_PARAM, f"{error}.") from error
    if live.endpoints.outputs.listeners.count >= Listeners.MAX:
        raise Problem(ErrorCode.API_CONNECTION_LIMIT, f"The pipeline has {Listeners.MAX} listeners already; close one first.")
    listener = Listener(
        relation,
        options.format,
        options.backpressure,
        asyncio.get_running_loop(),
        send_snapshot=options.send_snapshot,
        json=options.json,
        key=key,
    )
    await run_in_threadpool(runner.requests.listen, listener, send_snapshot=options.send_snapshot)

    async def body() -> AsyncIterator[bytes]:
        try:
            async for chunk in listener.stream():
                yield chunk
        finally:
            live.endpoints.outputs.listeners.remove(listener)

    return StreamingResponse(body(), media_type="application/json")


def _parse_options(body: bytes, in_address: set[str]) -> EgressOptions | None:
    """Return the options in a body, or None if it has none.

    :param body: JSON; clients send the text ``null`` for no options
    :param in_address: the options that the address has
    """
    try:
        given = parse_json(body) if body.strip() else None
    except StrictJsonError as error:
        raise Problem(ErrorCode.INVALID_PARAM, f"The body is not JSON: {error}") from error
    if given is None:
        return None
    if in_address:
        raise Problem(
            ErrorCode.INVALID_PARAM,
            f"The options are in the body or in the address, not in both: leave out {', '.join(sorted(in_address))}.",
        )
    try:
        connector = _Connector.model_validate(given)
    except ValidationError as error:
        # For a body that is not an object, pydantic's message would name the class.
        wrong = "; ".join(each.text for each in mistakes(_Connector, error)) if isinstance(given, dict) else "it is no object"
        raise Problem(ErrorCode.INVALID_PARAM, f"The body is like a connector, such as {_EXAMPLE}: {wrong}.") from error
    if connector.format.name == "json" and not connector.format.config.array:
        raise Problem(ErrorCode.INVALID_PARAM, f"Chunks of JSON are arrays: the format's config must say so, as in {_EXAMPLE}.")
    json = connector.format.config.as_json
    backpressure = connector.transport.config.backpressure
    return EgressOptions(connector.format.name, backpressure, connector.send_snapshot, json, connector.index)
