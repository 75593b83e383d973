"""Airflow as the page sees it, with answers that a test sets: the plugin's calls, and Airflow's own for reviews."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from airflow_pipelines.serving.page_files import page_response

BASE = "/airflow_pipelines/"
API = "connections/main/v0/"
ANSWER = "/api/v2/dags/release/dagRuns/manual__1/taskInstances/gate/-1/hitlDetails"
NOW = 1_795_451_234_567
HOSTILE = "<img src=x onerror=\"alert('x')\">"
PROGRAMS = {"saved": {"hash": "a" * 64, "version": 1}, "new": {"hash": "b" * 64}}


def relation(name: str, kind: str = "view") -> dict[str, Any]:
    return {"id": f"relation:{name}", "kind": kind, "name": name, "materialized": True}


def descriptor(**fields: Any) -> dict[str, Any]:
    """A running pipeline: orders -> kept -> totals, with an input and an output."""
    nodes = [
        {"id": "input:orders.in", "kind": "input_connector", "name": "orders.in", "relation": "orders", "transport": "kafka_input"},
        relation("orders", "table"),
        relation("kept"),
        relation("totals"),
        {"id": "output:totals.out", "kind": "output_connector", "name": "totals.out", "relation": "totals", "transport": "http"},
    ]
    ids = [node["id"] for node in nodes]
    edges = [{"from": source, "to": target} for source, target in pairwise(ids)]
    status = {part: "Running" for part in ("deployment_status", "deployment_desired_status", "deployment_runtime_status")}
    return {
        "id": "01900000-0000-7000-8000-000000000001",
        "name": "shop",
        "description": HOSTILE,
        "tags": [HOSTILE],
        "version": 1,
        "program_version": 1,
        "program_status": "Success",
        "program_error": None,
        "program_code": f"-- {HOSTILE}\nselect 1",
        "program_info": {"schema": {"inputs": [], "outputs": []}, "dataflow": {"nodes": nodes, "edges": edges}},
        "storage_status": "InUse",
        "storage_status_details": {"checkpoints": []},
        "deployment_error": None,
        "deployment_status_since": "2026-01-02T03:04:05Z",
        "deployment_runtime_status_details": {},
        **status,
        **fields,
    }


def declaration(sql: str) -> dict[str, str]:
    return {"sql": sql, "hash": "0" * 64}


def change(**plan: Any) -> dict[str, Any]:
    """``totals`` changes, ``large`` is new, ``kept`` goes."""
    relations = {
        "totals": {
            "kind": "view",
            "change": "modified",
            "saved": declaration("CREATE VIEW totals AS\n  SELECT sum(x) AS x\n  FROM kept"),
            "new": declaration("CREATE VIEW totals AS\n  SELECT sum(x) AS x, max(x) AS m\n  FROM orders"),
        },
        "large": {
            "kind": "view",
            "change": "added",
            "saved": None,
            "new": declaration(f"CREATE VIEW large AS SELECT '{HOSTILE}' FROM \"orders\""),
        },
        "kept": {
            "kind": "view",
            "change": "removed",
            "saved": declaration("CREATE VIEW kept AS SELECT x FROM orders -- not totals"),
            "new": None,
        },
    }
    evaluated = {
        "totals": {"reads": {"orders": 1_200_000}, "stages": 1, "seconds": 12.4, "rows": 1_200_000},
        "large": {"reads": {"orders": 1_200_000}, "stages": 1, "seconds": 3.0, "rows": 1_200_000},
    }
    whole = {
        "relations": relations,
        "evaluated": evaluated,
        "dropped": {"totals": 10, "kept": 4500},
        "refusals": [],
        "operators": [],
        "files": [],
        "rows": 2_400_000,
        "seconds": 15.4,
        **plan,
    }
    return {"approval_diff": {"program_diff": {}}, "programs": PROGRAMS, "views_evaluated_anew": {}, "plan": whole}


def review(**fields: Any) -> dict[str, Any]:
    """A request of a task that waits with that change."""
    return {
        "connection": "main",
        "pipeline": "shop",
        "programs": PROGRAMS,
        "change": change(),
        "dag_id": "release",
        "run_id": "manual__1",
        "task_id": "gate",
        "map_index": -1,
        "subject": f"Pipeline shop {HOSTILE}",
        "body": "",
        "options": ["Approve", "Reject"],
        "defaults": None,
        "multiple": False,
        "params": {},
        "assigned_users": [],
        "created_at": NOW,
        "answer": ANSWER,
        "page": "/dags/release/runs/manual__1/tasks/gate/required_actions",
        **fields,
    }


class AirflowDouble:
    """What it answers by path below the API of its one connection, the reviews that wait, and the answers that it was given."""

    def __init__(self) -> None:
        self.connections = [{"id": "main", "label": "main", "api": API, "problem": None}]
        self.reviews: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.task: dict[str, Any] = {}
        self.refusal: tuple[int, Any] | None = None
        self.given: list[Any] = []
        self.headers: list[str] = []
        self.app = FastAPI()
        self.app.add_api_route(ANSWER, self._answered, methods=["PATCH"])
        self.app.add_api_route(f"{BASE}{{path:path}}", self._answer)
        self.app.add_api_route("/{path:path}", self._own_page)

    async def _own_page(self, path: str) -> Response:
        return Response(f"<!doctype html><title>Airflow: {path}</title>", media_type="text/html")

    async def _answered(self, request: Request) -> Response:
        if self.refusal is not None:
            return JSONResponse(self.refusal[1], self.refusal[0])
        self.given.append(await request.json())
        self.reviews = []
        return JSONResponse({})

    async def _answer(self, path: str, request: Request) -> Response:
        self.headers += [name for name in request.headers if name == "authorization"]
        own = {
            "context": {
                "face": "airflow",
                "version": "1",
                "needs_key": False,
                "connections": self.connections,
                "airflow": {"api": "/api/v2/", "ui": "/"},
            },
            "reviews": {"reviews": self.reviews},
            "task": self.task,
        }
        if path in own:
            return JSONResponse(own[path])
        if path.startswith(API):
            found = self.answers.get(path.removeprefix(API))
            return (
                JSONResponse({"message": f"no {path}", "error_code": "UnknownEndpoint"}, 404)
                if found is None
                else JSONResponse(found)
            )
        return page_response(path, request.headers, framed_by="'self'") or Response("no file", 404)

    def has(self, found: dict[str, Any]) -> None:
        """There is a pipeline, with samples of the last minutes."""
        name = found["name"]
        figures = {
            "now": NOW,
            "every_ms": 2000,
            "t": [NOW - 2000, NOW],
            "rows_per_second": [100.0, 90.0],
            "busy": [0.5, 0.6],
            "inputs": {"orders.in": [100.0, 90.0]},
            "outputs": {"totals.out": [5.0, 5.0]},
            "relations": {"orders": [100.0, 90.0], "kept": [50.0, 50.0], "totals": [5.0, 5.0]},
            "views_ms": {"kept": [300.0, 300.0], "totals": [100.0, 100.0]},
        }
        health = {"status": "Unhealthy", "description": HOSTILE}
        error = {"timestamp": "2026-01-02T03:04:05Z", "index": 0, "tag": "parse", "message": HOSTILE}
        endpoint = {
            "endpoint_name": "orders.in",
            "config": {"stream": "orders"},
            "fatal_error": None,
            "paused": False,
            "health": health,
            "parse_errors": [error],
            "transport_errors": [],
            "completed_frontier": None,
            "metrics": {
                "total_records": 1,
                "total_bytes": 1,
                "buffered_records": 0,
                "num_parse_errors": 1,
                "num_transport_errors": 0,
                "lag": None,
            },
        }
        stats = {
            "global_metrics": {"total_processed_records": 7, "rss_bytes": 1, "storage_bytes": 1},
            "inputs": [endpoint],
            "outputs": [],
            "warnings": [HOSTILE],
        }
        step = {"step": 1, "duration_ms": 12.5, "input_rows": 3, "operators": [{"view": HOSTILE, "duration_ms": 10.0}]}
        lines = {"lines": [f"2026-01-02T03:04:05.678Z ERROR [shop] {HOSTILE}", HOSTILE], "from": 0, "next": 10, "cut": False}
        tails = {
            "": found,
            "/activity": figures,
            "/stats": stats,
            "/steps": [step],
            "/log_lines": lines,
            "/events": [],
            "/checkpoints": [],
            "/checkpoint/sync_status": {"success": None, "failure": None, "periodic": None},
        }
        self.answers |= {f"pipelines/{name}{tail}": answer for tail, answer in tails.items()}
        overview = {
            "id": found["id"],
            "name": name,
            "description": found["description"],
            "tags": found["tags"],
            "status": found["deployment_status"],
            "status_since": NOW,
            "desired_status": "Running",
            "program_status": "Success",
            "storage_status": "InUse",
            "error": {"error_code": "X", "message": HOSTILE},
            "checkpoint": None,
            "sync": None,
            "figures": None,
            "figures_problem": HOSTILE,
        }
        self.answers["overview"] = {"now": NOW, "pipelines": [overview]}
