"""Counters and error lists."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from airflow_pipelines.connectors.base import CountedError
from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.storage.connector_state import InputCounts
from airflow_pipelines.host.metrics.connector_metrics import InputMetrics
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.state.error_list import KEPT_ERRORS, ErrorList


def test_all_errors_are_counted_and_the_newest_of_each_tag_kept() -> None:
    errors = ErrorList()
    for number in range(KEPT_ERRORS + 5):
        errors.add(CountedError("parse", f"bad {number}", number))
    errors.add(CountedError("transport", "gone"))
    assert errors.count == KEPT_ERRORS + 6
    messages = [entry["message"] for entry in errors.to_wire()]
    assert len(messages) == KEPT_ERRORS + 1
    assert "bad 4" not in messages
    assert {"bad 5", f"bad {KEPT_ERRORS + 4}", "gone"} <= set(messages)
    assert errors.to_wire()[0]["timestamp"].endswith("Z")


def test_errors_and_counters_survive_a_checkpoint() -> None:
    metrics = InputMetrics(total_records=10, total_bytes=100, processed_records=7, processed_bytes=70)
    metrics.parse_errors.extend([CountedError("parse", "bad", 3)], 5)
    again = InputMetrics.from_state(InputCounts.from_json(json.loads(json.dumps(metrics.to_state().to_json()))))
    # What was read but not processed will be read again.
    assert (again.total_records, again.processed_records, again.completed_records) == (7, 7, 7)
    assert again.to_wire()["buffered_records"] == 0
    assert again.parse_errors.count == 5
    assert again.parse_errors.to_wire() == metrics.parse_errors.to_wire()


def test_the_pipelines_counters_go_on(tmp_path: Path) -> None:
    metrics = PipelineMetrics(uuid4(), tmp_path)
    metrics.restore(Counters(input_records=9, processed_records=7, completed_records=6, initiated_steps=3), 1700000000.0)
    metrics.add(input_records=2)
    wire = metrics.to_wire(state="Running", bootstrapping=False, pipeline_complete=False, stalled_s=1.5, transaction={})
    assert wire["total_input_records"] == 9
    assert wire["total_processed_records"] == 7
    assert wire["total_completed_records"] == 6, "what was not delivered then, outputs deliver first"
    assert wire["buffered_input_records"] == 2
    assert wire["initial_start_time"] == 1700000000
    assert (wire["output_stall_msecs"], wire["storage_mb_secs"]) == (1500, 0)


def test_storage_is_counted_over_time(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(b"x" * 2_500_000)
    metrics = PipelineMetrics(uuid4(), tmp_path)
    for _ in range(2):
        assert metrics.sample().storage_bytes == 2_500_000
    wire = metrics.to_wire(state="Running", bootstrapping=False, pipeline_complete=False, stalled_s=0.0, transaction={})
    assert (wire["storage_bytes"], wire["storage_mb_secs"]) == (2_500_000, 5)
