"""All pipelines at a glance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid6 import uuid7

from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostTimeout
from airflow_pipelines.service.lifecycle import incarnation
from airflow_pipelines.service.overview import overview
from airflow_pipelines.service.records import PipelineRecord
from tests.service import records as given
from tests.service.hosted import host_row, put

FIGURES = {"rows_per_second": 7.5}


def named(record: PipelineRecord, name: str, **fields: Any) -> PipelineRecord:
    return replace(record, name=name, id=uuid7(), **fields)


@pytest.fixture
def asked(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that hosts were asked; each is answered with figures of the one deployment."""
    questions: list[str] = []

    def answer(_host: object, method: str, path: str, **_: object) -> httpx.Response:
        questions.append(f"{method} {path}")
        return httpx.Response(200, json={str(given.DEPLOYMENT): FIGURES})

    monkeypatch.setattr(control_plane.hosts, "call", answer)
    return questions


def shown(control_plane: ControlPlane) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in overview(control_plane)["pipelines"]}


def test_running_and_stopped_pipelines_are_in_one_list_and_a_host_is_asked_once(
    control_plane: ControlPlane, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_plane.background, "wake", lambda _: None)
    host_row(control_plane, tmp_path)
    older, newer = str(UUID(int=uuid7().int)), str(UUID(int=uuid7().int))
    transition = given.transition(
        RuntimeStatus.RUNNING,
        sequence=2,
        checkpoints=[{"uuid": newer, "size": 5, "steps": 3, "processed_records": 9}, {"uuid": older}],
        last_sync={"uuid": older, "synced_at": "2026-01-02T03:04:05.000006Z"},
    )
    put(control_plane, named(incarnation.observe(given.running(), transition, given.NOW), "up"))
    put(control_plane, named(given.running(), "beside"))
    kept = incarnation.complete_stop(incarnation.observe(given.stopping(), transition, given.NOW), given.LATER)
    put(control_plane, named(kept, "down"))
    put(control_plane, named(given.failed(), "failed"))
    put(control_plane, named(given.broken(), "broken"))

    found = shown(control_plane)
    assert asked == ["GET /figures"]
    assert list(found) == ["up", "beside", "down", "failed", "broken"]
    assert [(row["status"], row["figures"]) for row in found.values()] == [
        ("Running", FIGURES), ("Running", FIGURES), ("Stopped", None), ("Stopped", None), ("Stopped", None),
    ]  # fmt: skip
    assert found["up"]["status_since"] == int(given.NOW.timestamp() * 1000)
    at = UUID(newer).int >> 80
    assert found["up"]["checkpoint"] == {"uuid": newer, "at": at, "size": 5, "steps": 3, "processed_records": 9}
    assert found["up"]["sync"] == {"uuid": older, "at": 1767323045000}
    # Also of one that is stopped.
    assert (found["down"]["checkpoint"], found["down"]["sync"]) == (found["up"]["checkpoint"], found["up"]["sync"])
    assert found["failed"]["checkpoint"] is found["failed"]["sync"] is None
    assert found["failed"]["error"] == {"error_code": "RuntimeError.WorkerPanic", "message": "it broke"}
    assert found["broken"]["error"] == {"error_code": "SqlError", "message": "no"}
    assert found["up"]["error"] is None


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [(HostTimeout("no answer within 2 s"), "its host does not answer: no answer within 2 s"), (404, "its host answers 404")],
)
def test_a_host_that_gives_no_figures_hides_no_pipeline(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Any, expected: str
) -> None:
    def answer(*_: object, **__: object) -> httpx.Response:
        if isinstance(outcome, Exception):
            raise outcome
        return httpx.Response(outcome)

    monkeypatch.setattr(control_plane.background, "wake", lambda _: None)
    monkeypatch.setattr(control_plane.hosts, "call", answer)
    host_row(control_plane, tmp_path)
    put(control_plane, given.running())
    row = shown(control_plane)["p"]
    assert (row["status"], row["figures"], row["figures_problem"]) == ("Running", None, expected)


def test_an_empty_store_asks_nobody(control_plane: ControlPlane, asked: list[str]) -> None:
    assert (overview(control_plane)["pipelines"], asked) == ([], [])
