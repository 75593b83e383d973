"""How a stream gets event time: the timestamps of its elements, and watermarks."""

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
    """Gives elements their timestamps."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The timestamp of an element.

        :param value: the element
        :param record_timestamp: the timestamp that it had, for example of its message; negative when it had none
        :returns: milliseconds since 1970-01-01T00:00:00Z
        """


@dataclass(frozen=True)
class WatermarkStrategy(TimestampsAndWatermarks):
    """How a stream gets event time. Each method gives a new strategy that keeps what was set before.

    :param generator: makes a generator for each split of a source, or for each task
    :param assigner: gives the timestamp of a value; None keeps the one that it had
    :param idle_after: milliseconds after which a split without elements holds nobody back; None for never
    """

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermarks: nothing that waits for event time goes on before the end of the input.

        :returns: the strategy
        """
        return WatermarkStrategy(NoWatermarks)

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps never go back.

        :returns: the strategy
        """
        return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """Elements are at most so far behind the latest one.

        :param max_out_of_orderness: how far
        :returns: the strategy
        """
        return WatermarkStrategy(partial(BoundedOutOfOrderness, _millis("max_out_of_orderness", max_out_of_orderness, 0)))

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Watermarks that the program makes itself.

        :param generator: a class derived from ``WatermarkGenerator``, or a function that makes such an object
        :returns: the strategy
        """
        if isinstance(generator, WatermarkGenerator):
            raise TypeError("for_generator takes the class of the generator, or a function that makes one: each split has its own")
        return WatermarkStrategy(checks.function("generator", generator))

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]) -> WatermarkStrategy:
        """Set where timestamps come from.

        :param timestamp_assigner: an object, or a function of the element and the timestamp that it had
        :returns: a strategy with it
        """
        if isinstance(timestamp_assigner, TimestampAssigner):
            return replace(self, assigner=timestamp_assigner.extract_timestamp)
        if isinstance(timestamp_assigner, type):
            raise TypeError(f"with_timestamp_assigner takes an object: write {timestamp_assigner.__name__}() instead of the class")
        return replace(self, assigner=checks.function("timestamp_assigner", timestamp_assigner))

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Let a split without elements hold nobody back.

        :param idle_timeout: after which time without elements, more than 0
        :returns: a strategy with it
        """
        return replace(self, idle_after=_millis("idle_timeout", idle_timeout, 1))

    @no_effect("the splits of a source are read in turns, so none runs far ahead of the others")
    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> WatermarkStrategy:
        """Keep sources from running ahead of each other.

        :param watermark_group: name of the sources that are kept together
        :param max_allowed_watermark_drift: how far one may be ahead
        :param update_interval: how often this is looked at
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
