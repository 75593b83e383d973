"""The statistics of a pipeline as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from airflow_pipelines.common.readable import readable_size
from airflow_pipelines.contract.stats import PipelineStatistics, StreamOperatorMetrics
from airflow_pipelines.streams.elements import MAX_TIMESTAMP


def statistics_tables(statistics: PipelineStatistics) -> Iterator[Table]:
    """Yield the tables that show a pipeline's statistics, skipping those that would be empty.

    :param statistics: the statistics
    :returns: the table of its connectors, and the table of its stream program's operators
    """
    if statistics.inputs or statistics.outputs:
        yield _connectors(statistics)
    if statistics.stream_metrics:
        yield _operators(statistics.stream_metrics)


def _connectors(statistics: PipelineStatistics) -> Table:
    table = _table("connector", "way", "records", "bytes", "waiting", "errors", "state")
    for source in statistics.inputs or ():
        read = source.metrics
        if read is not None:
            state = source.fatal_error or ("paused" if source.paused else "ended" if read.end_of_input else "reads")
            errors = (read.num_parse_errors or 0) + (read.num_transport_errors or 0)
            counts = (read.total_records or 0, readable_size(read.total_bytes or 0), read.buffered_records or 0, errors)
            _add(table, source.endpoint_name, "in", *counts, state)
    for target in statistics.outputs or ():
        written = target.metrics
        if written is not None:
            errors = (written.num_encode_errors or 0) + (written.num_transport_errors or 0)
            waiting = (written.queued_records or 0) + (written.buffered_records or 0)
            counts = (written.transmitted_records or 0, readable_size(written.transmitted_bytes or 0), waiting, errors)
            _add(table, target.endpoint_name, "out", *counts, target.fatal_error or "writes")
    return table


def _operators(operators: Mapping[str, StreamOperatorMetrics]) -> Table:
    table = _table("operator", "name", "tasks", "event time", "state", "counted")
    for uid, operator in operators.items():
        tasks, state = len(operator.tasks or ()), readable_size(operator.state_bytes)
        _add(table, uid, operator.name, tasks, _event_time(operator.watermark), state, _format_totals(operator))
    return table


def _event_time(watermark: int | None) -> str:
    if watermark is None:
        return ""
    if watermark >= MAX_TIMESTAMP:
        return "at its end"
    try:
        return datetime.fromtimestamp(watermark / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        # A program may use any unit of time.
        return str(watermark)


def _format_totals(operator: StreamOperatorMetrics) -> str:
    """Return the sums over all tasks; values that cannot be added are shown for each task."""
    names = dict.fromkeys(name for task in operator.tasks or () for name in task.values or ())
    return ", ".join(f"{name}={_total(operator, name)}" for name in names)


def _total(operator: StreamOperatorMetrics, name: str) -> str:
    values = [task.values[name] for task in operator.tasks or () if task.values and name in task.values]
    if all(isinstance(value, int | float) for value in values):
        return str(operator.total(name))
    return " ".join(map(_format_value, values))


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} {each}' for name, each in value.items())})"
    return str(value)


def _table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column)
    return table


def _add(table: Table, *values: Any) -> None:
    # Names from users may look like rich's markup.
    table.add_row(*[Text("" if value is None else str(value)) for value in values])
