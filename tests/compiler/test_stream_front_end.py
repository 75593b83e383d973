"""Programs with a stream program become programs that the engine can run, together with their SQL text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_pipelines.compiler.stream_front_end import StreamFrontEnd
from airflow_pipelines.engine.allowed_changes import NotATableError, changed_table
from airflow_pipelines.engine.dataflow import dataflow
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.stream_nodes import GRAPH_COLUMNS, SOURCE_COLUMNS, StreamGraph, StreamOutput
from airflow_pipelines.program.diff import ProgramDiff, compare
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.program.sources import ProgramSource, SourceFile
from airflow_pipelines.program.streams import STREAM_PROGRAM

pytestmark = pytest.mark.core

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
orders = env.from_relation("orders", changes=True).uid("orders").map(lambda row: row.id).uid("ids")
orders.to_relation('"Seen"', "id BIGINT, tags VARCHAR ARRAY").uid("seen out")
env.execute("counting")
"""
HELPER = "STEP = 1\n"
SQL = """
create table orders (id bigint not null primary key, note varchar);
create view unrelated as select note from orders;
create materialized view twice as select key, n * 2 as n from counts;
create view both as select t.key, s.id from twice t, "Seen" s;
"""


@pytest.fixture(scope="module")
def compiled(sessions: SparkSessions) -> Callable[..., Program]:
    def compile_program(streams: str = COUNTING, sql: str = SQL, helper: str = HELPER) -> Program:
        files = (SourceFile("program.py", streams), SourceFile("helper.py", helper))
        return StreamFrontEnd(sessions, None).compile(ProgramSource(sql, stream_files=files))

    return compile_program


@pytest.fixture(scope="module")
def program(compiled: Callable[..., Program]) -> Program:
    return compiled()


def streams(body: str) -> str:
    return (
        "from airflow_pipelines.datastream import *\nenv = StreamExecutionEnvironment.get_execution_environment()\n"
        f"source = env.from_collection([1])\n{body}\nenv.execute()\n"
    )


def errors(compiled: Callable[..., Program], body: str, sql: str = SQL) -> str:
    with pytest.raises(ProgramErrors) as caught:
        compiled(streams(body), sql)
    return str(caught.value)


def test_the_relations_of_a_program(program: Program) -> None:
    assert list(program.tables) == ["orders", "stream source words"]
    assert list(program.views) == ["unrelated", STREAM_PROGRAM, "counts", "Seen", "twice", "both"]
    assert program.hidden_relations == {STREAM_PROGRAM, "stream source words"}
    table = program.tables["stream source words"]
    assert (table.append_only, table.primary_key, table.materialized) == (True, None, False)
    (connector,) = table.connectors
    assert (connector.endpoint, connector.transport) == ("stream source words.reader", "stream_source")
    assert connector.transport_config == {"uid": "words", "kind": "CollectionSource"}
    graph, counts = program.views[STREAM_PROGRAM], program.views["counts"]
    assert (graph.kind, set(graph.reads)) == (ViewKind.LOCAL, {"stream source words", "orders"})
    assert (counts.kind, counts.reads) == (ViewKind.MATERIALIZED, (STREAM_PROGRAM,))


def test_the_plans_of_a_program(program: Program) -> None:
    assert program.streams is not None
    (graph,) = program.plans[STREAM_PROGRAM].stages
    assert (graph.node, graph.columns) == (StreamGraph(program.streams), GRAPH_COLUMNS)
    (counts,), (seen,) = program.plans["counts"].stages, program.plans["Seen"].stages
    assert counts.columns == (("key", "string"), ("n", "bigint"))
    assert seen.columns == (("id", "bigint"), ("tags", "array<string>"))
    assert isinstance(counts.node, StreamOutput)
    assert (counts.node.primary_key, counts.node.output.columns) == (("key",), counts.columns)
    assert isinstance(seen.node, StreamOutput)
    assert seen.node.append_only
    for name, columns in (("stream source words", SOURCE_COLUMNS), (STREAM_PROGRAM, GRAPH_COLUMNS)):
        fields = spark_schema(program.schemas[name]).fields
        assert tuple((field.name, field.dataType.simpleString()) for field in fields) == columns
    assert set(program.plans) == set(program.views)
    assert set(program.schemas) == {*program.tables, *program.views, "error_view"}


def test_a_key_column_is_never_null(program: Program) -> None:
    assert [column.type.nullable for column in program.views["counts"].columns] == [False, True]


