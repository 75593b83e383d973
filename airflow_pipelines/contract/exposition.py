"""Metrics as the text that Prometheus reads, made by its own client library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4"
"""The type of the text."""


class MetricKind(StrEnum):
    """How a metric moves."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured value.

    :param name: its name, which ends with ``_total`` for a counter
    :param help: what it counts or measures
    :param labels: what it is about
    """

    name: str
    kind: MetricKind
    help: str
    value: float
    labels: Mapping[str, str]


def metrics_to_wire(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """Metrics as JSON: one object for each name, with all that was measured under it.

    :param metrics: what was measured
    """
    found: dict[str, dict[str, Any]] = {}
    for metric in metrics:
        described: dict[str, Any] = {"key": metric.name, "type": metric.kind.value, "description": metric.help, "values": []}
        found.setdefault(metric.name, described)["values"].append({"labels": dict(metric.labels), "value": metric.value})
    return list(found.values())


def exposition(metrics: Iterable[Metric]) -> str:
    """Write metrics as text; those of one name stand together.

    :param metrics: what was measured
    """
    # Imported here: it begins with collectors of its own, which a process that is never asked for metrics need not have.
    from prometheus_client.exposition import generate_latest
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for metric in metrics:
        if metric.name not in families:
            kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
            families[metric.name] = kind(metric.name, metric.help, labels=list(metric.labels))
        families[metric.name].add_metric(list(metric.labels.values()), metric.value)

    class Measured:
        def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
            return families.values()

    text: bytes = generate_latest(Measured())
    return text.decode()
