"""A service with a pipeline that runs a program, as far as planning for it and changing it are concerned."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.fixtures.airflow import ScriptedService

OLD = "create table t (a int); create materialized view v as select a from t;"
NEW = "create table t (a int); create materialized view v as select a + 1 as a from t;"
THIRD = "create table t (a int); create materialized view v as select a + 2 as a from t;"
COMMENTED = f"-- what it is for\n{OLD}"
SINCE = "2026-05-08T12:00:00.000001Z"


def meaning(program: str) -> str:
    """A program without its comments."""
    return "\n".join(line for line in program.splitlines() if not line.startswith("--"))


class Running:
    """The service; ``status`` is the pipeline's at first."""

    def __init__(self, scripted: ScriptedService, status: str = "Running") -> None:
        self.scripted = scripted
        self.running = (OLD, 1)
        self.program, self.version = self.running
        self.config: dict[str, Any] = {"workers": 8}
        self.description = ""
        self.rows = 1000
        self.outdated: dict[str, str] = {}
        self.error: dict[str, Any] | None = None
        answers = {"plan": self.plan, "stop": self.stop, "start": self.start, "approve": self.approve}
        for tail, answer in answers.items():
            scripted.answers["POST", tail] = answer
        scripted.answers["PATCH", ""] = self.modify
        self.show(status)

    @property
    def body(self) -> Any:
        return self.scripted.calls[-1][3]

    @property
    def status(self) -> str:
        return str(self.scripted.pipelines["p"]["deployment_status"])

    @property
    def asked(self) -> list[str]:
        """What was asked of the pipeline, without looking."""
        return [tail or "modify" for method, tail, _, _ in self.scripted.calls if method in ("POST", "PATCH") and tail != "plan"]

    def show(self, status: str, **fields: Any) -> Any:
        fields |= {"program_code": self.program, "version": self.version, "program_version": self.version}
        fields |= {"runtime_config": self.config, "description": self.description, "deployment_status_since": SINCE}
        if status == "Stopped":
            return self.scripted.pipeline(deployment_error=self.error, **fields)
        return self.scripted.up(status, **fields)

    def change(self, program: str, version: int | None) -> dict[str, Any]:
        saved, saved_version = self.running
        same = meaning(saved) == meaning(program)
        new = {"hash": hashlib.sha256(program.encode()).hexdigest()}
        relation = {
            "kind": "view",
            "change": "modified",
            "saved": {"sql": saved.split("; ")[1], "hash": "a"},
            "new": {"sql": program.split("; ")[1], "hash": "b"},
        }
        evaluated = {"v": {"reads": {"t": self.rows}, "stages": 1, "seconds": 0.2}}
        return {
            "approval_diff": {"program_diff": {"modified_views": [] if same else ["v"]}, "program_diff_error": None},
            "programs": {
                "saved": {"hash": hashlib.sha256(saved.encode()).hexdigest(), "version": saved_version},
                "new": new if version is None else {**new, "version": version},
            },
            "views_evaluated_anew": self.outdated,
            "plan": {
                "relations": {} if same else {"v": relation},
                "evaluated": {} if same else evaluated,
                "dropped": {} if same else {"v": self.rows},
                "refusals": [],
            },
        }

    def plan(self) -> Any:
        return self.change(self.body.get("program_code", self.program), None)

    def stop(self) -> Any:
        self.show("Stopped")
        return "stopping"

    def modify(self) -> Any:
        edit = self.body
        if "description" in edit:
            self.description = edit["description"]
        if edit.keys() - {"description"}:
            assert self.status == "Stopped", "what runs cannot be modified"
            self.program = edit.get("program_code", self.program)
            self.config = edit.get("runtime_config", self.config)
            self.version += 1
        return self.show(self.status)

    def start(self) -> Any:
        self.error = None
        self.initial = self.scripted.calls[-1][2]["initial"].capitalize()
        if self.running[0] == self.program or self.status != "Stopped":
            self.running = (self.program, self.version)
            self.show(self.initial if self.status == "Stopped" else self.status)
        else:
            self.waits()
        return "starting"

    def waits(self) -> None:
        self.show("AwaitingApproval", deployment_runtime_status_details=self.change(self.program, self.version))

    def approve(self) -> Any:
        expected = self.body["programs"]["new"]["hash"]
        if expected != hashlib.sha256(self.program.encode()).hexdigest():
            return 412, {"error_code": "UnexpectedProgram", "message": "The program is not the expected one", "details": {}}
        if self.status == "AwaitingApproval":
            self.running = (self.program, self.version)
            self.show(self.initial)
        return "ok"
