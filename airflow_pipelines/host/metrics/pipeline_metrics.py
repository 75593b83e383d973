"""The record counters and times of a pipeline, and their wire form."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.host.metrics.time_series import EVERY_S, Sample


class PipelineMetrics:
    """A pipeline's record counters and times. All access goes through the methods, from any thread."""

    def __init__(self, incarnation: UUID, storage: Path) -> None:
        self.incarnation = incarnation
        self.initial_start_time = time.time()
        self.start_time = time.time()
        self._started = time.monotonic()
        self._storage = storage
        self._storage_bytes = (0.0, 0)
        self._storage_mb_s = 0.0
        self._busy_s = 0.0
        self._lock = threading.Lock()
        self._counters: dict[str, int] = asdict(Counters())
        self._collected = (0, 0)

    def restore(self, counters: Counters, initial_start_time: float) -> None:
        """Go on counting from the counters of a checkpoint or of the journal.

        :param counters: the counters of the checkpoint or the journal
        :param initial_start_time: the first start of the pipeline, in seconds since the epoch
        """
        with self._lock:
            self._counters = asdict(counters)
            # Rows that were received but not processed will be received again.
            self._counters["input_records"] = counters.processed_records
            self._counters["input_bytes"] = counters.processed_bytes
            # Outputs first deliver the changes that they had not delivered by then.
            self.initial_start_time = initial_start_time

    def add(self, **deltas: int) -> None:
        """Add to counters by name (the fields of :class:`Counters`)."""
        with self._lock:
            for name, delta in deltas.items():
                self._counters[name] += delta

    def set_collected(self, records: int, size_bytes: int) -> None:
        """Set the rows and bytes that the transaction in progress has collected; its step has not come yet."""
        self._collected = (records, size_bytes)

    def complete(self) -> None:
        """Note that everything processed so far has been delivered."""
        with self._lock:
            self._counters["completed_records"] = self._counters["processed_records"]
            self._counters["completed_steps"] = self._counters["initiated_steps"]

    def complete_until(self, reached: Counters) -> None:
        """Note that everything has been delivered that had been processed at an earlier time.

        :param reached: the counters at that time
        """
        with self._lock:
            self._counters["completed_records"] = reached.processed_records
            self._counters["completed_steps"] = reached.initiated_steps

    def busy(self, seconds: float) -> None:
        """Add to the time spent in steps.

        :param seconds: the time of one step
        """
        with self._lock:
            self._busy_s += seconds

    @property
    def busy_s(self) -> float:
        """The seconds spent in steps."""
        return self._busy_s

    def counters(self) -> Counters:
        """Return the current counters."""
        with self._lock:
            return Counters(**self._counters)

    def sample(self) -> Sample:
        """Return a sample of the measures; taken every :data:`~airflow_pipelines.host.metrics.time_series.EVERY_S` seconds."""
        stored = self._measure_stored()
        self._storage_mb_s += stored / 1e6 * EVERY_S
        return Sample(int(time.time() * 1000), self.counters().processed_records, _rss_bytes(), stored)

    def to_wire(
        self, *, state: str, bootstrapping: bool, pipeline_complete: bool, stalled_s: float, transaction: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the wire's ``global_metrics`` object.

        :param state: the pipeline's status on the wire
        :param bootstrapping: True while it evaluates views for a changed program
        :param pipeline_complete: True if all inputs have ended and all of their rows are processed
        :param stalled_s: the seconds that it has been waiting for an output
        """
        counters = self.counters()
        # A transaction has taken the rows that it has collected, although its step comes later.
        processed_records = counters.processed_records + self._collected[0]
        processed_bytes = counters.processed_bytes + self._collected[1]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "state": state,
            "bootstrap_in_progress": bootstrapping,
            **transaction,
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
            "storage_bytes": self._measure_stored(),
            "storage_mb_secs": int(self._storage_mb_s),
            "runtime_elapsed_msecs": int(self._busy_s * 1000),
            "buffered_input_records": counters.input_records - processed_records,
            "buffered_input_bytes": counters.input_bytes - processed_bytes,
            "total_input_records": counters.input_records,
            "total_input_bytes": counters.input_bytes,
            "total_processed_records": processed_records,
            "total_processed_bytes": processed_bytes,
            "total_completed_records": counters.completed_records,
            "output_stall_msecs": int(stalled_s * 1000),
            "total_initiated_steps": counters.initiated_steps,
            "total_completed_steps": counters.completed_steps,
            "pipeline_complete": pipeline_complete,
        }

    def _measure_stored(self) -> int:
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
