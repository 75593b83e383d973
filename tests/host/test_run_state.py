"""What the store is told of an incarnation, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from airflow_pipelines.contract.deployment import Deployment, RuntimeTransition
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host import run_state
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.run_state import RunState
from airflow_pipelines.program.sources import ProgramSource


def test_errors_are_told_with_the_next_status_when_one_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_state, "ERRORS_S", 0.0)
    told: list[RuntimeTransition] = []

    class Store:
        def record(self, transition: RuntimeTransition) -> None:
            told.append(transition)

    registry: Any = Store()
    deployment = Deployment(
        deployment_id=UUID(int=1),
        pipeline_id=UUID(int=2),
        pipeline_name="p",
        source=ProgramSource(""),
        runtime_config={},
        storage=str(tmp_path),
        log_path=str(tmp_path / "p.log"),
    )
    state = RunState(deployment, registry, PipelineLog(tmp_path / "p.log", "p"))
    errors = 0
    state.watch_errors(lambda: errors)
    state.record(RuntimeStatus.INITIALIZING)
    state.record(RuntimeStatus.RUNNING)
    errors = 2
    state.tell_errors()
    # A pause has been asked for: told alone, the errors would come with a desired status that the status does not follow yet.
    state.want(RuntimeStatus.PAUSED)
    errors = 3
    state.tell_errors()
    state.record(RuntimeStatus.PAUSED)
    state.tell_errors()
    state.tell_end()
    assert [(each.status.value, each.desired.value, (each.details or {})["connector_stats"]["num_errors"]) for each in told] == [
        ("Initializing", "Running", 0),
        ("Running", "Running", 0),
        ("Running", "Running", 2),
        ("Paused", "Paused", 3),
    ]
