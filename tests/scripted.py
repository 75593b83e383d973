"""A service that gives prepared answers: for what a real one does too rarely, or too slowly, to be waited for in a test."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline

STOPPED: dict[str, Any] = {
    "id": "0190b0c0-0000-7000-8000-000000000000",
    "name": "p",
    "description": "d",
    "tags": [],
    "created_at": "2026-05-08T12:00:00.000001Z",
    "version": 1,
    "platform_version": "0.1.0",
    "program_version": 1,
    "program_status": "Success",
    "program_status_since": "2026-05-08T12:00:00.000001Z",
    "deployment_status": "Stopped",
    "deployment_status_since": "2026-05-08T12:00:00.000001Z",
    "deployment_desired_status": "Stopped",
    "deployment_error": None,
    "deployment_runtime_status": None,
    "deployment_runtime_desired_status": None,
    "deployment_runtime_status_details": None,
    "deployment_resources_status": "Stopped",
    "deployment_resources_desired_status": "Stopped",
    "storage_status": "Cleared",
    "storage_status_details": None,
    "bootstrap_policy": None,
    "program_info": None,
    "program_error": None,
    "runtime_config": {},
    "program_config": {},
    "program_code": "",
    "udf_rust": "",
    "udf_toml": "",
}
"""A descriptor of a stopped pipeline ``p``."""

FAILED = STOPPED | {
    "deployment_error": {"message": "division by zero in view v", "error_code": "RuntimeError.WorkerPanic", "details": {}}
}

SQL_ERROR = {
    "sql_compilation": {
        "exit_code": 1,
        "messages": [
            {
                "start_line_number": 5,
                "start_column": 32,
                "end_line_number": 5,
                "end_column": 35,
                "warning": False,
                "error_type": "Compilation error",
                "message": "Object 'blah' not found",
                "snippet": "    4|create view v as\n    5|select * from blah\n                    ^^^^",
            }
        ],
    },
    "rust_compilation": None,
    "system_error": None,
}
"""What the compiler says of a program."""


def up(status: str, **others: Any) -> dict[str, Any]:
    """A descriptor of a pipeline that has a host."""
    return STOPPED | {"deployment_status": status, "deployment_desired_status": "Running", "program_version": 1} | others


class Scripted:
    """An ASGI app. ``answers`` maps "METHOD /path" to a list of answers; the last one is repeated.

    An answer is a JSON value (200), bytes (200, binary), or a tuple of a status and a JSON value.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.client = PipelineClient(app=self)

    def on(self, call: str, *answers: Any) -> Scripted:
        """Prepare the answers to one call."""
        self.answers[call] = list(answers)
        return self

    def asked(self, call: str) -> list[tuple[dict[str, str], Any]]:
        """The parameters and bodies of the requests of one call."""
        return [(params, body) for found, params, body in self.requests if found == call]

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        body = (await receive())["body"]
        params = dict(part.split("=", 1) for part in scope["query_string"].decode().split("&") if part)
        call = f"{scope['method']} {scope['raw_path'].decode().removeprefix('/v0/')}"
        self.requests.append((call, params, json.loads(body) if body else None))
        prepared = self.answers.get(call)
        if not prepared:
            problem = {"message": f"nothing was prepared for {call}", "error_code": "UnknownPipelineName", "details": {}}
            answer: Any = (404, problem)
        else:
            answer = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        status, value = answer if isinstance(answer, tuple) else (200, answer)
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        kind = b"application/octet-stream" if isinstance(value, bytes) else b"application/json"
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": content})


def problem(status: int, code: str, message: str) -> tuple[int, dict[str, Any]]:
    """An answer with an error."""
    return status, {"message": message, "error_code": code, "details": {}}


GET = "GET pipelines/p"
STATS = "GET pipelines/p/stats"
NOT_DEPLOYED = problem(503, "PipelineInteractionNotDeployed", "it has no host")


def pipeline_of(service: Scripted, *descriptors: Any) -> Pipeline:
    """The pipeline whose status is read as ``descriptors``, one after the other."""
    service.on(GET, STOPPED)
    pipeline = Pipeline.get("p", service.client)
    service.on(GET, *descriptors)
    service.requests.clear()
    return pipeline


def metrics(total: int, processed: int, completed: int | None = None, **others: Any) -> dict[str, Any]:
    counters = {
        "total_input_records": total,
        "total_processed_records": processed,
        "total_completed_records": processed if completed is None else completed,
        "buffered_input_records": 0,
        "pipeline_complete": False,
    }
    return {"global_metrics": counters | others, "inputs": [], "outputs": [], "suspend_error": None}
