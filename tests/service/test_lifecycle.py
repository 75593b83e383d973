"""The state machine, state by state and action by action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service.lifecycle import compilation, incarnation, requests
from airflow_pipelines.service.lifecycle.requests import BootstrapFlags, BootstrapPolicy, Initial, RuntimeAction, StartRequest
from airflow_pipelines.service.records import PipelineRecord, descriptor
from tests.service import records as given
from tests.service.records import LATER, NOW, transition

State = Callable[[], PipelineRecord]
Action = Callable[[PipelineRecord], Any]


def start(**fields: Any) -> Action:
    return lambda record: requests.start(record, StartRequest(**fields), LATER)


def stop(force: bool) -> Action:
    return lambda record: requests.stop(record, LATER, force=force)


def move(action: RuntimeAction) -> Action:
    return lambda record: requests.check_runtime_action(record, action)


REFUSED = [
    (given.stopping, start(), 400, "IllegalPipelineAction"),
    (given.suspending, start(), 400, "IllegalPipelineAction"),
    (given.clearing, start(), 400, "CannotStartWhileClearingStorage"),
    (given.broken, start(), 400, "CannotStartWithCompilationError"),
    (given.failed, start(dismiss_error=False), 400, "CannotStartWithUndismissedError"),
    (given.running, start(initial=Initial.PAUSED), 400, "InitialImmutableUnlessStopped"),
    (given.early_start, start(initial=Initial.PAUSED), 400, "InitialImmutableUnlessStopped"),
    (given.running, start(policy=BootstrapPolicy.ALLOW), 400, "BootstrapPolicyImmutableUnlessStopped"),
    (given.running, start(flags=BootstrapFlags(silent=True)), 400, "BootstrapPolicyImmutableUnlessStopped"),
    (given.running, start(from_checkpoint=UUID(int=9)), 400, "FromCheckpointImmutableUnlessStopped"),
    (given.stopped, start(flags=BootstrapFlags(silent=True, concurrent=True)), 400, "InvalidBootstrapConfig"),
    (given.stopped, start(initial=Initial.STANDBY), 400, "InitialStandbyNotAllowed"),
    (given.syncing, start(initial=Initial.STANDBY, from_checkpoint=uuid4()), 400, "InvalidParam"),
    (given.standby, stop(force=False), 400, "InvalidTransition"),
    (given.running, requests.clear, 400, "StorageStatusImmutableUnlessStopped"),
    (given.stopping, requests.clear, 400, "StorageStatusImmutableUnlessStopped"),
    (given.running, requests.check_delete, 400, "DeleteRestrictedToFullyStopped"),
    (given.early_start, requests.check_delete, 400, "DeleteRestrictedToFullyStopped"),
    (given.stopped_with_storage, requests.check_delete, 400, "DeleteRestrictedToClearedStorage"),
    (given.clearing, requests.check_delete, 400, "DeleteRestrictedToClearedStorage"),
    (given.failing, requests.dismiss_error, 400, "DismissErrorRestrictedToFullyStopped"),
    (given.stopped, move(RuntimeAction.PAUSE), 503, "PipelineInteractionNotDeployed"),
    (given.provisioning, move(RuntimeAction.PAUSE), 503, "PipelineInteractionNotDeployed"),
    (given.stopping, move(RuntimeAction.RESUME), 503, "PipelineInteractionNotDeployed"),
    (given.suspending, move(RuntimeAction.RESUME), 400, "InvalidTransition"),
    (given.standby, move(RuntimeAction.PAUSE), 400, "InvalidTransition"),
    (given.standby, move(RuntimeAction.RESUME), 400, "InvalidTransition"),
    (given.running, move(RuntimeAction.ACTIVATE), 400, "InvalidTransition"),
]  # fmt: skip

UNCHANGED = [
    (given.running, start()),
    (given.early_start, start()),
    (given.provisioning, start()),
    (given.stopped, stop(force=True)),
    (given.stopped, stop(force=False)),
    (given.stopping, stop(force=False)),
    (given.suspending, stop(force=False)),
    (given.stopped, requests.clear),
    (given.clearing, requests.clear),
    (given.running, requests.dismiss_error),
    (given.stopped, requests.dismiss_error),
]

# state, action, deployment_status, deployment_desired_status
MOVED = [
    (given.stopped, start(), "Stopped", "Running"),
    (given.compiling, start(), "Stopped", "Running"),
    (given.stopped, start(initial=Initial.PAUSED), "Stopped", "Paused"),
    (given.failed, start(), "Stopped", "Running"),
    (given.stopped_with_storage, start(), "Stopped", "Running"),
    (given.early_start, stop(force=False), "Stopped", "Stopped"),
    (given.provisioning, stop(force=False), "Provisioning", "Stopped"),
    (given.running, stop(force=False), "Running", "Suspended"),
    (given.running, stop(force=True), "Running", "Stopped"),
    (given.suspending, stop(force=True), "Running", "Stopped"),
    (given.standby, stop(force=True), "Standby", "Stopped"),
    (lambda: given.at(RuntimeStatus.AWAITING_APPROVAL), stop(force=False), "AwaitingApproval", "Suspended"),
]


@pytest.mark.parametrize(("state", "action", "status", "code"), REFUSED)
def test_refusals_name_the_state_and_what_to_do(state: State, action: Action, status: int, code: str) -> None:
    record = state()
    with pytest.raises(Problem) as refused:
        action(record)
    assert (http_status(refused.value.code), refused.value.code) == (status, code)
    if code not in {"InvalidBootstrapConfig", "InvalidParam"}:
        assert record.deployment_status in refused.value.message
        assert refused.value.details["status"] == record.deployment_status


def test_a_stop_is_not_undone_by_a_host_that_has_not_heard_of_it() -> None:
    unaware = incarnation.observe(given.suspending(), transition(RuntimeStatus.RUNNING, sequence=2), LATER)
    assert (unaware.deployment_status, unaware.deployment_desired_status) == ("Running", "Suspended")


def test_a_graceful_stop_without_its_checkpoint_is_a_stop_with_an_error() -> None:
    error = {"message": "the disk is full", "error_code": "SuspendError", "details": {}}
    failed = incarnation.observe(given.suspending(), transition(RuntimeStatus.STOPPED, sequence=2, error=error), LATER)
    assert (failed.deployment_status, failed.deployment_desired_status) == ("Stopping", "Stopped")
    assert failed.deployment_error == error


def test_the_flags_of_an_approval_replace_those_of_the_start() -> None:
    waiting = replace(given.at(RuntimeStatus.AWAITING_APPROVAL), silent_bootstrap=True, concurrent_bootstrap=False)
    flags = BootstrapFlags(concurrent=True)
    approved = requests.approve(waiting, waiting.deployment_id, flags)
    assert (approved.silent_bootstrap, approved.concurrent_bootstrap) == (False, True)
    assert (approved.refresh_version, approved.event_status) == (waiting.refresh_version, waiting.event_status)
    # An incarnation that is stopped meanwhile, or over, leaves no flags.
    stopping = requests.stop(waiting, LATER, force=True)
    assert requests.approve(stopping, waiting.deployment_id, flags) is stopping
    assert requests.approve(waiting, UUID(int=9), flags) is waiting


def test_who_awaits_approval_rests_until_somebody_stops_it() -> None:
    waiting = given.at(RuntimeStatus.AWAITING_APPROVAL)
    assert incarnation.at_rest(waiting)
    assert not incarnation.at_rest(requests.stop(waiting, LATER, force=False))


@pytest.mark.parametrize(("state", "action"), UNCHANGED)
def test_repeated_calls_change_nothing(state: State, action: Action) -> None:
    record = state()
    assert action(record) == record


@pytest.mark.parametrize(("state", "action", "status", "desired"), MOVED)
def test_allowed_calls_set_what_is_desired(state: State, action: Action, status: str, desired: str) -> None:
    after = action(state())
    assert (after.deployment_status, after.deployment_desired_status) == (status, desired)


def test_a_start_dismisses_the_last_error_and_a_stop_forgets_the_start() -> None:
    started = start(from_checkpoint=UUID(int=9))(given.failed())
    assert started.deployment_error is None
    assert started.from_checkpoint == UUID(int=9)
    assert start()(started) == start(from_checkpoint=UUID(int=9))(started) == started
    assert (started.deployment_initial, started.bootstrap_policy, started.silent_bootstrap) == ("running", "await_approval", False)
    ended = stop(force=True)(started)
    assert (ended.deployment_initial, ended.bootstrap_policy, ended.silent_bootstrap) == (None, None, None)
    assert ended.from_checkpoint is None


def test_compiling_moves_the_refresh_version_twice() -> None:
    record = given.stopped()
    assert (record.version, record.program_version, record.refresh_version) == (1, 1, 3)
    assert record.program_error == {
        "sql_compilation": {"exit_code": 0, "messages": []},
        "rust_compilation": {"exit_code": 0, "stdout": "", "stderr": ""},
        "system_error": None,
    }


def test_a_failed_compilation_ends_an_early_start() -> None:
    record = compilation.sql_failed(given.early_start(), [{"message": "no"}], NOW)
    ended = incarnation.give_up_early_start(record, LATER)
    assert ended.fully_stopped
    assert ended.deployment_error is not None
    assert ended.deployment_error["error_code"] == "StartFailedDueToFailedCompilation"


def test_the_descriptor_shows_the_incarnation_only_while_there_is_one() -> None:
    shown = [descriptor(state())["deployment_id"] for state in (given.starting, given.provisioning, given.running, given.stopping)]
    assert shown == [None, str(given.DEPLOYMENT), str(given.DEPLOYMENT), None]
    assert given.stopped_with_storage().deployment_id is None


def test_what_a_host_says_becomes_the_status() -> None:
    record = given.at(RuntimeStatus.INITIALIZING)
    assert (record.deployment_status, record.deployment_desired_status) == ("Initializing", "Running")
    details = {"approval_diff": {"program_diff": None}}
    waiting = incarnation.observe(record, transition(RuntimeStatus.AWAITING_APPROVAL, sequence=2, details=details), LATER)
    assert (waiting.deployment_status, waiting.deployment_runtime_status_details) == ("AwaitingApproval", details)
    assert incarnation.at_rest(waiting)
    running = incarnation.observe(waiting, transition(RuntimeStatus.RUNNING, sequence=3, checkpoints=[{"uuid": "u"}]), LATER)
    assert running.storage_status_details == {"checkpoints": [{"uuid": "u"}]}
    copied = incarnation.observe(running, transition(RuntimeStatus.RUNNING, sequence=4, last_sync={"uuid": "u"}), LATER)
    listed = incarnation.observe(copied, transition(RuntimeStatus.RUNNING, sequence=5, checkpoints=[{"uuid": "v"}]), LATER)
    assert listed.storage_status_details == {"checkpoints": [{"uuid": "v"}], "last_sync": {"uuid": "u"}}
    assert incarnation.observe(
        given.at(RuntimeStatus.RUNNING), transition(RuntimeStatus.RUNNING, sequence=2), LATER
    ).storage_status_details == {"checkpoints": []}
    assert running.consumed_sequence == 3
    assert running.refresh_version == record.refresh_version + 2


def test_news_without_a_change_moves_no_counter() -> None:
    record = given.running()
    again = incarnation.observe(
        record, transition(RuntimeStatus.RUNNING, sequence=9, details={"connector_stats": {"num_errors": 2}}), LATER
    )
    assert again.refresh_version == record.refresh_version
    assert again.event_status == record.event_status
    assert descriptor(again)["deployment_runtime_status_since"] == descriptor(record)["deployment_runtime_status_since"]


def test_a_host_that_has_not_heard_of_the_stop_does_not_undo_it() -> None:
    late = incarnation.observe(given.suspending(), transition(RuntimeStatus.PAUSED, RuntimeStatus.PAUSED, sequence=4), LATER)
    assert late.deployment_desired_status == "Suspended"


def test_a_suspended_incarnation_is_stopped_without_error() -> None:
    record = incarnation.observe(
        given.suspending(), transition(RuntimeStatus.SUSPENDED, RuntimeStatus.SUSPENDED, sequence=4), LATER
    )
    assert record.deployment_desired_status == "Stopped"
    ended = incarnation.complete_stop(incarnation.stopping(record, LATER), LATER)
    assert (ended.deployment_status, ended.deployment_error, ended.storage_status_details) == ("Stopped", None, {"checkpoints": []})


def test_an_error_of_the_host_appears_with_stopping_and_is_kept() -> None:
    error = {"message": "division by zero", "error_code": "RuntimeError.WorkerPanic", "details": {}}
    record = incarnation.observe(given.running(), transition(RuntimeStatus.STOPPED, sequence=4, error=error), LATER)
    assert (record.deployment_status, record.deployment_desired_status, record.deployment_error) == ("Stopping", "Stopped", error)
    assert (record.deployment_runtime_status, record.deployment_runtime_status_details) == (None, None)
    second = incarnation.fail(record, {"message": "the host is gone", "error_code": "X", "details": {}}, LATER)
    assert second.deployment_error == error


def test_transitions_of_another_incarnation_are_passed_over() -> None:
    other = transition(RuntimeStatus.PAUSED, RuntimeStatus.PAUSED, sequence=5).model_copy(update={"deployment_id": UUID(int=99)})
    record = given.running()
    assert incarnation.observe(record, other, LATER) == replace(record, consumed_sequence=5)


def test_storage_is_in_use_from_the_start_until_it_is_cleared() -> None:
    states = (given.stopped, given.provisioning, given.stopped_with_storage, given.clearing)
    assert [state().storage_status.value for state in states] == [
        "Cleared", "InUse", "InUse", "Clearing",
    ]  # fmt: skip
    record = incarnation.complete_clear(given.clearing())
    assert (record.storage_status.value, record.storage_status_details) == ("Cleared", None)


def test_a_storage_that_cannot_be_cleared_says_why_until_it_can() -> None:
    stuck = incarnation.clear_failed(given.clearing(), "no permission")
    assert stuck.deployment_error is not None
    assert (stuck.storage_status.value, stuck.deployment_error["message"]) == ("Clearing", "no permission")
    assert incarnation.complete_clear(stuck).deployment_error is None


@pytest.mark.parametrize(
    ("state", "resting"),
    [
        (given.pending, False), (given.compiling, False), (given.stopped, True), (given.broken, True), (given.starting, False),
        (given.provisioning, False), (given.running, True), (given.suspending, False), (given.stopping, False),
        (given.clearing, False), (given.failed, True),
    ],
)  # fmt: skip
def test_what_needs_carrying_forward(state: State, resting: bool) -> None:
    assert incarnation.at_rest(state()) is resting
