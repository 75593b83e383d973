"""Whether a failure is followed by a restart."""

import pytest

from airflow_pipelines.streams.restarts import RestartDecisions, RestartPolicy


class Time:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_without_a_policy_the_first_failure_is_the_end():
    assert RestartDecisions(None).delay_after_failure() is None


@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_so_many_failures_are_followed_by_a_restart_however_rare_they_are(attempts):
    time = Time()
    decisions = RestartDecisions(RestartPolicy(attempts, 1500), time)
    for _ in range(attempts):
        assert decisions.delay_after_failure() == 1.5
        time.now += 1_000_000
    assert decisions.delay_after_failure() is None


def test_no_delay_is_a_restart_at_once():
    assert RestartDecisions(RestartPolicy(1, 0)).delay_after_failure() == 0.0


def test_only_failures_within_the_interval_count():
    time = Time()
    decisions = RestartDecisions(RestartPolicy(2, 0, interval_ms=1000), time)
    assert decisions.delay_after_failure() == 0
    time.now += 0.999
    assert decisions.delay_after_failure() == 0
    assert decisions.counted == 2
    time.now += 0.001  # the first one is as old as the interval, and counts no more
    assert decisions.delay_after_failure() == 0
    assert decisions.counted == 2
    time.now += 0.5
    assert decisions.delay_after_failure() is None
