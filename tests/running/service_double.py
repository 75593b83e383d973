"""A service with one pipeline that behaves as a real one would to whoever runs a program, without a host."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from airflow_pipelines.sdk.client import PipelineClient
from tests.scripted import STOPPED, metrics

PLAN = {
    "approval_diff": {"program_diff": {"modified_operators": ["score"]}},
    "programs": {"saved": {"hash": "0" * 64, "version": 1}, "new": {"hash": "1" * 64}},
    "plan": {
        "relations": {},
        "evaluated": {},
        "dropped": {},
        "refusals": [],
        "operators": [
            {
                "uid": "score", "name": "Score", "change": "modified", "kept_states": [], "dropped_states": ["last"],
                "reason": "its type differs", "keys": 3, "bytes": 70,
            }
        ],
        "files": [{"path": "fraud.py", "change": "modified", "diff": "-limit = 1\n+limit = 2"}],
    },
}  # fmt: skip


class ServiceDouble:
    """An ASGI app. What happens to the pipeline is in ``verbs``, in order."""

    def __init__(self) -> None:
        self.record: dict[str, Any] | None = None
        self.plan: dict[str, Any] = json.loads(json.dumps(PLAN))
        self.changes_state = False
        """Whether the program of what is stored differs, so that the next start awaits approval."""
        self.error: dict[str, Any] | None = None
        """With which the pipeline stops once it was started."""
        self.complete = False
        self.statistics: dict[str, Any] = {}
        """What statistics have besides the usual."""
        self.log = ["Fresh start of pipeline log"]
        self.verbs: list[str] = []
        self.bodies: dict[str, Any] = {}
        self.parameters: dict[str, str] = {}
        self.client = PipelineClient(app=self)

    def exists(self, status: str = "Stopped", **fields: Any) -> None:
        """Have a pipeline."""
        desired = "Stopped" if status == "Stopped" else "Running"
        self.record = STOPPED | {"deployment_status": status, "deployment_desired_status": desired} | fields

    def answer(self, method: str, tail: str, body: Any) -> Any:
        """The answer to a call; a tuple of a status and a body when it is none with 200."""
        if method == "POST" and tail == "":
            self.verbs.append("create")
            self.bodies["create"] = body
            self.exists(**body)
            return 201, self.record
        if self.record is None:
            return 404, {"message": "none", "error_code": "UnknownPipelineName", "details": {}}
        if method == "GET":
            return self._read(tail)
        if method == "PATCH":
            return self._patched(body)
        self.verbs.append(tail)
        self.bodies[tail] = body
        return self._moved(tail)

    def _read(self, tail: str) -> Any:
        assert self.record is not None
        if tail == "logs":
            return "\n".join(self.log).encode() + b"\n"
        if tail == "stream_graph":
            return b"<svg/>"
        if tail == "stats":
            return metrics(5, 5, pipeline_complete=self.complete) | self.statistics
        return self.record

    def _patched(self, body: dict[str, Any]) -> Any:
        assert self.record is not None
        assert self.record["deployment_status"] == "Stopped", "a pipeline that is up cannot be changed"
        if "wrong" in json.dumps(body):
            message = {"message": "no such name", "file": "fraud.py", "start_line_number": 1, "start_column": 1}
            details = {"sql_compilation": {"exit_code": 1, "messages": [message]}}
            return 400, {"message": "it does not compile", "error_code": "InvalidNewProgramSql", "details": details}
        self.verbs.append("modify")
        self.bodies["modify"] = body
        self.record |= body
        return self.record

    def _moved(self, tail: str) -> Any:
        assert self.record is not None
        if tail == "plan":
            return self.plan
        if tail == "start":
            if self.error is not None:
                self.record["deployment_error"] = self.error
            elif self.changes_state:
                self._up("AwaitingApproval", deployment_runtime_status_details=self.plan)
            else:
                self._up("Running")
        elif tail in ("approve", "resume"):
            self.changes_state = False
            self._up("Running")
        elif tail == "stop":
            self.exists(**{**self.record, "deployment_status": "Stopped", "deployment_desired_status": "Stopped"})
        return "ok"

    def _up(self, status: str, **fields: Any) -> None:
        assert self.record is not None
        self.record |= {"deployment_status": status, "deployment_desired_status": "Running", **fields}

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        content = (await receive())["body"]
        tail = scope["path"].removeprefix("/v0/pipelines").removeprefix("/p").removeprefix("/")
        self.parameters[tail] = scope["query_string"].decode()
        found = self.answer(scope["method"], tail, json.loads(content) if content else None)
        status, value = found if isinstance(found, tuple) else (200, found)
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        kind = b"text/plain" if isinstance(value, bytes) else b"application/json"
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": body})
