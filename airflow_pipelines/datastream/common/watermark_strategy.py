"""Event time of a stream: the timestamps of its elements, and watermarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.time import Duration
from airflow_pipelines.streams.watermarks import BoundedOutOfOrderness, NoWatermarks, TimestampsAndWatermarks, WatermarkGenerator


class TimestampAssigner(ABC):
    """An assigner of timestamps to elements.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, TimestampAssigner, WatermarkStrategy
    >>> from airflow_pipelines.datastream.window import TumblingEventTimeWindows
    >>> class SoldAt(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value[1]
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SoldAt())
    >>> sales = env.from_collection([(5, 1_000), (7, 2_000), (9, 11_000)]).assign_timestamps_and_watermarks(strategy)
    >>> windows = sales.window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
    >>> list(windows.reduce(lambda first, second: (first[0] + second[0], second[1])).execute_and_collect())
    [(12, 2000), (9, 11000)]
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the timestamp of an element.

        :param value: the element
        :param record_timestamp: the earlier timestamp, for example of its message; negative if it had none
        :returns: milliseconds since 1970-01-01T00:00:00Z
        """


@dataclass(frozen=True)
class WatermarkStrategy(TimestampsAndWatermarks):
    """The assignment of event time to a stream. Each method returns a new strategy that keeps the earlier settings.

    :param generator: the factory of the generator for each split of a source, or for each task
    :param assigner: the function that returns the timestamp of a value; None to keep the earlier one
    :param idle_after: milliseconds after which a split without elements no longer holds back the watermark; None for never
    """

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Return a strategy without watermarks: nothing that waits for event time proceeds before the end of the input.

        :returns: the strategy
        """
        return WatermarkStrategy(NoWatermarks)

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Return a strategy for timestamps that never decrease.

        :returns: the strategy
        """
        return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """Return a strategy for elements whose delay behind the latest element is bounded.

        :param max_out_of_orderness: the maximum delay
        :returns: the strategy
        """
        return WatermarkStrategy(partial(BoundedOutOfOrderness, _millis("max_out_of_orderness", max_out_of_orderness, 0)))

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Return a strategy with a watermark generator of the program.

        :param generator: a class derived from ``WatermarkGenerator``, or a function that returns such an object
        :returns: the strategy
        """
        if isinstance(generator, WatermarkGenerator):
            raise TypeError("for_generator takes the class of the generator, or a function that makes one: each split has its own")
        return WatermarkStrategy(checks.function("generator", generator))

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]) -> WatermarkStrategy:
        """Set the timestamp assigner.

        :param timestamp_assigner: an object, or a function of the element and its earlier timestamp
        :returns: a strategy with it
        """
        if isinstance(timestamp_assigner, TimestampAssigner):
            return replace(self, assigner=timestamp_assigner.extract_timestamp)
        if isinstance(timestamp_assigner, type):
            raise TypeError(f"with_timestamp_assigner takes an object: write {timestamp_assigner.__name__}() instead of the class")
        return replace(self, assigner=checks.function("timestamp_assigner", timestamp_assigner))

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Set the time after which a split without elements no longer holds back the watermark.

        :param idle_timeout: the time without elements, more than 0
        :returns: a strategy with it
        """
        return replace(self, idle_after=_millis("idle_timeout", idle_timeout, 1))

    @no_effect("the splits of a source are read in turns, so none runs far ahead of the others")
    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> WatermarkStrategy:
        """Limit the drift between the watermarks of sources.

        :param watermark_group: the name of the group of sources to align
        :param max_allowed_watermark_drift: the maximum lead of one source
        :param update_interval: the interval between two checks
        :returns: the same strategy
        """
        checks.text("watermark_group", watermark_group)
        _millis("max_allowed_watermark_drift", max_allowed_watermark_drift, 0)
        if update_interval is not None:
            _millis("update_interval", update_interval, 1)
        return self


def _millis(parameter: str, value: Duration, minimum: int) -> int:
    duration = checks.instance(parameter, value, Duration, "use Duration.of_seconds(...)")
    return checks.integer(f"{parameter} in ms", duration.to_millis(), minimum)
