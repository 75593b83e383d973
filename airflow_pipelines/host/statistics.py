"""Counters of connectors and pipelines, and their wire form."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from airflow_pipelines.connectors.base import ConnectorError
from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.storage.connector_state import ErrorsState, InputCounts, KeptError, OutputCounts

KEPT_ERRORS = 100
"""Newest errors kept per tag."""


class ErrorList:
    """Errors of one kind of one connector: all are counted, the newest hundred per tag are kept."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: dict[str, deque[ConnectorError]] = {}

    def add(self, error: ConnectorError) -> None:
        """Count and keep one error."""
        self.extend([error], 1)

    def extend(self, errors: Iterable[ConnectorError], count: int) -> None:
        """Count ``count`` errors, of which ``errors`` are described."""
        self.count += count
        for error in errors:
            self._kept.setdefault(error.tag, deque(maxlen=KEPT_ERRORS)).append(error)

    def to_wire(self) -> list[dict[str, Any]]:
        """The kept errors, oldest first."""
        return [error.to_json() for error in self.to_state().kept]

    def to_state(self) -> ErrorsState:
        """What a checkpoint keeps."""
        errors = sorted((error for kept in self._kept.values() for error in kept), key=lambda error: error.timestamp)
        return ErrorsState(self.count, tuple(KeptError(stamp(e.timestamp), e.index, e.tag, e.message) for e in errors))

    @classmethod
    def from_state(cls, state: ErrorsState) -> ErrorList:
        """The list that :meth:`to_state` described."""
        errors = cls()
        for kept in state.kept:
            when = datetime.fromisoformat(kept.timestamp)
            errors.extend([ConnectorError(kept.tag, kept.message, kept.index, when)], 0)
        errors.count = state.count
        return errors


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class InputFigures:
    """Counters of one input. Records: rows received, then consumed by steps, then with all their outputs delivered.

    ``durable_records``: those whose effect is on disk, in a checkpoint or in the journal, so that no kill can lose it.
    """

    total_records: int = 0
    total_bytes: int = 0
    processed_records: int = 0
    processed_bytes: int = 0
    completed_records: int = 0
    durable_records: int = 0
    end_of_input: bool = False
    parse_errors: ErrorList = field(default_factory=ErrorList)
    transport_errors: ErrorList = field(default_factory=ErrorList)

    def metrics(self) -> dict[str, Any]:
        """The wire's ``metrics`` object."""
        return {
            "total_bytes": self.total_bytes,
            "total_records": self.total_records,
            "buffered_records": self.total_records - self.processed_records,
            "buffered_bytes": self.total_bytes - self.processed_bytes,
            "num_transport_errors": self.transport_errors.count,
            "num_parse_errors": self.parse_errors.count,
            "end_of_input": self.end_of_input,
        }

    def to_state(self, records: int = 0, size_bytes: int = 0) -> InputCounts:
        """What a checkpoint keeps: buffered records are not part of it, because they will be read again.

        :param records: rows that a step takes which is not committed yet
        :param size_bytes: their bytes
        """
        return InputCounts(
            self.processed_records + records,
            self.processed_bytes + size_bytes,
            self.parse_errors.to_state(),
            self.transport_errors.to_state(),
        )

    @classmethod
    def from_state(cls, state: InputCounts) -> InputFigures:
        """The counters that :meth:`to_state` described."""
        records, size = state.records, state.bytes
        return cls(
            total_records=records,
            total_bytes=size,
            processed_records=records,
            processed_bytes=size,
            completed_records=records,
            durable_records=records,
            parse_errors=ErrorList.from_state(state.parse_errors),
            transport_errors=ErrorList.from_state(state.transport_errors),
        )


@dataclass
class OutputFigures:
    """Counters of one output."""

    transmitted_records: int = 0
    transmitted_bytes: int = 0
    total_processed_input_records: int = 0
    total_processed_steps: int = 0
    encode_errors: ErrorList = field(default_factory=ErrorList)
    transport_errors: ErrorList = field(default_factory=ErrorList)

    def metrics(self) -> dict[str, Any]:
        """The wire's ``metrics`` object. Outputs are written within the step, so nothing is ever queued."""
        return {
            "transmitted_records": self.transmitted_records,
            "transmitted_bytes": self.transmitted_bytes,
            "queued_records": 0,
            "queued_batches": 0,
            "buffered_records": 0,
            "buffered_batches": 0,
            "num_encode_errors": self.encode_errors.count,
            "num_transport_errors": self.transport_errors.count,
            "total_processed_input_records": self.total_processed_input_records,
            "total_processed_steps": self.total_processed_steps,
            "memory": 0,
        }

    def to_state(self) -> OutputCounts:
        """What a checkpoint keeps."""
        return OutputCounts(
            self.transmitted_records, self.transmitted_bytes, self.encode_errors.to_state(), self.transport_errors.to_state()
        )

    @classmethod
    def from_state(cls, state: OutputCounts) -> OutputFigures:
        """The counters that :meth:`to_state` described."""
        return cls(
            transmitted_records=state.transmitted_records,
            transmitted_bytes=state.transmitted_bytes,
            encode_errors=ErrorList.from_state(state.encode_errors),
            transport_errors=ErrorList.from_state(state.transport_errors),
        )


