"""Restart strategies for failures of a program: whether it restarts, how often, and after which time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.time import Time
from airflow_pipelines.streams.restarts import RestartPolicy


class RestartStrategyConfiguration(ABC):
    """The base class of restart strategies.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.common import RestartStrategies
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10_000))
    >>> env.get_restart_strategy().get_description()
    'Restart with fixed delay (10000 ms). #3 restart attempts.'
    """

    @abstractmethod
    def get_description(self) -> str:
        """Return a description of the strategy.

        :returns: a clause for logs
        """


@dataclass(frozen=True)
class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A strategy without restarts: a failure ends the program."""

    def get_description(self) -> str:
        """See :meth:`RestartStrategyConfiguration.get_description`."""
        return "Restart deactivated."


@dataclass(frozen=True)
class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A strategy of a limited number of restarts, each after the same time.

    :param restart_attempts: the number of restarts
    :param delay_between_attempts: the time before each
    """

    restart_attempts: int
    delay_between_attempts: Time

    def __post_init__(self) -> None:
        checks.integer("restart_attempts", self.restart_attempts, 0)
        _check_not_negative("delay_between_attempts", self.delay_between_attempts)

    def get_description(self) -> str:
        """See :meth:`RestartStrategyConfiguration.get_description`."""
        delay = self.delay_between_attempts.to_milliseconds()
        return f"Restart with fixed delay ({delay} ms). #{self.restart_attempts} restart attempts."


@dataclass(frozen=True)
class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A strategy that restarts as long as failures are rare.

    :param max_failure_rate: the number of failures within the interval that lead to a restart; one more ends the program
    :param failure_interval: the interval
    :param delay_between_attempts: the time before each restart
    """

    max_failure_rate: int
    failure_interval: Time
    delay_between_attempts: Time

    def __post_init__(self) -> None:
        checks.integer("max_failure_rate", self.max_failure_rate, 1)
        if _check_not_negative("failure_interval", self.failure_interval) == 0:
            raise ValueError("failure_interval must be more than 0")
        _check_not_negative("delay_between_attempts", self.delay_between_attempts)

    def get_description(self) -> str:
        """See :meth:`RestartStrategyConfiguration.get_description`."""
        return (
            f"Failure rate restart with maximum of {self.max_failure_rate} failures within interval "
            f"{self.failure_interval.to_milliseconds()} ms and fixed delay {self.delay_between_attempts.to_milliseconds()} ms."
        )


@dataclass(frozen=True)
class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
    """The default strategy of the runner."""

    def get_description(self) -> str:
        """See :meth:`RestartStrategyConfiguration.get_description`."""
        return "Cluster level default restart strategy"


class RestartStrategies:
    """The factory of restart strategies."""

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """Return a strategy without restarts: a failure ends the program.

        :returns: the strategy
        """
        return NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Return the default strategy of the runner.

        :returns: the strategy
        """
        return FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: int) -> FixedDelayRestartStrategyConfiguration:
        """Return a strategy of a limited number of restarts, each after the same time.

        :param restart_attempts: the number of restarts
        :param delay_between_attempts: milliseconds before each
        :returns: the strategy
        """
        return FixedDelayRestartStrategyConfiguration(restart_attempts, _time("delay_between_attempts", delay_between_attempts))

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int, delay_interval: int
    ) -> FailureRateRestartStrategyConfiguration:
        """Return a strategy that restarts as long as failures are rare.

        :param failure_rate: the number of failures within the interval that lead to a restart; one more ends the program
        :param failure_interval: the interval in milliseconds
        :param delay_interval: milliseconds before each restart
        :returns: the strategy
        """
        interval, delay = _time("failure_interval", failure_interval), _time("delay_interval", delay_interval)
        return FailureRateRestartStrategyConfiguration(failure_rate, interval, delay)


def policy_of(strategy: RestartStrategyConfiguration | None) -> RestartPolicy | None:
    """Return the restart policy of a strategy, for the runner.

    :param strategy: the strategy; None if the program set none
    :returns: the policy; None if a failure ends the program
    """
    if isinstance(strategy, FixedDelayRestartStrategyConfiguration):
        return RestartPolicy(strategy.restart_attempts, strategy.delay_between_attempts.to_milliseconds())
    if isinstance(strategy, FailureRateRestartStrategyConfiguration):
        return RestartPolicy(
            strategy.max_failure_rate,
            strategy.delay_between_attempts.to_milliseconds(),
            strategy.failure_interval.to_milliseconds(),
        )
    return None


def _time(parameter: str, milliseconds: int) -> Time:
    return Time.milliseconds(checks.integer(parameter, milliseconds))


def _check_not_negative(parameter: str, value: Time) -> int:
    return checks.integer(f"{parameter} in ms", checks.instance(parameter, value, Time).to_milliseconds(), 0)
