"""A pipeline's counters in the form that monitoring systems read."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured value; ``kind`` is ``counter`` or ``gauge``."""

    name: str
    kind: str
    help: str
    value: float
    labels: Mapping[str, str]

    def to_wire(self) -> dict[str, Any]:
        """The metric as JSON."""
        return {"name": self.name, "type": self.kind, "help": self.help, "labels": dict(self.labels), "value": self.value}


_GLOBAL = (
    ("records_input_total", "counter", "Records received from all inputs.", "total_input_records"),
    ("records_processed_total", "counter", "Records that steps have consumed.", "total_processed_records"),
    ("records_completed_total", "counter", "Records whose outputs have been delivered.", "total_completed_records"),
    ("records_input_buffered", "gauge", "Records received and not processed yet.", "buffered_input_records"),
    ("steps_completed_total", "counter", "Steps whose outputs have been delivered.", "total_completed_steps"),
    ("storage_bytes", "gauge", "Bytes in the pipeline's storage folder.", "storage_bytes"),
    ("rss_bytes", "gauge", "Resident memory of the host's Python process.", "rss_bytes"),
    ("uptime_milliseconds", "gauge", "Time since the start of the incarnation.", "uptime_msecs"),
)
_INPUT = (
    ("input_connector_records_total", "Records received by an input.", "total_records"),
    ("input_connector_parse_errors_total", "Malformed records of an input.", "num_parse_errors"),
    ("input_connector_transport_errors_total", "Transport errors of an input.", "num_transport_errors"),
)
_OUTPUT = (
    ("output_connector_records_total", "Records written by an output.", "transmitted_records"),
    ("output_connector_transport_errors_total", "Transport errors of an output.", "num_transport_errors"),
)


def measure(stats: Mapping[str, Any], pipeline: str) -> list[Metric]:
    """The metrics in a pipeline's statistics (the wire's object)."""
    labels = {"pipeline_name": pipeline}
    found = [Metric(name, kind, text, stats["global_metrics"][key], labels) for name, kind, text, key in _GLOBAL]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found.append(Metric("max_rss_bytes", "gauge", "Peak resident memory of the host's Python process.", peak, labels))
    for group, names in (("inputs", _INPUT), ("outputs", _OUTPUT)):
        for name, text, key in names:
            for endpoint in stats[group]:
                place = {**labels, "endpoint": endpoint["endpoint_name"]}
                found.append(Metric(name, "counter", text, endpoint["metrics"][key], place))
    return found


def exposition(metrics: Iterable[Metric]) -> str:
    """The metrics as Prometheus text; those of one name stand together."""
    lines: list[str] = []
    last = ""
    for metric in metrics:
        if metric.name != last:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            last = metric.name
        labels = ",".join(f'{name}="{_escape(value)}"' for name, value in metric.labels.items())
        lines.append(f"{metric.name}{{{labels}}} {metric.value}")
    return "\n".join(lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
