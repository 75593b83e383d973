"""A changed program waits for approval, and what is saved stays until then."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from airflow_pipelines.contract.deployment import Deployment, RuntimeTransition
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.changes.approval import Approval
from airflow_pipelines.host.changes.bootstrap import BootstrapMode
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState
from airflow_pipelines.program.sources import ProgramSource
from tests.fixtures.sdk import eventually
from tests.host.driver import MORE, PROGRAM, ROWS, TOTALS, Make, totals


@pytest.mark.core
def test_a_changed_program_awaits_approval_and_keeps_what_it_can(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = MORE
    waiting = pipeline.start("AwaitingApproval")
    assert waiting.details is not None
    diff = waiting.details["approval_diff"]
    assert diff["program_diff"] == {
        "added_tables": [],
        "removed_tables": [],
        "modified_tables": [],
        "added_views": ["most"],
        "removed_views": [],
        "modified_views": ["large"],
    }
    assert waiting.details["connector_stats"] == {"num_errors": 0}
    assert pipeline.get("stats").status_code == 503
    assert pipeline.get("stats").json()["error_code"] == "AwaitingApproval"
    # What it is to become may be changed meanwhile, which is told at once.
    for verb, desired in (("pause", "Paused"), ("resume", "Running")):
        assert pipeline.post(verb).status_code == 202
        eventually(lambda wanted=desired: pipeline.transitions()[-1].desired.value == wanted)  # type: ignore[misc]
        told = pipeline.transitions()[-1]
        assert (told.status.value, (told.details or {})["approval_diff"]) == ("AwaitingApproval", diff)
    assert pipeline.post("approve").status_code == 200
    pipeline.wait_for("Running")
    assert list(dict.fromkeys(pipeline.statuses())) == ["Initializing", "AwaitingApproval", "Bootstrapping", "Running"]
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]
    assert totals(pipeline) == TOTALS
    pipeline.insert("t", {"id": 4, "v": 50, "name": "a"})
    assert pipeline.query("SELECT * FROM most") == [{"v": 50}]


def test_stopping_instead_of_approving_keeps_the_checkpoint(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = MORE
    pipeline.start("AwaitingApproval")
    pipeline.suspend()
    pipeline.start("AwaitingApproval")
    pipeline.kill()
    pipeline.program = PROGRAM
    pipeline.start()
    assert totals(pipeline) == TOTALS


def test_a_change_after_a_kill_without_checkpoint_still_needs_approval(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.kill()
    pipeline.program = MORE
    pipeline.start("AwaitingApproval")
    pipeline.post("approve")
    pipeline.wait_for("Running")
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]
    assert totals(pipeline) == TOTALS
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]


@pytest.mark.core
def test_rejected_changes_end_the_start_and_keep_the_checkpoint(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = MORE
    failed = pipeline.start("Stopped", bootstrap_policy="reject")
    assert failed.error is not None
    assert failed.error["error_code"] == "BootstrapRejected"
    assert "added views: most" in failed.error["message"]
    assert "modified views: large" in failed.error["message"]
    pipeline.kill()
    pipeline.start("Running", bootstrap_policy="allow")
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]


def test_white_space_and_comments_are_no_change(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = "-- the same\n" + PROGRAM.replace("SELECT name", "SELECT\n  name")
    pipeline.start("Running", bootstrap_policy="reject")
    assert totals(pipeline) == TOTALS


def test_an_approval_by_who_reads_the_store_before_the_pipeline_goes_on_is_taken(tmp_path: Path) -> None:
    answers: list[Future[bool]] = []

    class Store:
        def record(self, transition: RuntimeTransition) -> None:
            if transition.status is RuntimeStatus.AWAITING_APPROVAL:
                answers.append(pool.submit(approval.approve, BootstrapMode.of(silent=False, concurrent=False), None, 5.0))
                eventually(lambda: approval._approved or answers[0].done())

    registry: Any = Store()
    log = PipelineLog(tmp_path / "p.log", "p")
    deployment = Deployment(
        deployment_id=UUID(int=1),
        pipeline_id=UUID(int=2),
        pipeline_name="p",
        source=ProgramSource(""),
        runtime_config={},
        storage=str(tmp_path),
        log_path=str(tmp_path / "p.log"),
    )
    state = RunState(deployment, registry, log)
    approval = Approval(deployment, state, FenceWatch(log), log)
    change: Any = SimpleNamespace(bootstrap=SimpleNamespace(diff=None, check=lambda _: None), programs=None, to_wire=dict)
    with ThreadPoolExecutor() as pool:
        state.record(RuntimeStatus.INITIALIZING)
        asked = pool.submit(approval.ask, change)
        try:
            asked.result(5)
            assert not answers[0].done(), "it answers when the pipeline goes on"
            state.record(RuntimeStatus.BOOTSTRAPPING)
            assert answers[0].result(5)
        finally:
            state.take_down()
    assert "the changes were approved" in (tmp_path / "p.log").read_text()
