"""Programs with a stream program become programs that the engine can run."""

from __future__ import annotations

import json

from airflow_pipelines.compiler.stream_front_end import StreamFrontEnd
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.stream_nodes import StreamGraph, StreamOutput
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.program.sources import ProgramSource, SourceFile
from airflow_pipelines.program.streams import STREAM_PROGRAM

COUNTING = """
from airflow_pipelines.datastream import Row, StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor
import helper


class Count(KeyedProcessFunction):
    def open(self, context):
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, context):
        count = (self.count.value() or 0) + helper.STEP
        self.count.update(count)
        yield Row(key=context.get_current_key(), n=count)


env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["a", "b", "a"]).uid("words")
counts = words.key_by(lambda word: word, Types.STRING()).process(Count()).uid("count")
counts.to_relation("counts", {"key": Types.STRING(), "n": "BIGINT"}, primary_key="key").uid("counts out")
env.execute("counting")
"""
FILES = (SourceFile("program.py", COUNTING), SourceFile("helper.py", "STEP = 1\n"))


def front_end(sessions: SparkSessions) -> StreamFrontEnd:
    return StreamFrontEnd(sessions, None)


def test_a_stream_program_with_a_keyed_function_becomes_a_program(sessions: SparkSessions) -> None:
    sql = "create table t (id int); create materialized view twice as select key, n * 2 as n from counts;"
    program = front_end(sessions).compile(ProgramSource(sql, stream_files=FILES))
    streams = program.streams
    assert streams is not None
    assert [operator.uid for operator in streams.operators] == ["words", "count", "counts out"]
    shown = json.loads(json.dumps(program.info.to_wire()))["streams"]
    assert [operator["uid"] for operator in shown["operators"]] == ["words", "count", "counts out"]
    assert json.loads(shown["execution_plan"])["nodes"]
    assert list(program.tables) == ["t", "stream source words"]
    assert list(program.views) == [STREAM_PROGRAM, "counts", "twice"]
    assert program.views["counts"].kind is ViewKind.MATERIALIZED
    assert isinstance(program.plans[STREAM_PROGRAM].stages[-1].node, StreamGraph)
    assert isinstance(program.plans["counts"].stages[-1].node, StreamOutput)
