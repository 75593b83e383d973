"""The time of a stream program: when it opens, and when a change of the pipeline has given it something to wait for."""

from __future__ import annotations

import time

import pytest

from airflow_pipelines.program.sources import SourceFile
from tests.host.driver import Make, Pipeline
from tests.host.state.test_clock import advance

pytestmark = pytest.mark.core

_TABLES = "".join(f"CREATE TABLE {name} (ms BIGINT) WITH ('append_only' = 'true', 'materialized' = 'true');" for name in "ab")
_BEGINS = """
from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from airflow_pipelines.datastream.common import Duration, WatermarkStrategy

env = StreamExecutionEnvironment.get_execution_environment()
"""
_IDLENESS = f"""{_BEGINS}
class Reached(KeyedProcessFunction):
    def process_element(self, row, ctx):
        ctx.timer_service().register_event_time_timer(row.ms)

    def on_timer(self, timestamp, ctx):
        yield (timestamp,)


strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.ms)
a, b = (
    env.from_relation(name).uid(name)
    .assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_seconds(10))).uid(name + " times")
    for name in "ab"
)
reached = a.union(b).key_by(lambda row: 0).process(Reached()).uid("reached")
reached.to_relation("reached", "ms BIGINT").uid("out")
env.execute()
"""
_WAITING = f"""{_BEGINS}
class Waiting(KeyedProcessFunction):
    def process_element(self, row, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + row.ms)

    def on_timer(self, timestamp, ctx):
        yield (ctx.get_current_key(),)


waiting = env.from_relation("a").uid("a").key_by(lambda row: row.ms).process(Waiting()).uid("waiting")
waiting.to_relation("reached", "ms BIGINT").uid("out")
env.execute()
"""


def _driven(starts_at: str) -> dict[str, object]:
    return {"now_http_driven": True, "now_offset": starts_at}


def _reached(pipeline: Pipeline) -> list[int]:
    return [row["ms"] for row in pipeline.query("SELECT ms FROM reached ORDER BY ms")]


@pytest.mark.rest
def test_the_time_in_which_a_pipeline_was_stopped_makes_no_input_idle(make: Make) -> None:
    pipeline = make(_TABLES, dev_tweaks=_driven("2001-01-01T00:00:00Z"))
    pipeline.stream_files = (SourceFile("program.py", _IDLENESS),)
    pipeline.start()
    pipeline.insert("a", {"ms": 10})
    advance(pipeline, 3_000)
    # It is started again at once, and then an hour later.
    for starts_at, ms in (("2001-01-01T00:00:00Z", 20), ("2001-01-01T01:00:00Z", 30)):
        pipeline.suspend()
        pipeline.runtime_config["dev_tweaks"] = _driven(starts_at)
        pipeline.start()
        pipeline.insert("a", {"ms": ms})
        advance(pipeline, 3_000)
        assert _reached(pipeline) == []
    advance(pipeline, 1_000)
    # So long was nothing heard of the other input while the pipeline ran.
    assert _reached(pipeline) == [10, 20]


@pytest.mark.rest
def test_timers_of_rows_that_a_change_brings_fire_without_any_input(make: Make) -> None:
    pipeline = make(_TABLES)
    pipeline.stream_files = (SourceFile("program.py", _WAITING),)
    pipeline.start()
    pipeline.insert("a", {"ms": 1})
    pipeline.insert("b", {"ms": 2})
    _until_reached(pipeline, 1)
    pipeline.suspend()
    both = 'env.from_relation("a").uid("a").union(env.from_relation("b").uid("b"))'
    pipeline.stream_files = (SourceFile("program.py", _WAITING.replace('env.from_relation("a").uid("a")', both)),)
    pipeline.start(bootstrap_policy="allow")
    _until_reached(pipeline, 2)


def _until_reached(pipeline: Pipeline, ms: int) -> None:
    deadline = time.monotonic() + 60
    while ms not in (found := _reached(pipeline)):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
