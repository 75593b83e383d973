"""The statistics of a pipeline and of its connectors, and the metrics of its steps.

Every class starts empty (all None) and is read from the wire with ``from_dict``; unknown keys are ignored, so that a newer service
can send more.
"""

# ruff: noqa: RUF009 - _read() gives dataclass fields, so nothing is shared between instances

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from airflow_pipelines.contract.enums import PipelineStatus, TransactionStatus


def parse_time(value: str) -> datetime:
    """Parse an RFC 3339 time as an aware datetime.

    :param value: the time, such as ``2026-05-08T12:00:00.000001Z``
    :returns: the time with its zone; UTC if it names none
    """
    time = datetime.fromisoformat(value)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _epoch_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _read(parse: Callable[[Any], Any]) -> Any:
    """Return a dataclass field, None by default, whose wire value is parsed with ``parse``."""
    return field(default=None, metadata={"parse": parse})


@dataclass
class _WireStats:
    """The base of the statistics classes."""

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form.

        :param d: the mapping of the service's answer
        :returns: the statistics; missing and null values stay None
        """
        result = cls()
        for entry in fields(cls):
            value = d.get(entry.name)
            if value is not None:
                parse = entry.metadata.get("parse")
                setattr(result, entry.name, value if parse is None else parse(value))
        return result


@dataclass
class CommitProgressSummary(_WireStats):
    """The progress of a transaction's commit, in operators and in records of the operators under way."""

    completed: int | None = None
    in_progress: int | None = None
    remaining: int | None = None
    in_progress_processed_records: int | None = None
    in_progress_total_records: int | None = None


@dataclass
class ConnectorTransactionPhase(_WireStats):
    """The phase of a connector in a transaction."""

    phase: str | None = None
    label: str | None = None


def _parse_phase(value: str | Mapping[str, Any]) -> ConnectorTransactionPhase:
    if isinstance(value, str):
        return ConnectorTransactionPhase(phase=value)
    return ConnectorTransactionPhase.from_dict(value)


@dataclass
class TransactionInitiators(_WireStats):
    """The participants of the current transaction."""

    transaction_id: int | None = None
    initiated_by_api: str | None = None
    initiated_by_connectors: dict[str, ConnectorTransactionPhase] | None = _read(
        lambda phases: {name: _parse_phase(phase) for name, phase in phases.items()}
    )


def _state(value: str) -> PipelineStatus:
    return PipelineStatus.STOPPED if value == "Terminated" else PipelineStatus.from_str(value)


@dataclass
class GlobalPipelineMetrics(_WireStats):
    """The counters of a whole pipeline. Records are input rows, sizes are bytes, durations milliseconds unless named otherwise."""

    state: PipelineStatus | None = _read(_state)
    bootstrap_in_progress: bool | None = None
    transaction_status: TransactionStatus | None = _read(TransactionStatus.from_str)
    transaction_id: int | None = None
    transaction_msecs: int | None = None
    transaction_records: int | None = None
    transaction_initiators: TransactionInitiators | None = _read(TransactionInitiators.from_dict)
    commit_progress: CommitProgressSummary | None = _read(CommitProgressSummary.from_dict)
    concurrent_bootstrap_phase: str | None = None
    concurrent_bootstrap_progress: Any = None
    rss_bytes: int | None = None
    memory_pressure: str | None = None
    memory_pressure_epoch: int | None = None
    cpu_msecs: int | None = None
    uptime_msecs: int | None = None
    start_time: datetime | None = _read(_epoch_time)
    incarnation_uuid: UUID | None = _read(UUID)
    initial_start_time: datetime | None = _read(_epoch_time)
    storage_bytes: int | None = None
    storage_mb_secs: int | None = None
    runtime_elapsed_msecs: int | None = None
    buffered_input_records: int | None = None
    buffered_input_bytes: int | None = None
    total_input_records: int | None = None
    total_input_bytes: int | None = None
    total_processed_records: int | None = None
    total_processed_bytes: int | None = None
    total_completed_records: int | None = None
    output_stall_msecs: int | None = None
    total_initiated_steps: int | None = None
    total_completed_steps: int | None = None
    pipeline_complete: bool | None = None


@dataclass
class ConnectorError(_WireStats):
    """A recent error of a connector. ``index`` counts the connector's errors, ``tag`` groups them."""

    timestamp: datetime | None = _read(parse_time)
    index: int | None = None
    tag: str | None = None
    message: str | None = None


