"""The counters of a pipeline as metrics of a monitoring system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_pipelines.contract.exposition import Metric, MetricKind
from airflow_pipelines.streams.elements import MAX_TIMESTAMP

_GLOBAL = (
    ("records_input_total", MetricKind.COUNTER, "Records received from all inputs.", "total_input_records"),
    ("records_processed_total", MetricKind.COUNTER, "Records that steps have consumed.", "total_processed_records"),
    ("records_completed_total", MetricKind.COUNTER, "Records whose outputs have been delivered.", "total_completed_records"),
    ("records_input_buffered", MetricKind.GAUGE, "Records received and not processed yet.", "buffered_input_records"),
    ("steps_completed_total", MetricKind.COUNTER, "Steps whose outputs have been delivered.", "total_completed_steps"),
    ("storage_bytes", MetricKind.GAUGE, "Bytes in the pipeline's storage folder.", "storage_bytes"),
    ("rss_bytes", MetricKind.GAUGE, "Resident memory of the host's Python process.", "rss_bytes"),
    ("uptime_milliseconds", MetricKind.GAUGE, "Time since the start of the incarnation.", "uptime_msecs"),
)
_INPUT = (
    ("input_connector_records_total", MetricKind.COUNTER, "Records received by an input.", "total_records"),
    ("input_connector_bytes_total", MetricKind.COUNTER, "Bytes received by an input.", "total_bytes"),
    (
        "input_connector_buffered_records",
        MetricKind.GAUGE,
        "Records of an input that wait for a step.",
        "buffered_records",
    ),
    ("input_connector_buffered_bytes", MetricKind.GAUGE, "Bytes of an input that wait for a step.", "buffered_bytes"),
    ("input_connector_parse_errors_total", MetricKind.COUNTER, "Malformed records of an input.", "num_parse_errors"),
    ("input_connector_transport_errors_total", MetricKind.COUNTER, "Transport errors of an input.", "num_transport_errors"),
)
_OF_SOME_INPUTS = (
    (
        "input_connector_iceberg_phase",
        MetricKind.GAUGE,
        "How far an Iceberg input is: 0 while it reads its snapshot, 1 while it follows the table, 2 at its end.",
        "iceberg_phase",
    ),
)
_OUTPUT = (
    ("output_connector_records_total", MetricKind.COUNTER, "Records written by an output.", "transmitted_records"),
    ("output_connector_bytes_total", MetricKind.COUNTER, "Bytes written by an output.", "transmitted_bytes"),
    ("output_connector_buffered_records", MetricKind.GAUGE, "Records that an output keeps in its buffer.", "buffered_records"),
    ("output_connector_queued_records", MetricKind.GAUGE, "Records that a listener has not read yet.", "queued_records"),
    ("output_connector_encode_errors_total", MetricKind.COUNTER, "Records that an output could not write.", "num_encode_errors"),
    ("output_connector_transport_errors_total", MetricKind.COUNTER, "Transport errors of an output.", "num_transport_errors"),
)


def measure(stats: Mapping[str, Any], pipeline: str, memory_limit: int | None) -> list[Metric]:
    """Return the metrics of a pipeline.

    :param stats: the pipeline's statistics (the wire's object)
    :param pipeline: the pipeline's name
    :param memory_limit: the bytes of memory that its configuration allows, or None for no limit
    """
    labels = {"pipeline_name": pipeline}
    metrics = [Metric(name, kind, text, stats["global_metrics"][key], labels) for name, kind, text, key in _GLOBAL]
    text = "The memory that the configuration allows (max_rss_mb, else resources.memory_mb_max); 0 for no limit."
    metrics.append(Metric("max_rss_bytes", MetricKind.GAUGE, text, memory_limit or 0, labels))
    for group, names in (("inputs", _INPUT), ("outputs", _OUTPUT)):
        for name, kind, text, key in names:
            for endpoint in stats[group]:
                place = {**labels, "endpoint": endpoint["endpoint_name"]}
                metrics.append(Metric(name, kind, text, endpoint["metrics"][key], place))
    metrics += [
        Metric(name, kind, text, endpoint["metrics"][key], {**labels, "endpoint": endpoint["endpoint_name"]})
        for name, kind, text, key in _OF_SOME_INPUTS
        for endpoint in stats["inputs"]
        if key in endpoint["metrics"]
    ]
    return [*metrics, *_measure_streams(stats.get("stream_metrics") or {}, labels)]


def _measure_streams(operators: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Metric]:
    """Yield the metrics that the operators of a stream program report, task by task.

    They are gauges, because counters of functions may also go down.
    """
    for uid, operator in operators.items():
        for task in operator["tasks"]:
            place = {**labels, "operator": uid, "task": str(task["task"])}
            yield Metric(
                "stream_state_bytes", MetricKind.GAUGE, "Bytes of an operator's state at rest.", task["state_bytes"], place
            )
            # After the end of all inputs, the watermark is no longer a time.
            if task["watermark"] is not None and task["watermark"] < MAX_TIMESTAMP:
                text = "How far event time has come, in seconds since the epoch."
                yield Metric("stream_watermark_seconds", MetricKind.GAUGE, text, task["watermark"] / 1000, place)
            for name, value in _numbers(task["values"]):
                text = "What a function of a stream program has counted under a name."
                yield Metric("stream_function_metric", MetricKind.GAUGE, text, value, {**place, "metric": name})


def _numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int | float]]:
    """Yield the numbers among some values, with their names. The name of a distribution precedes those of its parts."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", value
