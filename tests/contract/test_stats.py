"""Statistics: empty at first, read from the wire, unknown keys ignored."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from airflow_pipelines.contract import stats
from airflow_pipelines.contract.enums import PipelineStatus, TransactionStatus

ATTRIBUTES = {
    "CommitProgressSummary": "",
    "CompletedWatermark": "",
    "ConnectorError": "",
    "ConnectorHealth": "HEALTHY UNHEALTHY",
    "ConnectorTransactionPhase": "label phase",
    "GlobalPipelineMetrics": (
        "bootstrap_in_progress buffered_input_bytes buffered_input_records commit_progress cpu_msecs incarnation_uuid "
        "initial_start_time output_stall_msecs pipeline_complete rss_bytes runtime_elapsed_msecs start_time state storage_bytes "
        "storage_mb_secs total_completed_records total_completed_steps total_initiated_steps total_input_bytes "
        "total_input_records total_processed_bytes total_processed_records transaction_id transaction_initiators "
        "transaction_msecs transaction_records transaction_status uptime_msecs"
    ),
    "InputEndpointMetrics": (
        "buffered_bytes buffered_records end_of_input num_parse_errors num_transport_errors total_bytes total_records"
    ),
    "InputEndpointStatus": (
        "barrier completed_frontier config endpoint_name fatal_error health metrics parse_errors paused transport_errors"
    ),
    "OutputEndpointMetrics": (
        "buffered_batches buffered_records memory num_encode_errors num_transport_errors queued_batches queued_records "
        "total_processed_input_records total_processed_steps transmitted_bytes transmitted_records"
    ),
    "OutputEndpointStatus": "config encode_errors endpoint_name fatal_error health metrics transport_errors",
    "PipelineStatistics": "global_metrics inputs outputs suspend_error",
    "TransactionInitiators": "initiated_by_api initiated_by_connectors transaction_id",
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_classes_start_empty_and_have_the_references_attributes(name: str) -> None:
    empty = getattr(stats, name)()
    for attribute in ATTRIBUTES[name].split():
        value = getattr(empty, attribute)
        assert attribute.isupper() or value is None
    assert getattr(stats, name).from_dict({"something": "new"}) == empty


def test_a_whole_answer_is_read() -> None:
    when = "2026-05-08T12:00:00.000001Z"
    error = {"timestamp": when, "index": 3, "tag": "row", "message": "bad"}
    answer = {
        "global_metrics": {
            "state": "Running",
            "transaction_status": "NoTransaction",
            "start_time": 1_778_241_600,
            "incarnation_uuid": "01900000-0000-7000-8000-000000000000",
            "total_input_records": 0,
            "pipeline_complete": False,
            "transaction_initiators": {"transaction_id": 1, "initiated_by_connectors": {"c": {"phase": "Started", "label": None}}},
        },
        "inputs": [
            {
                "endpoint_name": "t.c",
                "config": {"stream": "t"},
                "metrics": {"total_records": 5, "end_of_input": True},
                "parse_errors": [error],
                "health": {"status": "Healthy"},
                "completed_frontier": {"metadata": {"file": "a"}, "completed_at": when},
            }
        ],
        "outputs": [{"endpoint_name": "v.o", "metrics": {"transmitted_records": 2}}],
        "suspend_error": {"Temporary": ["Replaying"]},
    }
    read = stats.PipelineStatistics.from_dict(answer)
    assert read.global_metrics is not None
    assert read.global_metrics.state is PipelineStatus.RUNNING
    assert read.global_metrics.transaction_status is TransactionStatus.NoTransaction
    assert read.global_metrics.start_time == datetime(2026, 5, 8, 12, tzinfo=UTC)
    assert read.global_metrics.incarnation_uuid == UUID("01900000-0000-7000-8000-000000000000")
    assert read.global_metrics.total_input_records == 0
    assert read.global_metrics.pipeline_complete is False
    assert read.global_metrics.transaction_initiators is not None
    assert read.global_metrics.transaction_initiators.initiated_by_connectors == {"c": stats.ConnectorTransactionPhase("Started")}
    [source] = read.inputs or []
    assert source.metrics == stats.InputEndpointMetrics(total_records=5, end_of_input=True)
    assert source.parse_errors == [stats.ConnectorError(datetime(2026, 5, 8, 12, 0, 0, 1, UTC), 3, "row", "bad")]
    assert source.health == stats.ConnectorHealth(stats.ConnectorHealth.HEALTHY)
    assert source.completed_frontier is not None
    assert source.completed_frontier.metadata == {"file": "a"}
    assert read.outputs == [stats.OutputEndpointStatus("v.o", metrics=stats.OutputEndpointMetrics(transmitted_records=2))]
    assert read.suspend_error == {"Temporary": ["Replaying"]}


def test_a_terminated_engine_is_a_stopped_pipeline() -> None:
    assert stats.GlobalPipelineMetrics.from_dict({"state": "Terminated"}).state is PipelineStatus.STOPPED


def test_operators_of_stream_programs_are_summed_over_their_tasks() -> None:
    spread = {"count": 1, "sum": 5, "min": 5, "max": 5}
    tasks = [
        {"task": 0, "watermark": 2000, "state_bytes": 100, "values": {"late": 2, "amount": spread}},
        {"task": 1, "watermark": None, "state_bytes": 50},
        {"task": 2, "watermark": 1000, "state_bytes": 7, "values": {"late": 3}},
    ]
    answer = {"stream_metrics": {"score": {"name": "Score", "tasks": tasks}, "map": {"name": "Map", "tasks": [{"task": 0}]}}}
    read = stats.PipelineStatistics.from_dict(answer | {"warnings": ["split 3 of cards gives nothing"]})
    assert read.stream_metrics is not None
    score = read.stream_metrics["score"]
    assert (score.name, score.watermark, score.state_bytes) == ("Score", 1000, 157)
    assert (score.total("late"), score.total("never")) == (5, 0)
    with pytest.raises(TypeError, match="is a distribution"):
        score.total("amount")
    assert score.tasks is not None
    assert score.tasks[0].values == {"late": 2, "amount": spread}
    assert (read.stream_metrics["map"].watermark, read.stream_metrics["map"].state_bytes) == (None, 0)
    assert (read.stream_watermark, read.stream_state_bytes) == (1000, 157)
    assert read.warnings == ["split 3 of cards gives nothing"]


def test_a_pipeline_of_sql_has_no_operators() -> None:
    read = stats.PipelineStatistics.from_dict({"global_metrics": {}})
    assert (read.stream_metrics, read.stream_watermark, read.stream_state_bytes, read.warnings) == (None, None, 0, None)