def test_what_users_see_of_it(program: Program) -> None:
    info = program.info
    assert [each.name for each in info.inputs] == ["orders"]
    assert [each.name for each in info.outputs] == ["unrelated", "twice", "both", "counts", "Seen", "error_view"]
    shown = {each.name: each.to_wire() for each in info.outputs}
    assert (shown["counts"]["materialized"], shown["counts"]["primary_key"]) == (True, ["key"])
    assert (shown["Seen"]["case_sensitive"], shown["Seen"]["primary_key"]) == (True, None)
    assert list(info.to_wire()["input_connectors"]) == ["stream source words.reader"]
    assert dataflow(program, SQL)["mir"]["counts"]["inputs"] == [{"node": STREAM_PROGRAM, "output": 0}]
    with pytest.raises(NotATableError) as caught:
        changed_table(program, "stream source words")
    assert caught.value.tables == ("orders",)
    assert changed_table(program, "orders").name == "orders"


def test_a_difference_shows_operators_and_not_the_hidden_relations(program: Program, compiled: Callable[..., Program]) -> None:
    sql_only = compiled(streams("source.print()"), "create table orders (id bigint not null primary key, note varchar);")
    shown = compare(sql_only.fingerprints, program.fingerprints).to_wire()
    assert shown["program_diff"]["added_tables"] == []
    assert shown["program_diff"]["added_views"] == ["Seen", "both", "counts", "twice", "unrelated"]
    assert "stream source" not in compare(sql_only.fingerprints, program.fingerprints).describe().replace(
        "connectors: stream source words.reader", ""
    )
    assert shown["added_input_connectors"] == ["stream source words.reader"]
    assert "count" in shown["program_diff"]["added_operators"]


def changes(old: Program, new: Program) -> ProgramDiff:
    difference = compare(old.fingerprints, new.fingerprints)
    assert difference.program_diff is not None
    assert not difference.fresh_connectors
    return difference.program_diff


def test_other_code_modifies_operators_and_no_relation(program: Program, compiled: Callable[..., Program]) -> None:
    assert changes(program, compiled(helper="STEP = 2\n")) == ProgramDiff(modified_operators=("count",))
    assert changes(program, compiled(COUNTING.replace("row.id", "row.id + 1"))) == ProgramDiff(modified_operators=("ids",))


def test_the_same_code_in_another_layout_is_no_difference(program: Program, compiled: Callable[..., Program]) -> None:
    moved = "# a comment\n" + COUNTING.replace("helper.STEP\n", "helper.STEP  # another\n")
    assert changes(program, compiled(moved, SQL + "\n", "\n\nSTEP  =  1")).is_empty


def test_other_columns_modify_the_relation_and_what_reads_it(program: Program, compiled: Callable[..., Program]) -> None:
    found = changes(program, compiled(COUNTING.replace('"n": "BIGINT"', '"n": "DECIMAL(20, 0)"')))
    assert found.modified_views == ("both", "counts", "twice")
    assert found.modified_operators == ("counts out",)


def test_another_key_modifies_the_relation(program: Program, compiled: Callable[..., Program]) -> None:
    found = changes(program, compiled(COUNTING.replace(', primary_key="key"', "")))
    assert found.modified_views == ("both", "counts", "twice")


def test_a_changed_relation_upstream_modifies_what_follows_from_it(program: Program, compiled: Callable[..., Program]) -> None:
    found = changes(program, compiled(sql=SQL.replace("note varchar", "note varchar, more int")))
    assert (found.modified_tables, found.modified_views) == (("orders",), ("Seen", "both", "unrelated"))
    assert found.modified_operators == ()


def test_another_declared_type_of_keys_and_another_number_of_key_groups_modify_the_operator(
    program: Program, compiled: Callable[..., Program]
) -> None:
    assert changes(program, compiled(COUNTING.replace("Types.STRING()).process", "Types.LONG()).process"))).modified_operators == (
        "count",
    )
    assert changes(program, compiled(COUNTING.replace('uid("count")', 'uid("count").set_max_parallelism(7)'))) == ProgramDiff(
        modified_operators=("count",)
    )


def test_a_view_that_a_stream_reads_comes_before_it(compiled: Callable[..., Program]) -> None:
    sql = """
    create view late as select * from made;
    create table base (x int) with ('append_only' = 'true');
    create local view v as select x + 1 as x from base;
    """
    program = compiled(streams("env.from_relation('V').to_relation('made', 'x INT')"), sql)
    assert list(program.views) == ["v", STREAM_PROGRAM, "made", "late"]


