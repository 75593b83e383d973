"""The programs that are measured, written once for both packages, over numbers from 0.

``api`` has the names of a package, as :mod:`tools.compare_flink.packages` gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WINDOW_MS = 10_000
"""Each number is a millisecond of event time, so a window has ten thousand of them."""


@dataclass(frozen=True)
class Workload:
    """A program and how much it is given.

    :param name: as in the names of figures
    :param build: makes the stream of results from the stream of numbers
    :param elements: how many numbers
    :param keys: how many keys, 0 for none
    :param in_order: whether the numbers have to come in their order, from one task
    """

    name: str
    build: Callable[[Any, Any, int], Any]
    elements: int
    keys: int = 0
    in_order: bool = False


def map_and_filter(api: Any, numbers: Any, keys: int) -> Any:  # noqa: ARG001
    """Two maps with a filter between them, which keeps two of three."""
    long = api.Types.LONG()
    doubled = numbers.map(lambda number: number * 2 + 1, long).filter(lambda number: number % 3 != 0)
    return doubled.map(lambda number: number ^ 255, long)


def keyed_state(api: Any, numbers: Any, keys: int) -> Any:
    """Count the elements of each key in a value of state, which is read and written for each element; each gives a result.

    Counts do not depend on the order in which several tasks read the numbers.
    """

    class Count(api.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def open(self, runtime_context: Any) -> None:
            self.count = runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))

        def process_element(self, value: int, ctx: Any) -> Any:  # noqa: ARG002
            found = (self.count.value() or 0) + 1
            self.count.update(found)
            yield found

    return numbers.key_by(lambda number: number % keys, api.Types.LONG()).process(Count(), api.Types.LONG())


def window_reduce(api: Any, numbers: Any, keys: int) -> Any:
    """Sum the elements of each key in each window of event time."""

    class At(api.TimestampAssigner):  # type: ignore[misc, name-defined]
        def extract_timestamp(self, value: int, record_timestamp: int) -> int:  # noqa: ARG002
            return value

    timed = numbers.assign_timestamps_and_watermarks(
        api.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
    )
    windows = timed.key_by(lambda number: number % keys, api.Types.LONG()).window(
        api.TumblingEventTimeWindows.of(api.Time.milliseconds(WINDOW_MS))
    )
    return windows.reduce(lambda a, b: a + b)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("map", map_and_filter, 200_000),
        Workload("keyed_1000", keyed_state, 200_000, 1_000),
        Workload("keyed_20000", keyed_state, 200_000, 20_000),
        Workload("window", window_reduce, 200_000, 1_000, in_order=True),
    )
}
