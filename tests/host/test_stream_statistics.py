from __future__ import annotations

import json

from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.engine.streams.statistics import StreamStatistics
from airflow_pipelines.host.stream_statistics import statistics_to_wire
from airflow_pipelines.program.streams import StreamOperator, StreamProgram
from airflow_pipelines.streams.worker.messages import Stepped, TaskMetrics


def test_clients_read_what_the_host_writes() -> None:
    operators = (StreamOperator("score", "Score", "process", "f"), StreamOperator("quiet", "Map", "map", "g"))
    statistics = StreamStatistics()
    score = {("score", 1): TaskMetrics(10, 2, 300, {"late": 4}), ("score", 0): TaskMetrics(None, 1, 100, {"late": 1})}
    statistics.take(Stepped(metrics={**score, ("gone", 0): TaskMetrics(1)}, warnings=["cards gives nothing"]))
    wire = json.loads(json.dumps(statistics_to_wire(StreamProgram("fraud", b"", operators), statistics)))
    read = PipelineStatistics.from_dict(wire)
    assert read.stream_metrics is not None
    assert read.stream_metrics.keys() == {"score", "quiet"}
    found = read.stream_metrics["score"]
    assert (found.name, found.watermark, found.state_bytes, found.total("late")) == ("Score", 10, 400, 5)
    assert [task.task for task in found.tasks or ()] == [0, 1]
    assert read.warnings == ["cards gives nothing"]