def test_a_program_without_sql_text(compiled: Callable[..., Program]) -> None:
    program = compiled(streams("source.to_relation('made', 'x INT')"), "")
    assert list(program.views) == [STREAM_PROGRAM, "made"]
    assert [each.name for each in program.info.outputs] == ["made", "error_view"]


def test_a_program_without_relations_of_its_own(compiled: Callable[..., Program]) -> None:
    program = compiled(streams("source.print()"), "")
    assert list(program.views) == [STREAM_PROGRAM]
    assert list(program.tables) == ["stream source Source: Collection Source#1"]


def test_what_sql_makes_of_an_append_only_output_is_append_only(compiled: Callable[..., Program]) -> None:
    sql = "create table t (x int); create view v as select x + 1 as x from made; create view w as select max(x) as x from v;"
    added = compiled(streams("source.to_relation('made', 'x INT')"), sql)
    keyed = compiled(streams("source.to_relation('made', 'x INT', primary_key='x')"), sql)
    # The largest value is kept up to date without looking at the rows again only where no row goes.
    assert added.plans["w"].stages != keyed.plans["w"].stages


def test_errors_of_the_sql_text_have_their_places(compiled: Callable[..., Program]) -> None:
    found = errors(
        compiled, "source.to_relation('made', 'x INT')", "create table t (a int);\ncreate view v as\n  select y from made;"
    )
    assert "line 3, column 10" in found
    assert "3|  select y from made" in found
    found = errors(compiled, "source.to_relation('made', 'x INT')", "create view v as select * from other;")
    assert "Object 'other' not found" in found


@pytest.mark.parametrize("declaration", ["create table made (x int);", "create view made as select 1 as x;"])
def test_a_name_that_both_declare(compiled: Callable[..., Program], declaration: str) -> None:
    found = errors(compiled, "source.to_relation('made', 'x INT')", declaration)
    assert "line 1, column" in found
    assert "made is declared twice: the stream program makes it with to_relation(), too" in found


@pytest.mark.parametrize(
    ("body", "sql", "path"),
    [
        ("env.from_relation('made').to_relation('made', 'x INT')", "", "made"),
        ("env.from_relation('v').to_relation('made', 'x INT')", "create view v as select x from made;", "made -> v"),
        (
            "env.from_relation('c').to_relation('made', 'x INT')",
            'create view c as select x from "B"; create view "B" as select x from a; create view a as select x from made;',
            'made -> a -> "B" -> c',
        ),
    ],
)
def test_a_cycle_through_sql(compiled: Callable[..., Program], body: str, sql: str, path: str) -> None:
    found = errors(compiled, body, sql)
    assert f"reads what the stream program itself makes: {path}. A stream program cannot be part of a cycle" in found


def test_a_relation_that_is_not_there(compiled: Callable[..., Program]) -> None:
    found = errors(compiled, "env.from_relation('other').print()", "create table t (x int); create view v as select * from t;")
    assert "from_relation('other'): Object 'other' not found. Tables and views: t, v" in found
    assert "none: the pipeline has no SQL text" in errors(compiled, "env.from_relation('other').print()", "")


@pytest.mark.parametrize(
    "sql",
    [
        "create table t (x int);",
        "create table t (x int primary key) with ('append_only' = 'true');",
        "create table b (x int) with ('append_only' = 'true'); create view t as select max(x) as x from b;",
    ],
)
def test_a_relation_that_loses_rows_is_read_with_changes(compiled: Callable[..., Program], sql: str) -> None:
    assert "from_relation('t'): t loses rows" in errors(compiled, "env.from_relation('t').print()", sql)
    assert compiled(streams("env.from_relation('t', changes=True).print()"), sql).streams


def test_a_relation_that_only_gains_rows(compiled: Callable[..., Program]) -> None:
    sql = "create table b (x int) with ('append_only' = 'true'); create view t as select x + 1 as x from b where x > 1;"
    assert compiled(streams("env.from_relation('t').print()"), sql).streams


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("source.to_relation('made', 'x NOTHING')", r"to_relation\('made', ...\): Unknown type 'nothing'"),
        (
            "source.to_relation('made', 'x INT); create table other (y INT')",
            r"to_relation\('made', ...\): the types of its columns are no types",
        ),
        ("source.to_relation('made', 'x INT PRIMARY KEY')", "its key is given by the parameter primary_key"),
        ("source.to_relation('made', 'x INT DEFAULT 5')", "column x has DEFAULT"),
        ("source.to_relation('made', 'x TIMESTAMP LATENESS INTERVAL 1 HOUR')", "column x has LATENESS"),
        ("source.to_relation('made', 'x INT'); source.to_relation('MADE', 'x INT')", "made is made twice"),
        ("source.to_relation('error_view', 'x INT')", "reserved"),
        ("source.to_relation('feldera_x', 'x INT')", "reserved"),
        ("source.to_relation('\"stream program\"', 'x INT')", "belongs to stream programs"),
    ],
)  # fmt: skip
def test_relations_that_cannot_be_made(compiled: Callable[..., Program], body: str, message: str) -> None:
    with pytest.raises(ProgramErrors, match=message):
        compiled(streams(body), "")


