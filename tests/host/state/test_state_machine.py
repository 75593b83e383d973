"""What an incarnation may become, and when it answers."""

from __future__ import annotations

import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.state.state_machine import StateMachine

S = RuntimeStatus


def machine(*statuses: RuntimeStatus, desired: RuntimeStatus = S.RUNNING) -> StateMachine:
    made = StateMachine("p", desired)
    for status in statuses:
        made.enter(status)
    return made


@pytest.mark.parametrize(
    "way",
    [
        (S.INITIALIZING, S.RUNNING, S.PAUSED, S.RUNNING, S.SUSPENDED),
        (S.INITIALIZING, S.INITIALIZING, S.AWAITING_APPROVAL, S.REPLAYING, S.BOOTSTRAPPING, S.PAUSED, S.STOPPED),
        (S.INITIALIZING, S.AWAITING_APPROVAL, S.SUSPENDED),
        (S.INITIALIZING, S.STOPPED),
        (S.INITIALIZING, S.RUNNING, S.INITIALIZING, S.REPLAYING, S.INITIALIZING, S.PAUSED),
    ],
)
def test_ways_through_an_incarnation(way: tuple[RuntimeStatus, ...]) -> None:
    assert machine(*way).status is way[-1]


@pytest.mark.parametrize(
    ("way", "status"),
    [
        ((S.INITIALIZING, S.STOPPED), S.INITIALIZING),
        ((S.INITIALIZING, S.RUNNING), S.BOOTSTRAPPING),
        ((S.INITIALIZING, S.BOOTSTRAPPING), S.AWAITING_APPROVAL),
        ((S.INITIALIZING, S.STOPPED), S.RUNNING),
        ((S.INITIALIZING, S.SUSPENDED), S.RUNNING),
        ((), S.RUNNING),
    ],
)
def test_what_cannot_follow(way: tuple[RuntimeStatus, ...], status: RuntimeStatus) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        machine(*way).enter(status)


def test_a_state_that_is_entered_again_is_no_change() -> None:
    running = machine(S.INITIALIZING, S.RUNNING)
    assert not running.enter(S.RUNNING)
    assert running.enter(S.PAUSED)


def test_who_is_to_suspend_is_not_told_otherwise() -> None:
    one = machine(S.INITIALIZING, S.RUNNING)
    one.want(S.PAUSED)
    one.want(S.SUSPENDED)
    one.want(S.RUNNING)
    assert (one.desired, one.has_to_change) == (S.SUSPENDED, True)


def test_requests_are_answered_while_running_and_paused_only() -> None:
    def code(one: StateMachine) -> ErrorCode | None:
        refusal = one.refusal()
        return None if refusal is None else refusal.code

    assert code(machine()) is ErrorCode.INITIALIZING
    assert code(machine(S.INITIALIZING, S.AWAITING_APPROVAL)) is ErrorCode.AWAITING_APPROVAL
    assert code(machine(S.INITIALIZING, S.REPLAYING)) is ErrorCode.RESTORE_IN_PROGRESS
    assert code(machine(S.INITIALIZING, S.BOOTSTRAPPING)) is ErrorCode.BOOTSTRAP_IN_PROGRESS
    running = machine(S.INITIALIZING, S.RUNNING)
    assert code(running) is None
    assert code(machine(S.INITIALIZING, S.PAUSED)) is None
    suspended = machine(S.INITIALIZING, S.SUSPENDED)
    suspended.ended = True
    assert code(suspended) is ErrorCode.SUSPENDED
    assert code(machine(S.INITIALIZING, S.STOPPED)) is ErrorCode.TERMINATING
    running.taken_down = True
    assert (code(running), running.has_to_change) == (ErrorCode.TERMINATING, True)


def test_what_has_not_changed_is_read_while_views_are_bootstrapped() -> None:
    for status in (S.BOOTSTRAPPING, S.CONCURRENT_BOOTSTRAPPING):
        one = machine(S.INITIALIZING, status)
        assert one.is_bootstrapping
        assert one.reading_refusal() is None
        one.taken_down = True
        refusal = one.reading_refusal()
        assert refusal is not None
        assert refusal.code is ErrorCode.TERMINATING
    assert machine(S.INITIALIZING, S.RUNNING).reading_refusal() is None
    assert machine(S.INITIALIZING, S.REPLAYING).reading_refusal() is not None


def test_requests_are_answered_once_others_may_know_that_they_are() -> None:
    one = machine(S.INITIALIZING)
    assert one.refusal() is not None
    one.announce(S.RUNNING)
    assert one.refusal() is None
    assert not one.is_running
    one.enter(S.RUNNING)
    one.announce(S.SUSPENDED)
    assert one.refusal() is None
    one.enter(S.SUSPENDED)
    assert one.refusal() is not None


def test_only_activating_ends_standby() -> None:
    state = machine(S.INITIALIZING, S.STANDBY, desired=S.STANDBY)
    for refused in (lambda: state.want(S.RUNNING), lambda: state.want(S.PAUSED)):
        with pytest.raises(Problem, match="stands by until it is activated"):
            refused()
    state.activate(S.PAUSED)
    state.activate(S.PAUSED)
    with pytest.raises(Problem, match="does not stand by"):
        state.activate(S.RUNNING)
    assert state.desired is S.PAUSED
    state.enter(S.PAUSED)
    with pytest.raises(ValueError, match="Standby cannot follow"):
        state.enter(S.STANDBY)


def test_a_standby_that_is_to_suspend_does_so() -> None:
    state = machine(desired=S.STANDBY)
    state.want(S.SUSPENDED)
    assert state.desired is S.SUSPENDED
    with pytest.raises(Problem, match="does not stand by"):
        state.activate(S.RUNNING)
