"""Metrics and accumulators of functions. They serve statistics only: after a restart an element may be counted twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Counter:
    """A metric that counts up and down."""

    def __init__(self) -> None:
        self.count = 0

    def inc(self, n: int = 1) -> None:
        """Increase the count.

        :param n: the increment
        """
        self.count += n

    def dec(self, n: int = 1) -> None:
        """Decrease the count.

        :param n: the decrement
        """
        self.count -= n

    def get_count(self) -> int:
        """Return the count.

        :returns: the current count
        """
        return self.count


class Distribution:
    """The number, sum, minimum and maximum of values."""

    def __init__(self) -> None:
        self.number = 0
        self.total = 0
        self.minimum: int | None = None
        self.maximum: int | None = None

    def update(self, value: int) -> None:
        """Add a value.

        :param value: the value
        """
        self.number += 1
        self.total += value
        self.minimum = value if self.minimum is None else min(self.minimum, value)
        self.maximum = value if self.maximum is None else max(self.maximum, value)


class Meter:
    """A metric that counts events."""

    def __init__(self) -> None:
        self.count = 0

    def mark_event(self, n: int = 1) -> None:
        """Count events.

        :param n: the number of events
        """
        self.count += n

    def get_count(self) -> int:
        """Return the number of events.

        :returns: the number
        """
        return self.count


class MetricGroup:
    """Metrics by name, in groups.

    :param prefix: the names of the enclosing groups
    :param values: the metrics of the whole task
    """

    def __init__(self, prefix: tuple[str, ...] = (), values: dict[tuple[str, ...], Any] | None = None) -> None:
        self._prefix = prefix
        self._values: dict[tuple[str, ...], Any] = {} if values is None else values

    def counter(self, name: str) -> Counter:
        """Return a counter, and create it if necessary.

        :param name: the name of the metric
        :returns: the counter of that name in this group
        """
        metric: Counter = self._find(name, Counter)
        return metric

    def distribution(self, name: str) -> Distribution:
        """Return a distribution, and create it if necessary.

        :param name: the name of the metric
        :returns: the distribution of that name in this group
        """
        metric: Distribution = self._find(name, Distribution)
        return metric

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return a meter, and create it if necessary.

        :param name: the name of the metric
        :param time_span_in_seconds: without effect: the meter counts all events
        :returns: the meter of that name in this group
        """
        metric: Meter = self._find(name, Meter)
        return metric

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Register a value that is read when statistics are made.

        :param name: the name of the metric
        :param obj: a function that returns the value
        """
        self._values[(*self._prefix, name)] = obj

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a subgroup of this group.

        :param name: the name of the group
        :param extra: a value that belongs to the name
        :returns: the group
        """
        return MetricGroup((*self._prefix, name) if extra is None else (*self._prefix, name, extra), self._values)

    def without_gauges(self) -> MetricGroup:
        """Return the metrics that hold their own values. These can be moved to another process and continued there.

        :returns: the same metrics without gauges, which belong to an instance of a function
        """
        kept = {name: each for name, each in self._values.items() if isinstance(each, Counter | Distribution | Meter)}
        return MetricGroup(self._prefix, kept)

    def report(self) -> dict[str, Any]:
        """Return the current readings of all metrics.

        :returns: readings by name; the names of groups are separated by dots
        """
        return {".".join(name): _reading(metric) for name, metric in self._values.items()}

    def _find(self, name: str, kind: type[Any]) -> Any:
        full = (*self._prefix, name)
        if full not in self._values:
            self._values[full] = kind()
        return self._values[full]


def _reading(metric: Any) -> Any:
    if isinstance(metric, Counter | Meter):
        return metric.count
    if isinstance(metric, Distribution):
        return {"count": metric.number, "sum": metric.total, "min": metric.minimum, "max": metric.maximum}
    return metric()
