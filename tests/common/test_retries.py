"""Calls that failed for the moment are made again, by one policy."""

from __future__ import annotations

import asyncio

import pytest
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import BackOff, RetryPolicy

LOST = retry_if_exception_type(ConnectionError)


class Call:
    """A call that raises errors before it succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.attempts = 0

    def __call__(self, answer: str) -> str:
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return answer


class BusyError(ConnectionError):
    """The error of a server that says when it wants to be called again."""

    retry_after_s = 7.0


def test_waits_double_up_to_the_longest_one_and_are_none_longer() -> None:
    policy = RetryPolicy(first_wait_s=0.5, longest_wait_s=30.0)
    for _ in range(50):
        back_off = BackOff(policy)
        waits = [back_off.next_s() for _ in range(2000)]
        expected = [min(0.5 * 2 ** min(number, 10), 30.0) for number in range(2000)]
        assert all(0.5 * longest <= wait <= longest for wait, longest in zip(waits, expected, strict=True))
        assert len(set(waits[10:40])) > 1, "connectors of one server do not ask it at once"
        assert back_off.failures == 2000
        back_off.reset()
        assert back_off.next_s() <= 0.5


@pytest.mark.parametrize(("failures", "attempts"), [(0, 1), (1, 2), (2, 3)])
def test_a_call_is_made_again_until_it_succeeds(failures: int, attempts: int) -> None:
    call = Call(*[ConnectionError("lost")] * failures)
    assert RetryPolicy(attempts=3).retrying(LOST)(call, "answer") == "answer"
    assert call.attempts == attempts


def test_the_last_error_is_raised_after_the_last_attempt() -> None:
    call = Call(ConnectionError("first"), ConnectionError("second"), ConnectionError("third"))
    with pytest.raises(ConnectionError, match="second"):
        RetryPolicy(attempts=2).retrying(LOST)(call, "answer")
    assert call.attempts == 2


def test_other_errors_are_raised_at_once() -> None:
    call = Call(ConnectionError("lost"), ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        RetryPolicy(attempts=9).retrying(LOST)(call, "answer")
    assert call.attempts == 2


def test_no_attempt_begins_after_the_limit() -> None:
    call = Call(*[ConnectionError("lost")] * 1000)
    with pytest.raises(ConnectionError):
        RetryPolicy(first_wait_s=0.01, longest_wait_s=0.01, limit_s=0.1).retrying(LOST)(call, "answer")
    assert 1 < call.attempts < 1000


def test_without_limits_a_call_is_made_until_it_succeeds() -> None:
    call = Call(*[ConnectionError("lost")] * 300)
    assert RetryPolicy().retrying(LOST)(call, "answer") == "answer"
    assert call.attempts == 301


@pytest.mark.parametrize(("longest_s", "waited_s"), [(60.0, 7.0), (3.0, 3.0)])
def test_a_server_is_given_the_time_that_it_asks_for_up_to_the_longest_wait(longest_s: float, waited_s: float) -> None:
    waits: list[float] = []
    policy = RetryPolicy(first_wait_s=0.1, longest_wait_s=longest_s, attempts=3)
    assert policy.retrying(LOST, sleep=waits.append)(Call(BusyError(), ConnectionError()), "answer") == "answer"
    assert waits[0] == waited_s
    assert waits[1] <= 0.2, "the next error asks for nothing"


def test_asynchronous_calls_follow_the_same_policy() -> None:
    call = Call(ConnectionError("lost"))

    async def answer() -> str:
        return call("answer")

    assert asyncio.run(RetryPolicy(attempts=2).retrying_async(LOST)(answer)) == "answer"
    assert call.attempts == 2
