from __future__ import annotations

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.sources import ProgramSource, SourceFile

pytestmark = pytest.mark.core

TEXT = """create table t (id int, at timestamp lateness interval 1 hour);
create table u (id int);
create view v as select * from t;
lateness v.id 10"""


def test_sql_with_its_connectors(sessions: SparkSessions) -> None:
    source = ProgramSource('create table t (x int) with (\'connectors\' = \'[{"transport": {"name": "nothing"}}]\')')
    with pytest.raises(ProgramErrors, match="nothing"):
        front_end_for(source, sessions).compile(source)


def test_late_relations_are_those_of_the_compiled_program(sessions: SparkSessions) -> None:
    source = ProgramSource(TEXT)
    front_end = front_end_for(source, sessions)
    assert front_end.late_relations(source) == front_end.compile(source).late_relations == {"t", "v"}


def test_a_stream_program_is_executed(sessions: SparkSessions) -> None:
    source = ProgramSource("", stream_files=(SourceFile("streams/sessions.py", "x = 1"),))
    with pytest.raises(ProgramErrors, match=r"^streams/sessions\.py: .* without executing anything"):
        front_end_for(source, sessions).compile(source)
