"""The figures of one pipeline for a list of all pipelines, and the counters that are sampled for it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from airflow_pipelines.connectors.base import Lag
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.metrics.activity import COARSE_S, Activity, Counter, Measure, counters_of
from airflow_pipelines.host.metrics.connector_metrics import InputMetrics, OutputMetrics
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.metrics.time_series import TimeSeries
from airflow_pipelines.host.outputs.outputs import OutputEndpoint
from airflow_pipelines.host.steps.live import LivePipeline


def counters(live: LivePipeline, metrics: PipelineMetrics) -> dict[Counter, float]:
    """Return all counters that the activity of a pipeline consists of. It is cheap, because it is called every few seconds.

    :param live: the pipeline
    :param metrics: its own counters
    """
    inputs = ((endpoint.name, float(endpoint.metrics.total_records)) for endpoint in live.endpoints.inputs.shown)
    # Listeners are left out: they come and go, and each has a name of its own.
    outputs = ((output.name, float(output.metrics.transmitted_records)) for output in live.endpoints.outputs.declared)
    return {
        (Measure.PROCESSED, ""): metrics.counters().processed_records,
        (Measure.BUSY, ""): metrics.busy_s,
        **counters_of(Measure.INPUTS, inputs),
        **counters_of(Measure.OUTPUTS, outputs),
        **counters_of(Measure.RELATIONS, live.history.rows),
        **counters_of(Measure.VIEWS, live.history.milliseconds),
    }


def figures(live: LivePipeline, metrics: PipelineMetrics, activity: Activity, series: TimeSeries) -> dict[str, Any]:
    """Return the figures of one pipeline for a list of all pipelines.

    :param live: the pipeline
    :param metrics: its own counters
    :param activity: the samples of the last minutes
    :param series: the samples of memory and storage
    :returns: the REST API's ``figures``
    """
    now_ms = int(time.time() * 1000)
    inputs, outputs = live.endpoints.inputs.shown, live.endpoints.outputs.declared
    endpoints: list[InputEndpoint | OutputEndpoint] = [*inputs, *outputs]
    counted = metrics.counters()
    rate = activity.rate(Measure.PROCESSED, now_ms - int(COARSE_S * 1000))
    newest = series.newest
    return {
        "rows_per_second": None if rate is None else round(rate, 3),
        "sparkline": activity.sparkline(now_ms),
        "lag": _find_worst(endpoint.measure_lag() for endpoint in inputs),
        "buffered_records": max(0, counted.input_records - counted.processed_records),
        "processed_records": counted.processed_records,
        "connectors": sum(endpoint.connector is not None for endpoint in inputs) + len(outputs),
        "connector_errors": sum(_errors(endpoint.metrics) for endpoint in endpoints),
        "unhealthy_connectors": [endpoint.name for endpoint in endpoints if not endpoint.health.is_good],
        "memory_bytes": None if newest is None else newest.memory_bytes,
        "storage_bytes": None if newest is None else newest.storage_bytes,
        "warnings": [] if live.circuit.streams is None else live.circuit.streams.warnings,
    }


def _errors(metrics: InputMetrics | OutputMetrics) -> int:
    of_format = metrics.parse_errors if isinstance(metrics, InputMetrics) else metrics.encode_errors
    return metrics.transport_errors.count + of_format.count


def _find_worst(lags: Iterable[Lag | None]) -> dict[str, float | None] | None:
    """Return the largest value of each figure, or None if no input knows its lag."""
    known = [lag for lag in lags if lag is not None]
    if not known:
        return None
    return {
        "records": max((lag.records for lag in known if lag.records is not None), default=None),
        "bytes": max((lag.bytes for lag in known if lag.bytes is not None), default=None),
        "seconds": max((lag.seconds for lag in known if lag.seconds is not None), default=None),
    }
