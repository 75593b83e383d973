"""The nodes of stream programs: what they read, and what their layouts do not have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import IntegerType, StructType

from airflow_pipelines.engine.layout import layouts
from airflow_pipelines.engine.stream_nodes import GRAPH_COLUMNS, StreamGraph, StreamOutput
from airflow_pipelines.program.streams import STREAM_PROGRAM, RelationInput, RelationOutput, StreamProgram, StreamSource
from airflow_pipelines.sql.plan.ir.stage import Stage

OUTPUT = RelationOutput("sink", "alerts", (("id", "bigint"), ("note", "string")), ("id",))
PROGRAM = StreamProgram(
    "p",
    b"plan",
    sources=(StreamSource("a", "Source: a", "CollectionSource", True),),
    inputs=(RelationInput("b", "orders", True),),
    outputs=(OUTPUT,),
    dependencies={"requirements": "x"},
)
TABLES = ("stream source a", "stream source c", "orders", "others")


def graph_layout(program: StreamProgram) -> str:
    tables = {name: StructType().add("x", IntegerType()) for name in TABLES}
    return layouts(tables, {}, [Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(program))], {})[STREAM_PROGRAM]


def output_layout(output: RelationOutput) -> str:
    stages = [
        Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(PROGRAM)),
        Stage(output.relation, output.columns, StreamOutput(output)),
    ]
    tables = {name: StructType().add("x", IntegerType()) for name in TABLES}
    return layouts(tables, {}, stages, {})[output.relation]


def test_a_graph_reads_its_sources_tables_and_the_relations_that_it_names() -> None:
    assert StreamGraph(PROGRAM).reads == {"stream source a", "orders"}


@pytest.mark.parametrize(
    "other",
    [
        replace(PROGRAM, plan=b"other code"),
        replace(PROGRAM, sources=(StreamSource("c", "Source: c", "FileSource", False),)),
        replace(PROGRAM, inputs=(RelationInput("b", "others", False),), outputs=()),
    ],
)
def test_state_outlives_changes_of_the_program(other: StreamProgram) -> None:
    assert graph_layout(other) == graph_layout(PROGRAM)


def test_nodes_are_equal_only_for_the_same_program() -> None:
    assert StreamGraph(PROGRAM) == StreamGraph(replace(PROGRAM))
    assert len({StreamGraph(PROGRAM), StreamGraph(replace(PROGRAM)), StreamGraph(replace(PROGRAM, plan=b"other"))}) == 2


def test_an_output_with_a_key_keeps_its_contents_and_one_without_only_gains_rows() -> None:
    keyed, added = StreamOutput(OUTPUT), StreamOutput(replace(OUTPUT, primary_key=None))
    assert (keyed.keeps_contents, keyed.append_only) == (True, False)
    assert (added.keeps_contents, added.append_only) == (False, True)
    assert keyed.reads == added.reads == {STREAM_PROGRAM}


def test_the_layout_of_an_output_has_its_columns_and_its_key_but_not_its_operator() -> None:
    layout = output_layout(OUTPUT)
    assert output_layout(replace(OUTPUT, uid="moved")) == layout
    assert output_layout(replace(OUTPUT, primary_key=None)) != layout
    assert output_layout(replace(OUTPUT, columns=(("id", "bigint"), ("note", "int")))) != layout
