"""Going on from a checkpoint of a pipeline into which nothing had come, whatever its program consists of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_pipelines.program.sources import SourceFile
from tests.host.changes.test_bootstrap import EXACTLY_ONCE
from tests.host.checkpoints.test_standby import activate, push, storage
from tests.host.driver import Make, Pipeline

pytestmark = pytest.mark.core

_STREAM = """
from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Total(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, row, ctx):
        self.total.update((self.total.value() or 0) + row.v)
        yield row.k, self.total.value()


env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_relation("inp").uid("rows")
totals = rows.key_by(lambda row: row.k).process(Total()).uid("total")
totals.to_relation("outr", "k BIGINT, total BIGINT").uid("totals")
env.execute()
"""
_KEPT = "CREATE TABLE inp (k BIGINT, v BIGINT) WITH ('append_only' = 'true', 'materialized' = 'true');"
_PASSING = "CREATE TABLE inp (k BIGINT, v BIGINT) WITH ('append_only' = 'true');"
_VIEW = "CREATE MATERIALIZED VIEW agg AS SELECT k, COUNT(*) AS n FROM {relation} GROUP BY k;"
_ROWS = ({"k": 1, "v": 5}, {"k": 1, "v": 6}, {"k": 2, "v": 7})
_GROUPS = [{"k": 1, "n": 2}, {"k": 2, "n": 1}]


@dataclass(frozen=True)
class Shape:
    """A kind of program: its SQL, whether it has a stream program, and a query with what it gives for ``_ROWS``."""

    sql: str
    streams: bool
    query: str
    expected: list[dict[str, int]]

    def made(self, make: Make, **runtime_config: object) -> Pipeline:
        """A pipeline of this kind that has not been started."""
        pipeline = make(self.sql, fault_tolerance=EXACTLY_ONCE, **runtime_config)
        if self.streams:
            pipeline.stream_files = (SourceFile("program.py", _STREAM),)
        return pipeline

    def check(self, pipeline: Pipeline) -> None:
        """Expect that the pipeline is empty, and takes rows."""
        assert pipeline.query(self.query) == []
        pipeline.insert("inp", *_ROWS)
        assert pipeline.query(self.query) == self.expected


_GROUPED = "SELECT k, n FROM agg ORDER BY k"
SHAPES = {
    "sql": Shape(_KEPT + _VIEW.format(relation="inp"), False, _GROUPED, _GROUPS),
    "sql over a table without contents": Shape(_PASSING + _VIEW.format(relation="inp"), False, _GROUPED, _GROUPS),
    "streams": Shape(_KEPT, True, "SELECT k, v FROM inp ORDER BY v", list(_ROWS)),
    "streams and sql": Shape(_KEPT + _VIEW.format(relation="outr"), True, _GROUPED, _GROUPS),
    "streams and sql over a table without contents": Shape(_PASSING + _VIEW.format(relation="outr"), True, _GROUPED, _GROUPS),
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@pytest.mark.rest
@every_shape
def test_a_pipeline_starts_again_and_replays_what_came_after(make: Make, shape: Shape) -> None:
    pipeline = shape.made(make)
    pipeline.start()
    pipeline.suspend()
    pipeline.start()
    shape.check(pipeline)
    pipeline.kill()
    pipeline.start()
    assert pipeline.query(shape.query) == shape.expected, "acknowledged rows"


@pytest.mark.rest
@every_shape
def test_a_view_is_added_to_a_pipeline(make: Make, shape: Shape) -> None:
    pipeline = shape.made(make)
    pipeline.start()
    pipeline.suspend()
    pipeline.program += "CREATE TABLE other (x INT); CREATE MATERIALIZED VIEW others AS SELECT COUNT(*) AS n FROM other;"
    pipeline.start(bootstrap_policy="allow")
    shape.check(pipeline)
    assert pipeline.query("SELECT * FROM others") == [{"n": 0}]
    pipeline.suspend()
    pipeline.start()
    assert pipeline.query(shape.query) == shape.expected


@pytest.mark.rest
@every_shape
def test_a_copy_starts_elsewhere(make: Make, tmp_path: Path, shape: Shape) -> None:
    """By a pipeline that stands by and takes over, and by one that starts with the copy."""
    primary = shape.made(make, storage=storage(tmp_path / "bucket"))
    primary.start()
    push(primary)
    copied = {"read_bucket": str(tmp_path / "bucket"), "start_from_checkpoint": "latest"}
    standby = shape.made(make, storage=storage(tmp_path / "own", **copied))
    standby.start(initial="standby", wait_for="Standby")
    primary.kill()
    activate(standby)
    shape.check(standby)
    other = shape.made(make, storage=storage(tmp_path / "another", **copied))
    other.start()
    shape.check(other)


@pytest.mark.rest
@pytest.mark.parametrize(("with_checkpoint", "rows_in_journal"), [(True, False), (True, True), (False, True)])
def test_a_view_over_a_table_without_contents_is_renamed(make: Make, with_checkpoint: bool, rows_in_journal: bool) -> None:
    """With rows in a checkpoint it takes over what is stored; nothing that came is missing without any, either."""
    pipeline = SHAPES["sql over a table without contents"].made(make)
    pipeline.start()
    if with_checkpoint:
        pipeline.checkpoint()
    if rows_in_journal:
        pipeline.insert("inp", *_ROWS)
    pipeline.kill()
    pipeline.program = pipeline.program.replace("VIEW agg", "VIEW grouped")
    pipeline.start(bootstrap_policy="allow")
    if not rows_in_journal:
        pipeline.insert("inp", *_ROWS)
    assert pipeline.query("SELECT k, n FROM grouped ORDER BY k") == _GROUPS


# What the others show for rows that came and went is not nothing: their streams tell running totals.
@pytest.mark.core("streams")
@pytest.mark.parametrize("name", ["sql", "sql over a table without contents", "streams"])
def test_a_pipeline_from_which_everything_was_deleted_starts_again(make: Make, name: str) -> None:
    shape = SHAPES[name]
    pipeline = shape.made(make)
    pipeline.program = pipeline.program.replace("'append_only' = 'true'", "'append_only' = 'false'")
    if shape.streams:
        pipeline.stream_files = (SourceFile("program.py", _STREAM.replace('("inp")', '("inp", changes=True)')),)
    pipeline.start()
    pipeline.ingest("inp", *({"insert": row} for row in _ROWS))
    pipeline.ingest("inp", *({"delete": row} for row in _ROWS))
    pipeline.suspend()
    pipeline.start()
    shape.check(pipeline)
