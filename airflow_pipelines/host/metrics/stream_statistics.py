"""The statistics that a stream program reports about itself, as its pipeline shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_pipelines.engine.streams.statistics import StreamStatistics
from airflow_pipelines.program.streams import StreamProgram

_LARGEST = 2**63


def statistics_to_wire(program: StreamProgram, statistics: StreamStatistics) -> dict[str, Any]:
    """Return ``stream_metrics`` by the uids of the operators, and ``warnings``.

    :param program: the stream program
    :param statistics: the statistics that it has reported
    """
    operators: dict[str, dict[str, Any]] = {operator.uid: {"name": operator.name, "tasks": []} for operator in program.operators}
    for (uid, task), metrics in sorted(statistics.metrics.items()):
        if uid in operators:
            operators[uid]["tasks"].append(
                {
                    "task": task,
                    "watermark": metrics.watermark,
                    "state_bytes": metrics.bytes,
                    "waiting_keys": metrics.waiting_keys,
                    "values": {name: _plain(value) for name, value in metrics.counted.items()},
                }
            )
    return {"stream_metrics": operators, "warnings": statistics.warnings}


def _plain(value: Any) -> Any:
    """Return a value in a form that JSON and monitoring systems can represent: a gauge may return anything."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if value is None or isinstance(value, bool | str):
        return value
    is_number = isinstance(value, int | float) and abs(value) < _LARGEST
    return value if is_number else str(value)