class PipelineFigures:
    """A pipeline's record counters and times. All access goes through the methods, from any thread."""

    def __init__(self, incarnation: UUID, storage: Path) -> None:
        self.incarnation = incarnation
        self.initial_start_time = time.time()
        self.start_time = time.time()
        self._started = time.monotonic()
        self._storage = storage
        self._storage_bytes = (0.0, 0)
        self._busy_s = 0.0
        self._lock = threading.Lock()
        self._counters: dict[str, int] = asdict(Counters())

    def restore(self, counters: Counters, initial_start_time: float) -> None:
        """Go on counting where a checkpoint or the journal stopped."""
        with self._lock:
            self._counters = asdict(counters)
            # What had been received but not processed will be received again.
            self._counters["input_records"] = counters.processed_records
            self._counters["input_bytes"] = counters.processed_bytes
            self._counters["completed_records"] = counters.processed_records
            self._counters["completed_steps"] = counters.initiated_steps
            self.initial_start_time = initial_start_time

    def add(self, **deltas: int) -> None:
        """Add to counters by name (the fields of :class:`Counters`)."""
        with self._lock:
            for name, delta in deltas.items():
                self._counters[name] += delta

    def complete(self) -> None:
        """Everything processed so far has been delivered."""
        with self._lock:
            self._counters["completed_records"] = self._counters["processed_records"]
            self._counters["completed_steps"] = self._counters["initiated_steps"]

    def busy(self, seconds: float) -> None:
        """Add to the time spent in steps."""
        with self._lock:
            self._busy_s += seconds

    def counters(self) -> Counters:
        """The counters as they stand."""
        with self._lock:
            return Counters(**self._counters)

    def to_wire(self, *, state: str, bootstrapping: bool, pipeline_complete: bool) -> dict[str, Any]:
        """The wire's ``global_metrics`` object."""
        counters = self.counters()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "state": state,
            "bootstrap_in_progress": bootstrapping,
            "transaction_status": "NoTransaction",
            "transaction_id": 0,
            "transaction_msecs": None,
            "transaction_records": None,
            "commit_progress": None,
            "transaction_initiators": {"transaction_id": None, "initiated_by_api": None, "initiated_by_connectors": {}},
            "concurrent_bootstrap_phase": None,
            "concurrent_bootstrap_progress": None,
            "rss_bytes": _rss_bytes(),
            "memory_pressure": "low",
            "memory_pressure_epoch": 0,
            "cpu_msecs": int((usage.ru_utime + usage.ru_stime) * 1000),
            "uptime_msecs": int((time.monotonic() - self._started) * 1000),
            "start_time": int(self.start_time),
            "incarnation_uuid": str(self.incarnation),
            "initial_start_time": int(self.initial_start_time),
            "storage_bytes": self._stored(),
            "storage_mb_secs": 0,
            "runtime_elapsed_msecs": int(self._busy_s * 1000),
            "buffered_input_records": counters.input_records - counters.processed_records,
            "buffered_input_bytes": counters.input_bytes - counters.processed_bytes,
            "total_input_records": counters.input_records,
            "total_input_bytes": counters.input_bytes,
            "total_processed_records": counters.processed_records,
            "total_processed_bytes": counters.processed_bytes,
            "total_completed_records": counters.completed_records,
            "output_stall_msecs": 0,
            "total_initiated_steps": counters.initiated_steps,
            "total_completed_steps": counters.completed_steps,
            "pipeline_complete": pipeline_complete,
        }

    def _stored(self) -> int:
        # Walking the folder on every poll of a waiting client would cost more than the pipeline itself.
        when, size = self._storage_bytes
        now = time.monotonic()
        if now - when > 5.0 or when == 0.0:
            size = _folder_size(self._storage)
            self._storage_bytes = (now, size)
        return size


def _folder_size(folder: Path) -> int:
    size = 0
    for base, _, names in os.walk(folder):
        for name in names:
            # Files come and go while the folder is walked.
            with suppress(FileNotFoundError):
                size += (Path(base) / name).stat().st_size
    return size


def _rss_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
