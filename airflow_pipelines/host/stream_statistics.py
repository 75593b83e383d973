"""What a stream program says of itself, as the statistics of its pipeline show it."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.engine.streams.statistics import StreamStatistics
from airflow_pipelines.program.streams import StreamProgram


def statistics_to_wire(program: StreamProgram, statistics: StreamStatistics) -> dict[str, Any]:
    """``stream_metrics`` by the uids of the operators, and ``warnings``.

    :param program: the stream program
    :param statistics: what it has said
    """
    operators: dict[str, dict[str, Any]] = {operator.uid: {"name": operator.name, "tasks": []} for operator in program.operators}
    for (uid, task), metrics in sorted(statistics.metrics.items()):
        if uid in operators:
            operators[uid]["tasks"].append(
                {
                    "task": task,
                    "watermark": metrics.watermark,
                    "state_pages": metrics.pages,
                    "state_bytes": metrics.bytes,
                    "values": dict(metrics.counted),
                }
            )
    return {"stream_metrics": operators, "warnings": statistics.warnings}
