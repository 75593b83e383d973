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
    return _count(api, numbers, lambda number: number % keys)


def window_reduce(api: Any, numbers: Any, keys: int) -> Any:
    """Sum the elements of each key in each window of event time."""
    windows = api.TumblingEventTimeWindows.of(api.Time.milliseconds(WINDOW_MS))
    return _timed(api, numbers, keys).window(windows).reduce(lambda a, b: a + b)


def keyed_rows(api: Any, numbers: Any, keys: int) -> Any:
    """Count the rows of each key: what tables give, and what most programs use."""
    rows = numbers.map(lambda number: api.Row(key=number % keys, number=number, fruit="pears", price=1.5))
    return _count(api, rows, lambda row: row.key)


def keyed_dicts(api: Any, numbers: Any, keys: int) -> Any:
    """Count the dicts of each key."""
    dicts = numbers.map(lambda number: {"key": number % keys, "number": number, "fruit": "pears", "price": 1.5})
    return _count(api, dicts, lambda each: each["key"])


def _count(api: Any, elements: Any, key: Callable[[Any], int]) -> Any:
    class Count(api.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def open(self, runtime_context: Any) -> None:
            self.count = runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))

        def process_element(self, value: Any, ctx: Any) -> Any:  # noqa: ARG002
            found = (self.count.value() or 0) + 1
            self.count.update(found)
            yield found

    return elements.key_by(key, api.Types.LONG()).process(Count(), api.Types.LONG())


def _timed(api: Any, numbers: Any, keys: int) -> Any:
    class At(api.TimestampAssigner):  # type: ignore[misc, name-defined]
        def extract_timestamp(self, value: int, record_timestamp: int) -> int:  # noqa: ARG002
            return value

    strategy = api.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
    return numbers.assign_timestamps_and_watermarks(strategy).key_by(lambda number: number % keys, api.Types.LONG())


def sliding_windows(api: Any, numbers: Any, keys: int) -> Any:
    """Sum the elements of each key in windows of which four overlap."""
    windows = api.SlidingEventTimeWindows.of(api.Time.milliseconds(WINDOW_MS), api.Time.milliseconds(WINDOW_MS // 4))
    return _timed(api, numbers, keys).window(windows).reduce(lambda a, b: a + b)


def session_windows(api: Any, numbers: Any, keys: int) -> Any:
    """Sum the elements of each key in sessions: two of its elements, and then a pause."""
    pairs = numbers.filter(lambda number: number // keys % 3 != 2)
    return (
        _timed(api, pairs, keys)
        .window(api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(keys + 1)))
        .reduce(lambda a, b: a + b)
    )


def timers(api: Any, numbers: Any, keys: int) -> Any:
    """Register a timer for each element; each gives its time when it fires."""

    class Alarm(api.KeyedProcessFunction):  # type: ignore[misc, name-defined]
        def process_element(self, value: int, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(value + WINDOW_MS)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:  # noqa: ARG002
            yield timestamp

    return _timed(api, numbers, keys).process(Alarm(), api.Types.LONG())


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("map", map_and_filter, 200_000),
        Workload("keyed_1000", keyed_state, 200_000, 1_000),
        Workload("keyed_20000", keyed_state, 200_000, 20_000),
        Workload("window", window_reduce, 200_000, 1_000, in_order=True),
        Workload("keyed_rows", keyed_rows, 100_000, 1_000),
        Workload("keyed_dicts", keyed_dicts, 100_000, 1_000),
        Workload("sliding", sliding_windows, 100_000, 1_000, in_order=True),
        Workload("sessions", session_windows, 100_000, 1_000, in_order=True),
        Workload("timers", timers, 100_000, 1_000, in_order=True),
    )
}
