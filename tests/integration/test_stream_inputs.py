"""Stream programs in a pipeline read files that others take the place of, and relations that end with their connectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines import BootstrapPolicy, Pipeline, PipelineAPIError, PipelineBuilder, PipelineClient, PipelineStatus
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.core, pytest.mark.timeout(400)]

_WINDOWS = """
from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, WatermarkStrategy
from airflow_pipelines.datastream.connectors import FileSource, StreamFormat
from airflow_pipelines.datastream.functions import ProcessWindowFunction
from airflow_pipelines.datastream.window import TumblingEventTimeWindows


class Count(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, len(list(elements))


by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda visit, _: visit[1])
env = StreamExecutionEnvironment.get_execution_environment()
{visits}
timed = visits.assign_timestamps_and_watermarks(by_time).uid("time")
counted = timed.key_by(lambda visit: visit[0]).window(TumblingEventTimeWindows.of(2000)).process(Count()).uid("count")
counted.to_relation("counts", {{"page": "STRING", "at": "BIGINT", "n": "BIGINT"}}).uid("counts")
env.execute()
"""
_OF_FILE = """
lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), {path!r}).build()
lines = env.from_source(lines, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
visits = lines.map(lambda line: (line.split(",")[0], int(line.split(",")[1]))).uid("visits")
"""
_OF_RELATION = """
visits = env.from_relation("visits", stays_open={stays_open}).uid("visits")
"""
_TABLE = """create table visits (page varchar, at bigint) with ('append_only' = 'true', 'materialized' = 'true', 'connectors' = '[{{
"name": "file", "transport": {{"name": "file_input", "config": {{"path": "{path}"}}}}, "format": {{"name": "csv"}}}}]');
"""


def _counts(pipeline: Pipeline) -> list[tuple[str, int, int]]:
    return sorted((row["page"], row["at"], row["n"]) for row in pipeline.query("select * from counts"))


def _becomes(pipeline: Pipeline, expected: list[tuple[str, int, int]]) -> None:
    eventually(lambda: _counts(pipeline) == expected, 60)


def _made(client: PipelineClient, name: str, visits: str, sql: str = "") -> Pipeline:
    files = {"count.py": _WINDOWS.format(visits=visits)}
    pipeline = PipelineBuilder(client, name, sql, stream_program=files).create(timeout_s=120)
    pipeline.start(timeout_s=120)
    return pipeline


def _is_complete(pipeline: Pipeline) -> bool:
    metrics: Any = pipeline.stats().global_metrics
    return bool(metrics.pipeline_complete)


@pytest.mark.rest
def test_a_file_in_the_place_of_another_is_read_and_shown_for_approval(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("a,5000\na,5500\n")
    (tmp_path / "b").write_text("b,1000\na,1500\n")
    pipeline = _made(embedded_client, pipeline_name, _OF_FILE.format(path=str(tmp_path / "a")))
    _becomes(pipeline, [("a", 4000, 2)])
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(stream_program={"count.py": _WINDOWS.format(visits=_OF_FILE.format(path=str(tmp_path / "b")))})
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=120)
    assert pipeline.status() is PipelineStatus.AWAITINGAPPROVAL
    (source,) = [each for each in pipeline.pending_change().plan.operators if each.uid == "lines"]
    assert (source.change.value, source.kept_states, source.dropped_states) == ("started_anew", (), ("its position",))
    assert source.reason == f"it reads {tmp_path / 'b'}, and its position is one in {tmp_path / 'a'}"
    pipeline.approve()
    eventually(lambda: pipeline.status() is PipelineStatus.RUNNING, 60)
    _becomes(pipeline, [("a", 0, 1), ("a", 4000, 2), ("b", 0, 1)])


@pytest.mark.rest
def test_a_relation_ends_with_its_connectors_unless_it_stays_open(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path
) -> None:
    (tmp_path / "visits").write_text("a,0\na,1000\nb,5000\n")
    sql = _TABLE.format(path=tmp_path / "visits")
    pipeline = _made(embedded_client, pipeline_name, _OF_RELATION.format(stays_open=False), sql)
    _becomes(pipeline, [("a", 0, 2), ("b", 4000, 1)])
    eventually(lambda: _is_complete(pipeline), 60)
    assert [each.endpoint_name for each in pipeline.stats().inputs or ()] == ["visits.file"]
    pipeline.stop(force=False, timeout_s=60)
    pipeline.start(timeout_s=120)
    eventually(lambda: _is_complete(pipeline), 60)
    assert _counts(pipeline) == [("a", 0, 2), ("b", 4000, 1)]
    for push in (
        lambda: pipeline.input_json("visits", [{"page": "late", "at": 9000}]),
        lambda: pipeline.execute("INSERT INTO visits VALUES ('late', 9000)"),
    ):
        with pytest.raises(PipelineAPIError, match=r"No row was taken for table visits: .*stays_open=True") as refused:
            push()
        assert (refused.value.status_code, refused.value.error_code) == (409, "StreamEnded")
    # Doing what the message says helps.
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(stream_program={"count.py": _WINDOWS.format(visits=_OF_RELATION.format(stays_open=True))})
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=120)
    pipeline.input_json("visits", [{"page": "late", "at": 9000}, {"page": "later", "at": 12000}])
    _becomes(pipeline, [("a", 0, 2), ("b", 4000, 1), ("late", 8000, 1)])
    pipeline.stop(force=True, timeout_s=60)


@pytest.mark.rest
def test_a_relation_that_stays_open_says_what_waits(embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path) -> None:
    (tmp_path / "visits").write_text("a,0\na,1000\nb,5000\n")
    sql = _TABLE.format(path=tmp_path / "visits")
    pipeline = _made(embedded_client, pipeline_name, _OF_RELATION.format(stays_open=True), sql)
    _becomes(pipeline, [("a", 0, 2)])
    eventually(lambda: (pipeline.stats().stream_metrics or {})["count"].waiting_keys == 1, 60)
    assert (pipeline.stats().stream_metrics or {})["count"].watermark == 4999
    pipeline.input_json("visits", [{"page": "c", "at": 9000}])
    _becomes(pipeline, [("a", 0, 2), ("b", 4000, 1)])
    pipeline.stop(force=True, timeout_s=60)


@pytest.mark.rest
def test_a_relation_that_had_ended_goes_on_with_another_connector(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path
) -> None:
    (tmp_path / "first").write_text("a,0\nb,5000\n")
    (tmp_path / "second").write_text("c,1000\nc,9000\n")
    program = _OF_RELATION.format(stays_open=False)
    pipeline = _made(embedded_client, pipeline_name, program, _TABLE.format(path=tmp_path / "first"))
    _becomes(pipeline, [("a", 0, 1), ("b", 4000, 1)])
    eventually(lambda: _is_complete(pipeline), 60)
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(sql=_TABLE.format(path=tmp_path / "second"))
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=120)
    (change,) = [each for each in pipeline.pending_change().plan.operators if each.uid == "visits"]
    assert (change.kept_states, change.dropped_states) == (("its position",), ("its end",))
    pipeline.approve()
    _becomes(pipeline, [("a", 0, 1), ("b", 4000, 1), ("c", 0, 1), ("c", 8000, 1)])
    eventually(lambda: _is_complete(pipeline), 60)
    assert not pipeline.stats().warnings
