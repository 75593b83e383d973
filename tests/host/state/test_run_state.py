"""What the store is told of an incarnation, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from airflow_pipelines.contract.deployment import Deployment, RuntimeTransition
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.state import run_state
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState
from airflow_pipelines.program.sources import ProgramSource


@pytest.fixture
def told() -> list[RuntimeTransition]:
    """What the store was told."""
    return []


@pytest.fixture
def state(tmp_path: Path, told: list[RuntimeTransition]) -> RunState:
    """The state of an incarnation that has just begun."""

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
    return RunState(deployment, registry, PipelineLog(tmp_path / "p.log", "p"))


def test_a_copy_of_a_checkpoint_is_told_once_it_is_made_and_with_all_that_follows(
    state: RunState, told: list[RuntimeTransition]
) -> None:
    state.record(RuntimeStatus.INITIALIZING)
    state.record(RuntimeStatus.RUNNING)
    assert not state.has_news
    state.note_sync(UUID(int=3))
    # When another status is due, it is told with that, so that the thread does not go round for it meanwhile.
    state.want(RuntimeStatus.PAUSED)
    assert not state.has_news
    state.want(RuntimeStatus.RUNNING)
    assert state.has_news
    state.tell_news()
    assert not state.has_news
    state.record(RuntimeStatus.PAUSED)
    state.tell_end()
    assert [each.last_sync and each.last_sync["uuid"] for each in told] == [None, None, str(UUID(int=3)), str(UUID(int=3))]


def test_errors_are_told_with_the_next_status_when_one_is_due(
    state: RunState, told: list[RuntimeTransition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_state, "ERRORS_S", 0.0)
    errors = 0
    state.watch_errors(lambda: errors)
    state.record(RuntimeStatus.INITIALIZING)
    state.record(RuntimeStatus.RUNNING)
    errors = 2
    state.tell_news()
    # A pause has been asked for: told alone, the errors would come with a desired status that the status does not follow yet.
    state.want(RuntimeStatus.PAUSED)
    errors = 3
    state.tell_news()
    state.record(RuntimeStatus.PAUSED)
    state.tell_news()
    state.tell_end()
    assert [(each.status.value, each.desired.value, (each.details or {})["connector_stats"]["num_errors"]) for each in told] == [
        ("Initializing", "Running", 0),
        ("Running", "Running", 0),
        ("Running", "Running", 2),
        ("Paused", "Paused", 3),
    ]