def _errors(entries: list[Mapping[str, Any]]) -> list[ConnectorError]:
    return [ConnectorError.from_dict(entry) for entry in entries]


@dataclass
class ConnectorHealth(_WireStats):
    """The health of a connector: its ability to work at the moment."""

    HEALTHY: ClassVar[str] = "Healthy"
    UNHEALTHY: ClassVar[str] = "Unhealthy"

    status: str | None = None
    description: str | None = None


@dataclass
class CompletedWatermark(_WireStats):
    """The newest position in the input of a connector up to which its data is processed and delivered."""

    metadata: Any = None
    ingested_at: datetime | None = _read(parse_time)
    processed_at: datetime | None = _read(parse_time)
    completed_at: datetime | None = _read(parse_time)


@dataclass
class ConnectorLag(_WireStats):
    """The lag of an input behind its source. None if the source does not report it.

    :param records: the number of records of the source that were not read yet
    :param bytes: the number of bytes of the source that were not read yet
    :param seconds: the age of the newest record when it was read, or the age of the oldest record that was not read yet
    """

    records: int | None = None
    bytes: int | None = None
    seconds: float | None = None


@dataclass
class InputEndpointMetrics(_WireStats):
    """The counters of an input connector, in records and bytes.

    :param processing_latency_p99_micros: the 99th percentile, over its newest batches, of the microseconds from arrival to the end
        of processing
    :param lag: the lag behind its source; None if the source does not report it, and before anything is known
    """

    total_bytes: int | None = None
    total_records: int | None = None
    buffered_records: int | None = None
    buffered_bytes: int | None = None
    num_transport_errors: int | None = None
    num_parse_errors: int | None = None
    end_of_input: bool | None = None
    processing_latency_p99_micros: int | None = None
    lag: ConnectorLag | None = _read(ConnectorLag.from_dict)


@dataclass
class InputEndpointStatus(_WireStats):
    """The status of an input connector.

    :param endpoint_name: ``<table>.<connector>``
    """

    endpoint_name: str | None = None
    config: dict[str, Any] | None = None
    metrics: InputEndpointMetrics | None = _read(InputEndpointMetrics.from_dict)
    fatal_error: str | None = None
    parse_errors: list[ConnectorError] | None = _read(_errors)
    transport_errors: list[ConnectorError] | None = _read(_errors)
    health: ConnectorHealth | None = _read(ConnectorHealth.from_dict)
    paused: bool | None = None
    barrier: bool | None = None
    completed_frontier: CompletedWatermark | None = _read(CompletedWatermark.from_dict)


@dataclass
class OutputEndpointMetrics(_WireStats):
    """The counters of an output connector, in records, batches and bytes."""

    transmitted_records: int | None = None
    transmitted_bytes: int | None = None
    queued_records: int | None = None
    queued_batches: int | None = None
    buffered_records: int | None = None
    buffered_batches: int | None = None
    num_encode_errors: int | None = None
    num_transport_errors: int | None = None
    total_processed_input_records: int | None = None
    total_processed_steps: int | None = None
    memory: int | None = None


@dataclass
class OutputEndpointStatus(_WireStats):
    """The status of an output connector.

    :param endpoint_name: ``<view>.<connector>``
    """

    endpoint_name: str | None = None
    config: dict[str, Any] | None = None
    metrics: OutputEndpointMetrics | None = _read(OutputEndpointMetrics.from_dict)
    fatal_error: str | None = None
    encode_errors: list[ConnectorError] | None = _read(_errors)
    transport_errors: list[ConnectorError] | None = _read(_errors)
    health: ConnectorHealth | None = _read(ConnectorHealth.from_dict)


@dataclass
class StreamTaskMetrics(_WireStats):
    """The metrics of one task of a stream program's operator.

    :param task: its number
    :param watermark: the watermark in milliseconds since the epoch; None before one is known
    :param state_bytes: the approximate size of its state at rest
    :param waiting_keys: the number of keys with timers that wait for event time; None if it was not counted, as while event time
        moves
    :param values: the values of its functions' metrics, by name; a distribution is an object with ``count``, ``sum``, ``min`` and
        ``max``. They are only for statistics: they start anew after a restart
    """

    task: int | None = None
    watermark: int | None = None
    state_bytes: int | None = None
    waiting_keys: int | None = None
    values: dict[str, Any] | None = None


