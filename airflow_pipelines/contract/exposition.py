"""Metrics in the text format of Prometheus, written by its own client library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4"
"""The content type of the text."""


class MetricKind(StrEnum):
    """The kind of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured value.

    :param name: its name, which ends with ``_total`` for a counter
    :param help: a description of the value
    :param labels: the labels that identify the measured object
    """

    name: str
    kind: MetricKind
    help: str
    value: float
    labels: Mapping[str, str]


def metrics_to_wire(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """Return metrics as JSON: one object for each name, with all values measured under it.

    :param metrics: the metrics
    """
    objects: dict[str, dict[str, Any]] = {}
    for metric in metrics:
        described: dict[str, Any] = {"key": metric.name, "type": metric.kind.value, "description": metric.help, "values": []}
        objects.setdefault(metric.name, described)["values"].append({"labels": dict(metric.labels), "value": metric.value})
    return list(objects.values())


def exposition(metrics: Iterable[Metric]) -> str:
    """Return metrics as text, grouped by name.

    :param metrics: the metrics
    """
    # Imported here: the import creates collectors, which a process that is never asked for metrics does not need.
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
