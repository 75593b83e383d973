from __future__ import annotations

import pytest

from airflow_pipelines.datastream.common.restart_strategy import RestartStrategies
from airflow_pipelines.datastream.common.time import Time


def test_strategies_keep_their_values() -> None:
    fixed = RestartStrategies.fixed_delay_restart(3, 1000)
    assert (fixed.restart_attempts, fixed.delay_between_attempts) == (3, Time.seconds(1))
    assert "1000 ms" in fixed.get_description()
    rate = RestartStrategies.failure_rate_restart(2, 60_000, 10)
    assert (rate.max_failure_rate, rate.failure_interval, rate.delay_between_attempts) == (
        2,
        Time.minutes(1),
        Time.milliseconds(10),
    )
    assert RestartStrategies.no_restart() == RestartStrategies.no_restart() != RestartStrategies.fall_back_restart()


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="restart_attempts must be at least 0, not -1"):
        RestartStrategies.fixed_delay_restart(-1, 0)
    with pytest.raises(ValueError, match="delay_between_attempts in ms must be at least 0"):
        RestartStrategies.fixed_delay_restart(1, -5)
    with pytest.raises(ValueError, match="failure_interval must be more than 0"):
        RestartStrategies.failure_rate_restart(1, 0, 0)
    with pytest.raises(TypeError, match="delay_between_attempts takes an int"):
        RestartStrategies.fixed_delay_restart(1, Time.seconds(1))  # type: ignore[arg-type]
