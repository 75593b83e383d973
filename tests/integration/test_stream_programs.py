"""Stream programs as pipelines: deployed, stopped, killed, failing, and changed with what they keep."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    PipelineStatus,
)
from airflow_pipelines.sdk.errors import PipelinesError
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SQL = """create table visits (page varchar, ms bigint) with ('append_only' = 'true', 'materialized' = 'true');
create view slow as select page, ms from visits where ms > 10;
create materialized view busiest as select max(n) as n, count(*) as pages from counts;
"""
COUNT = """
from airflow_pipelines.datastream import StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ListStateDescriptor, ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.LONG()))

    def process_element(self, value, ctx):
        if value[0] == "bad":
            raise ValueError(f"no page is called {value[0]}")
        number = (self.number.value() or 0) + 1
        self.number.update(number)
        print("seen", value[0], number)
        yield value[0], number


env = StreamExecutionEnvironment.get_execution_environment()
visits = env.from_relation("visits")
counted = visits.key_by(lambda row: row[0], key_type=Types.STRING()).process(Count()).name("Count").uid("count")
counted.to_relation("counts", {"page": "STRING", "n": "BIGINT"}, primary_key=["page"]).uid("counts")
env.execute()
"""


def _made(client: PipelineClient, name: str, program: str = COUNT, sql: str = SQL, **settings: Any) -> Pipeline:
    return PipelineBuilder(client, name, sql, stream_program={"count.py": program}, **settings).create(timeout_s=120)


def _visit(pipeline: Pipeline, *pages: str) -> None:
    pipeline.input_json("visits", [{"page": page, "ms": 20} for page in pages])


def _counts(pipeline: Pipeline) -> dict[str, int]:
    return {row["page"]: row["n"] for row in pipeline.query("select * from counts")}


def _changed(pipeline: Pipeline, program: str, sql: str | None = None) -> Any:
    """Stop, change the program and approve it; gives what was shown for approval."""
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(sql=sql, stream_program={"count.py": program})
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=120)
    assert pipeline.status() is PipelineStatus.AWAITINGAPPROVAL
    shown = pipeline.pending_change()
    pipeline.approve()
    eventually(lambda: pipeline.status() is PipelineStatus.RUNNING, 60)
    return shown


@pytest.mark.core("forced", slow_because="a stream program is started again")
@pytest.mark.parametrize("stop", ["graceful", "forced"])
def test_a_stream_program_goes_on_after_a_stop(embedded_client: PipelineClient, pipeline_name: str, stop: str) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "b", "a")
    assert _counts(pipeline) == {"a": 2, "b": 1}
    assert list(pipeline.query("select * from busiest")) == [{"n": 2, "pages": 2}]
    pipeline.checkpoint(wait=True, timeout_s=60)
    _visit(pipeline, "b")
    pipeline.stop(force=stop == "forced", timeout_s=60)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "b")
    assert _counts(pipeline) == {"a": 2, "b": 3}
    assert list(pipeline.query("select * from busiest")) == [{"n": 3, "pages": 2}]


def test_state_stays_when_code_changes_and_goes_when_its_descriptor_does(
    embedded_client: PipelineClient, pipeline_name: str
) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "a")
    shown = _changed(pipeline, COUNT.replace("or 0) + 1", "or 0) + 100"))
    (operator,) = shown.plan.operators
    assert (operator.uid, operator.change.value, operator.kept_states, operator.dropped_states) == (
        "count",
        "modified",
        ("number",),
        (),
    )
    assert operator.bytes
    _visit(pipeline, "a")
    assert _counts(pipeline) == {"a": 102}
    shown = _changed(
        pipeline, COUNT.replace('ValueStateDescriptor("number", Types.LONG())', 'ValueStateDescriptor("number", Types.INT())')
    )
    (operator,) = shown.plan.operators
    assert (operator.dropped_states, operator.reason) == (("number",), "number: its type was Types.LONG(), and is Types.INT()")
    _visit(pipeline, "a")
    assert _counts(pipeline) == {"a": 1}, "the relation keeps what was made by the old code until there is something new"


def test_what_finds_keys_cannot_change(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    # A plan says so before the first checkpoint, too.
    other = {"count.py": COUNT.replace('.uid("count")', '.uid("count").set_max_parallelism(64)')}
    planned = pipeline.plan(stream_program=other).plan
    assert planned is not None
    (refusal,) = planned.refusals
    assert "set_max_parallelism(128)" in refusal.message
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(stream_program=other)
    with pytest.raises((PipelineFailedError, PipelineAPIError), match=r"'Count' \(uid 'count'\).*set_max_parallelism\(128\)"):
        pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=120)
    pipeline.modify(stream_program={"count.py": COUNT})
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    assert _counts(pipeline) == {"a": 2}


def test_a_stream_starts_anew_when_the_view_that_it_reads_changes(embedded_client: PipelineClient, pipeline_name: str) -> None:
    program = COUNT.replace('from_relation("visits")', 'from_relation("slow", changes=True)')
    pipeline = _made(embedded_client, pipeline_name, program)
    pipeline.start(timeout_s=120)
    pipeline.input_json("visits", [{"page": "a", "ms": 5}, {"page": "a", "ms": 15}, {"page": "b", "ms": 30}])
    assert _counts(pipeline) == {"a": 1, "b": 1}
    shown = _changed(pipeline, program, SQL.replace("ms > 10", "ms > 3"))
    assert {each.uid: each.change.value for each in shown.plan.operators}["count"] == "started_anew"
    assert _counts(pipeline) == {"a": 2, "b": 1}
    _visit(pipeline, "b")
    assert _counts(pipeline) == {"a": 2, "b": 2}
    assert list(pipeline.query("select * from busiest")) == [{"n": 2, "pages": 2}]


def test_a_stream_program_is_added_to_and_removed_from_a_pipeline(embedded_client: PipelineClient, pipeline_name: str) -> None:
    tables = "create table visits (page varchar, ms bigint) with ('append_only' = 'true', 'materialized' = 'true');"
    pipeline = PipelineBuilder(embedded_client, pipeline_name, tables).create(timeout_s=120)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "a", "b")
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(sql=SQL, stream_program={"count.py": COUNT})
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=120)
    assert _counts(pipeline) == {"a": 2, "b": 1}, "it begins with what the table has"
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(sql=tables, stream_program={})
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=120)
    assert list(pipeline.query("select count(*) as n from visits")) == [{"n": 3}]


def test_a_function_that_fails_takes_nothing_along(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    pipeline.checkpoint(wait=True, timeout_s=60)
    _visit(pipeline, "a")
    with pytest.raises(PipelineFailedError) as caught:
        _visit(pipeline, "b", "bad")
    for text in (
        "ValueError: no page is called bad",
        "count.py:13",
        "in operator 'Count'",
        "'bad'",
        "Nothing of the step was kept",
    ):
        assert text in str(caught.value)
    error = pipeline.deployment_error()
    assert error is not None
    assert not re.search(r"Traceback|py4j|streams/loop", error["message"])
    assert pipeline.status() is PipelineStatus.STOPPED
    pipeline.modify(stream_program={"count.py": COUNT.replace('== "bad"', '== "worse"')})
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=120)
    assert _counts(pipeline) == {"a": 2}, "what came after the checkpoint is not lost"
    _visit(pipeline, "b", "bad", "a")
    assert _counts(pipeline) == {"a": 3, "b": 1, "bad": 1}


@pytest.mark.core(slow_because="a pipeline is killed and starts again")
def test_a_worker_that_is_killed_is_named(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    log = _log(pipeline)
    (worker,) = re.findall(r"process (\d+) runs it", log)
    os.kill(int(worker), signal.SIGKILL)
    with pytest.raises(PipelineFailedError, match="SIGKILL"):
        _visit(pipeline, "a")
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    assert _counts(pipeline) == {"a": 2}


def test_a_checkpoint_of_a_program_that_has_ended_ends_its_pipeline(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    (worker,) = re.findall(r"process (\d+) runs it", _log(pipeline))
    os.kill(int(worker), signal.SIGKILL)
    # Whoever asks may find it stopped by then.
    with pytest.raises(PipelinesError):
        pipeline.checkpoint(wait=True, timeout_s=60)
    eventually(lambda: pipeline.status() is PipelineStatus.STOPPED, 60)
    error = pipeline.deployment_error()
    assert error is not None
    assert "SIGKILL" in error["message"]
    pipeline.start(timeout_s=120)
    assert _counts(pipeline) == {"a": 1}


def test_what_functions_print_is_in_the_log(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _made(embedded_client, pipeline_name)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "a")
    assert "stdout: seen a 2" in _log(pipeline, "seen a 2")


def _log(pipeline: Pipeline, until: str = "now Running") -> str:
    """The lines of the log up to the first one with some text."""
    lines: list[str] = []
    for line in pipeline.logs():
        lines.append(line)
        if until in line:
            break
    return "\n".join(lines)