@pytest.mark.parametrize("name", ["stream program", "stream source x"])
def test_sql_cannot_declare_the_hidden_names(compiled: Callable[..., Program], name: str) -> None:
    assert "it belongs to stream programs" in errors(compiled, "source.print()", f'create table "{name}" (x int);')


def test_lateness_and_indexes_on_what_a_stream_makes(compiled: Callable[..., Program]) -> None:
    body = "source.to_relation('made', 'x INT')"
    found = errors(compiled, body, "create view v as select x from made; lateness made.x 5;")
    assert "made is made by the stream program, which decides itself what is too late" in found
    assert "made has no column y" in errors(compiled, body, "create index i on made(y);")
    program = compiled(streams(body), "create index i on made(x);")
    assert [(index.relation, index.columns) for index in program.indexes] == [("made", ("x",))]


def test_a_stream_program_is_executed_once(sessions: SparkSessions, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    text = f"open({str(calls)!r}, 'a').write('x')\n" + streams("source.to_relation('made', 'x INT').uid('out')")
    front_end = StreamFrontEnd(sessions, None)
    source = ProgramSource("create view v as select x from made;", stream_files=(SourceFile("program.py", text),))
    first = front_end.compile(source)
    assert front_end.compile(source) == first
    assert front_end.compile(source.with_fields(sql="create view w as select x from made;")).streams == first.streams
    assert front_end.late_relations(source) == frozenset()
    assert front_end.declarations(source) == {
        "v": "create view v as select x from made",
        "made": "to_relation('made', 'x INT')",
    }
    assert calls.read_text() == "x"


def test_connectors_of_the_sql_text_are_checked(sessions: SparkSessions) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("this transport is wrong")

    sql = 'create table t (x int) with (\'connectors\' = \'[{"transport": {"name": "x"}}]\');'
    source = ProgramSource(sql, stream_files=(SourceFile("program.py", streams("source.print()")),))
    with pytest.raises(ProgramErrors, match="This transport is wrong"):
        StreamFrontEnd(sessions, refuse).compile(source)


def test_what_the_author_should_know(compiled: Callable[..., Program]) -> None:
    program = compiled(streams("env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)\nsource.print()"), "")
    assert ["STREAMING mode" in warning.message for warning in program.warnings] == [True]


def test_a_relation_ends_with_all_connectors_of_its_tables(compiled: Callable[..., Program]) -> None:
    connector = """'append_only' = 'true', 'connectors' = '[{"name": "in", "transport": {"name": "file_input", "config":
        {"path": "/f"}}, "format": {"name": "json"}}]'"""
    sql = f"""
    create table a (x int) with ({connector});
    create table b (x int) with ({connector});
    create table pushed (x int) with ('append_only' = 'true');
    create view both as select x from a union all select x from b;
    create view also as select x from both union all select x from pushed;
    """
    reads = [("a", ""), ("pushed", ""), ("both", ""), ("also", ""), ("a", ", stays_open=True")]
    lines = [f'env.from_relation("{name}"{more}).uid("{number}").print()' for number, (name, more) in enumerate(reads)]
    program = compiled(streams("\n".join(lines)), sql)
    assert program.streams is not None
    assert [each.ends_with for each in program.streams.inputs] == [("a.in",), (), ("a.in", "b.in"), (), ()]
    assert set(program.streams.tables) == {"0", "2"}
    assert {connector.name for connector in program.connectors if connector.relation.startswith("stream source")} == {"end"}
    timed = compiled(
        streams(lines[0] + "\n" + lines[2]),
        sql + "create view timely as select x from a where now() > timestamp '2020-01-01 00:00:00';",
    )
    assert timed.streams is not None
    assert [each.ends_with for each in timed.streams.inputs] == [("a.in",), ()]  # views may follow the clock
