from __future__ import annotations

import json
from collections import defaultdict

from airflow_pipelines.contract.exposition import exposition
from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.engine.streams.statistics import StreamStatistics
from airflow_pipelines.host.metrics.monitoring import measure
from airflow_pipelines.host.metrics.stream_statistics import statistics_to_wire
from airflow_pipelines.program.streams import StreamOperator, StreamProgram
from airflow_pipelines.streams.elements import MAX_TIMESTAMP
from airflow_pipelines.streams.worker.messages import Stepped, TaskMetrics

COUNTERS: dict[str, int] = defaultdict(int)


def test_clients_read_what_the_host_writes() -> None:
    operators = (StreamOperator("score", "Score", "process", "f"), StreamOperator("quiet", "Map", "map", "g"))
    statistics = StreamStatistics()
    score = {("score", 1): TaskMetrics(10, 300, {"late": 4}), ("score", 0): TaskMetrics(None, 100, {"late": 1})}
    statistics.take(Stepped(metrics={**score, ("gone", 0): TaskMetrics(1)}, warnings=["cards gives nothing"]))
    wire = json.loads(json.dumps(statistics_to_wire(StreamProgram("fraud", b"", operators), statistics)))
    read = PipelineStatistics.from_dict(wire)
    assert read.stream_metrics is not None
    assert read.stream_metrics.keys() == {"score", "quiet"}
    found = read.stream_metrics["score"]
    assert (found.name, found.watermark, found.state_bytes, found.total("late")) == ("Score", 10, 400, 5)
    assert [task.task for task in found.tasks or ()] == [0, 1]
    assert read.warnings == ["cards gives nothing"]


def test_a_monitoring_system_gets_numbers_task_by_task() -> None:
    statistics = StreamStatistics()
    spread = {"count": 1, "sum": 5, "min": 5, "max": 5}
    first = TaskMetrics(2500, 100, {"late": 2, "amount": spread})
    at_its_end = TaskMetrics(MAX_TIMESTAMP)
    statistics.take(Stepped(metrics={("score", 0): first, ("score", 1): TaskMetrics(), ("score", 2): at_its_end}))
    wire = statistics_to_wire(StreamProgram("fraud", b"", (StreamOperator("score", "Score", "process", "f"),)), statistics)
    metrics = measure({"global_metrics": COUNTERS, "inputs": [], "outputs": [], **wire}, "p", None)
    of_tasks = [metric for metric in metrics if "task" in metric.labels]
    found = {(metric.name, metric.labels["task"], metric.labels.get("metric")): metric.value for metric in of_tasks}
    assert found == {
        ("stream_state_bytes", "0", None): 100,
        ("stream_watermark_seconds", "0", None): 2.5,
        ("stream_function_metric", "0", "late"): 2,
        ("stream_function_metric", "0", "amount.count"): 1,
        ("stream_function_metric", "0", "amount.sum"): 5,
        ("stream_function_metric", "0", "amount.min"): 5,
        ("stream_function_metric", "0", "amount.max"): 5,
        ("stream_state_bytes", "1", None): 0,
        ("stream_state_bytes", "2", None): 0,
    }
    assert 'stream_function_metric{metric="late",operator="score",pipeline_name="p",task="0"} 2.0' in exposition(metrics)
    of_sql = measure({"global_metrics": COUNTERS, "inputs": [], "outputs": []}, "p", None)
    assert not any(metric.name.startswith("stream_") for metric in of_sql)


def test_what_json_has_not_is_told_as_text() -> None:
    statistics = StreamStatistics()
    odd = {"nan": float("nan"), "list": [1], "spread": {"count": 0, "min": None, "sum": float("inf")}, "huge": 10**99}
    statistics.take(Stepped(metrics={("score", 0): TaskMetrics(counted=odd)}))
    wire = statistics_to_wire(StreamProgram("fraud", b"", (StreamOperator("score", "Score", "process", "f"),)), statistics)
    (task,) = json.loads(json.dumps(wire, allow_nan=False))["stream_metrics"]["score"]["tasks"]
    assert (task["values"]["nan"], task["values"]["list"]) == ("nan", "[1]")
    assert task["values"]["spread"] == {"count": 0, "min": None, "sum": "inf"}
    assert task["values"]["huge"] == str(10**99)