@dataclass
class StreamOperatorMetrics(_WireStats):
    """The metrics of a stream program's operator.

    :param name: its name for people
    :param tasks: its tasks, in the order of their numbers
    """

    name: str | None = None
    tasks: list[StreamTaskMetrics] | None = _read(lambda entries: [StreamTaskMetrics.from_dict(entry) for entry in entries])

    @property
    def watermark(self) -> int | None:
        """The lowest watermark of the tasks that have one; None if none has."""
        return min((task.watermark for task in self.tasks or () if task.watermark is not None), default=None)

    @property
    def state_bytes(self) -> int:
        """The size of the state of all tasks at rest."""
        return sum(task.state_bytes or 0 for task in self.tasks or ())

    @property
    def waiting_keys(self) -> int:
        """The number of keys of all tasks whose timers wait for event time, as far as they were counted."""
        return sum(task.waiting_keys or 0 for task in self.tasks or ())

    def total(self, metric: str) -> int | float:
        """Return the sum of a counter, meter or gauge over all tasks; 0 if no task has it.

        :param metric: its name, with the names of its groups before it, separated by points
        :raises TypeError: when it is a distribution and not a number
        """
        values: list[int | float] = [task.values[metric] for task in self.tasks or () if task.values and metric in task.values]
        if any(isinstance(value, Mapping) for value in values):
            raise TypeError(f"the metric {metric!r} is a distribution: read it from each task's values")
        return sum(values)


def _operators(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, StreamOperatorMetrics]:
    return {uid: StreamOperatorMetrics.from_dict(entry) for uid, entry in entries.items()}


@dataclass
class PipelineStatistics(_WireStats):
    """The statistics of a pipeline, its inputs and its outputs. ``suspend_error`` is the reason why it cannot checkpoint now.

    :param stream_metrics: the metrics of its stream program's operators, by uid; None without a stream program
    :param warnings: conditions that somebody may want to change, such as an input that holds event time back
    :param bootstrap_progress: while changed views are evaluated, the number ``rows_read`` out of the stored ``rows`` that the
        evaluation reads; None at other times
    """

    global_metrics: GlobalPipelineMetrics | None = _read(GlobalPipelineMetrics.from_dict)
    inputs: list[InputEndpointStatus] | None = _read(lambda entries: [InputEndpointStatus.from_dict(entry) for entry in entries])
    outputs: list[OutputEndpointStatus] | None = _read(lambda entries: [OutputEndpointStatus.from_dict(entry) for entry in entries])
    suspend_error: Any = None
    checkpoint_activity: dict[str, Any] | None = None
    permanent_checkpoint_errors: Any = None
    stream_metrics: dict[str, StreamOperatorMetrics] | None = _read(_operators)
    warnings: list[str] | None = None
    bootstrap_progress: dict[str, int] | None = None

    @property
    def failed_outputs(self) -> dict[str, str]:
        """The errors of failed outputs, by their names. Such an output delivers nothing before a restart of the pipeline."""
        return {str(output.endpoint_name): output.fatal_error for output in self.outputs or () if output.fatal_error is not None}

    @property
    def stream_state_bytes(self) -> int:
        """The size of the state of the stream program's operators at rest."""
        return sum(operator.state_bytes for operator in (self.stream_metrics or {}).values())

    @property
    def stream_watermark(self) -> int | None:
        """The lowest watermark of all operators; None if none is known."""
        known = (operator.watermark for operator in (self.stream_metrics or {}).values())
        return min((watermark for watermark in known if watermark is not None), default=None)


@dataclass
class OperatorFigures(_WireStats):
    """The cost of one view in a step.

    :param strategy: the strategy of its evaluation in this step
    :param reason: the reason for a full recomputation, if there was one: ``message``, the ``expression`` that requires it, and its
        place in the program
    :param rows_in: the number of changed rows that it read
    :param rows_out: the number of its own changed rows
    """

    view: str | None = None
    strategy: str | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    duration_ms: float | None = None
    reason: dict[str, Any] | None = None


@dataclass
class StepFigures(_WireStats):
    """The cost of one step.

    :param table_rows: the number of changed rows of each table that had some; None if the host is of a release that does not send
        it
    """

    step: int | None = None
    duration_ms: float | None = None
    input_rows: int | None = None
    operators: list[OperatorFigures] | None = _read(lambda entries: [OperatorFigures.from_dict(entry) for entry in entries])
    table_rows: dict[str, int] | None = None
