from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pytest

from airflow_pipelines.compiler import views
from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark import java_errors
from airflow_pipelines.program.diff import compare
from airflow_pipelines.program.messages import ProgramErrors, ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.option_errors import UnknownOptionError
from airflow_pipelines.rows.types import ColumnType, decimal
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions
    from airflow_pipelines.program.connectors import Connector
    from airflow_pipelines.rows.schema import RelationSchema

TABLE = 'create table t (a int not null, b string, d decimal(5,2), i uuid, "Q x" date, arr int array, ts timestamp);\n'


def program(start: str, end: str) -> str:
    return f"""create table students (
  id bigint,
  name varchar
) with (
  'materialized' = 'true'
);

create table grades (
  student_id bigint,
  class string,
  grade decimal(5,2),
  class_date date
) with (
  'materialized' = 'true'
);

-- Average grade per student and class over a range of dates.
create view avg_grade as
select
  student_id,
  class,
  AVG(grade) as class_avg
from grades
where class_date >= date '{start}' and class_date <= date '{end}'
group by student_id, class;

create materialized view avg_grade_enriched as
select name as student_name, class, class_avg
from avg_grade join students on avg_grade.student_id = students.id;
"""


def errors(sessions: SparkSessions, text: str) -> tuple[ProgramMessage, ...]:
    with pytest.raises(ProgramErrors) as caught:
        compile_program(text, sessions)
    return caught.value.messages


def types(compiled: Program, view: str) -> dict[str, ColumnType]:
    return {column.name: column.type for column in compiled.views[view].columns}


@pytest.mark.core
def test_the_student_grades_program(sessions: SparkSessions) -> None:
    compiled = compile_program(program("2025-09-01", "2025-12-15"), sessions)
    assert types(compiled, "avg_grade_enriched") == {
        "student_name": ColumnType("VARCHAR"),
        "class": ColumnType("VARCHAR"),
        "class_avg": decimal(9, 6),
    }
    assert set(compiled.schemas) == {"students", "grades", "avg_grade", "avg_grade_enriched", "error_view"}
    assert list(compiled.plans) == ["avg_grade", "avg_grade_enriched"]
    outputs = {relation["name"]: relation for relation in compiled.info.to_wire()["schema"]["outputs"]}
    assert set(outputs) == {"avg_grade", "avg_grade_enriched", "error_view"}
    assert outputs["avg_grade_enriched"]["materialized"] is True
    assert outputs["avg_grade"]["fields"][2]["columntype"]["scale"] == 6


@pytest.mark.core
def test_the_example_of_modifying_a_pipeline(sessions: SparkSessions) -> None:
    more = """
    create materialized view avg_grade_all_courses as
    select student_id, avg(class_avg) as avg from avg_grade group by student_id;"""
    old = compile_program(program("2025-09-01", "2025-12-15"), sessions)
    new = compile_program(program("2025-09-01", "2026-06-10") + more, sessions)
    assert types(new, "avg_grade_all_courses")["avg"] == decimal(13, 10)
    assert compare(old.fingerprints, new.fingerprints).to_wire() == {
        "added_input_connectors": [],
        "added_output_connectors": [],
        "modified_input_connectors": [],
        "modified_output_connectors": [],
        "program_diff": {
            "added_tables": [],
            "added_views": ["avg_grade_all_courses"],
            "modified_tables": [],
            "modified_views": ["avg_grade", "avg_grade_enriched"],
            "removed_tables": [],
            "removed_views": [],
        },
        "program_diff_error": None,
        "removed_input_connectors": [],
        "removed_output_connectors": [],
    }


@pytest.mark.core
def test_column_types_nullability_and_names(sessions: SparkSessions) -> None:
    text = """create view v as
      select A, count(*) as n, i, max(b) as m, "Q x", count(b), cast(ts as string) as s from t group by all;
    create view w(x, "Y") as select arr[0], i from t;
    create view u as select "EXPR$5" + 1 as n from v"""
    compiled = compile_program(TABLE + text, sessions)
    assert types(compiled, "v") == {
        "a": ColumnType("INTEGER", nullable=False),
        "n": ColumnType("BIGINT", nullable=False),
        "i": ColumnType("UUID"),
        "m": ColumnType("VARCHAR"),
        "Q x": ColumnType("DATE"),
        "EXPR$5": ColumnType("BIGINT", nullable=False),
        "s": ColumnType("VARCHAR"),
    }
    assert types(compiled, "w") == {"x": ColumnType("INTEGER"), "Y": ColumnType("UUID")}
    assert [column.case_sensitive for column in compiled.views["w"].columns] == [False, True]


@pytest.mark.core
@pytest.mark.parametrize(
    ("view", "at", "says"),
    [
        ("create view v as\n select a,\n Nope from t", "Nope", "`nope` cannot be resolved. Did you mean one of the following?"),
        ("create view v as select '😀ü' x, /* ' */ T.Nope from T", "T.Nope", "`t`.`nope` cannot be resolved"),
        ('create view v as\r\n select "q X" from t', '"q X"', "`q X` cannot be resolved"),
        ("create view v as select foo(a) from t", "foo(a)", "Function `foo` does not exist"),
        ("create view v as select upper(b, a) from t", "upper(b, a)", "requires 1 parameters but the actual number is 2."),
        ("create view v as select a + true from t", "a + true", "data type mismatch"),
        (
            "create view v as select count(*) from t where max(a) > 1",
            "select count(*) from t where max(a) > 1",
            "aggregate functions",
        ),
        ("create view v as select b from t order by Zork limit 1", "Zork", "`zork` cannot be resolved"),
        ("create view v as with c as (select zork from t) select * from c", "zork", "cannot be resolved"),
        ("create view v as select (select a, b from t) as s from t", "(select a, b from t)", "only one column"),
        ("create view v as select a from t union all select a, b from t", None, "same number of columns"),
        ("create view v(x) as select a, b from t", "v", "lists 1 columns and its query gives 2: a, b"),
        ('create view v as select a from t where b = "abc"', '"abc"', "strings take single quotes: 'abc'"),
        ("create view v as select a from t where b in ('x', \"it's\")", '"it\'s"', "strings take single quotes: 'it''s'"),
        (
            "create view v as select make_interval(a) as gap from t",
            "v",
            "write make_ym_interval(years, months) or make_dt_interval",
        ),
        ("create view v as select null as n from t", "v", "CAST(NULL AS"),
        ("create view v as select a as __weight from t", "v", "reserved"),
        ("create view v as select a, Rand() r from t", "Rand", "Rand() gives another value each time".lower()),
        ("create view v as select uuid() u from t", "uuid", "another value each time"),
        ("create view v as select current_user() as d from t", "current_user", "who runs"),
        ("create view v as select a, listagg(b) as f from t group by a", "listagg", "WITHIN GROUP (ORDER BY ...)"),
        ("create view v as select * from t tablesample (10 percent)", "tablesample", "random"),
        ("create view v as select transform(a) using 'cat' from t", "transform", "not allowed"),
        ("create view v as select * from Identifier('text.`/etc/passwd`')", "Identifier", "not allowed"),
        ("create view v as select java_method('java.lang.System', 'exit', 1) as x from t", "java_method", "not allowed"),
    ],
)
def test_errors_in_queries(sessions: SparkSessions, view: str, at: str | None, says: str) -> None:
    text = TABLE + view
    messages = errors(sessions, text)
    span = messages[0].span
    assert span is not None
    assert says in messages[0].message.replace("Rand()", "rand()")
    if at is not None:
        assert SourceText(text).slice(span) == at
        assert len(messages) == 1
    for noise in ("SQLSTATE", "Project", "https://", "\n"):
        assert noise not in messages[0].message


@pytest.mark.core
def test_what_spark_is_asked_grows_with_the_program_and_not_with_its_square(
    sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    known = SparkAnalyzer.columns

    def columns(self: SparkAnalyzer, query: str) -> object:
        asked.append(query)
        return known(self, query)

    monkeypatch.setattr(SparkAnalyzer, "columns", columns)
    sizes = []
    for count in (4, 16):
        union = " union all ".join(f"select a + {number} as x, b from t" for number in range(count))
        asked.clear()
        assert compile_program(f"{TABLE}create view v as {union}", sessions).plans["v"].reason is None
        sizes.append(sum(map(len, asked)))
    assert sizes[1] < 6 * sizes[0]


@pytest.mark.core
def test_a_union_takes_the_wider_type_from_either_side(sessions: SparkSessions) -> None:
    query = "select a, d, null as n from t union all select a + 1l, 1, 'x' from t union all select 1, 2.555, b from t"
    compiled = compile_program(f"{TABLE}create view v as {query}", sessions)
    assert compiled.plans["v"].reason is None
    assert [column.type.spark_ddl() for column in compiled.views["v"].columns] == ["BIGINT", "DECIMAL(13,3)", "STRING"]


@pytest.mark.core
def test_a_program_that_takes_too_long_is_given_up_at_a_view(sessions: SparkSessions) -> None:
    text = TABLE + "create view v as select a from t; create view w as select b from t"
    with pytest.raises(ProgramErrors) as raised:
        compile_program(text, sessions, limit_s=0.0)
    (message,) = raised.value.messages
    assert message.span is not None
    assert SourceText(text).slice(message.span) == "v"
    assert "more than 0 s of a processor: it has come to view v, number 1 of 2. Divide it" in message.message


@pytest.mark.core
def test_columns_of_one_name_are_told_apart(sessions: SparkSessions) -> None:
    text = """create view v as select a, b as A, a, d as a0, count(*) over (), b || 'x' as "EXPR$4" from t;
    create view w as select x.*, y.* from t x join t y on x.a = y.a;
    create view u as select a2 + a0 as n from v"""
    compiled = compile_program(TABLE + text, sessions)
    assert list(types(compiled, "v")) == ["a", "a1", "a2", "a0", "EXPR$4", "EXPR$40"]
    assert [str(kind) for kind in types(compiled, "v").values()][:4] == ["INTEGER", "VARCHAR", "INTEGER", "DECIMAL(5,2)"]
    names = ["a", "b", "d", "i", "Q x", "arr", "ts"]
    assert list(types(compiled, "w")) == [*names, *(f"{name}0" for name in names)]


@pytest.mark.core
def test_ordered_choices_are_allowed(sessions: SparkSessions) -> None:
    text = """create view v as select a, sort_array(collect_list(b)) as l, size(collect_set(b)) as n, min_by(b, a) as m,
        listagg(b, ',') within group (order by b) as s from t group by a;
    create view w as select a, first_value(b) over (partition by i order by a) as f from t;
    create view x as select to_date(b) as d, unix_timestamp(b) as u from t"""
    compiled = compile_program(TABLE + text, sessions)
    assert types(compiled, "v")["l"].component is not None


@pytest.mark.core
def test_variables_are_not_replaced(sessions: SparkSessions) -> None:
    compiled = compile_program(TABLE + "create view v as select '${spark.app.name}' as x from t", sessions)
    assert "${spark.app.name}" in compiled.plans["v"].query


@pytest.mark.core
def test_views_may_have_intervals(sessions: SparkSessions) -> None:
    text = "create view v as select ts - ts as gap, interval '1-2' year to month as m, interval '1' day as d from t"
    compiled = compile_program(TABLE + text, sessions)
    [v, _] = compiled.info.to_wire()["schema"]["outputs"]
    kinds = [field["columntype"]["type"] for field in v["fields"]]
    assert kinds == ["INTERVAL_DAY_SECOND", "INTERVAL_YEAR_MONTH", "INTERVAL_DAY"]


@pytest.mark.core
def test_all_errors_are_reported_and_only_causes(sessions: SparkSessions) -> None:
    text = TABLE + "create view x as select * from v;\ncreate view v as select nope from t;\ncreate view w as select foo(a) from t"
    messages = errors(sessions, text)
    assert [message.span.start_line for message in messages if message.span] == [3, 4]


@pytest.mark.core
def test_defaults_are_checked(sessions: SparkSessions) -> None:
    (message,) = errors(sessions, "create table t (a int default 1, b int default foo(), c string default 'x' || 'y')")
    assert message.message == "The DEFAULT of column b is wrong: Function `foo` does not exist"
    (message,) = errors(sessions, "create table t (a int, b int default a)")
    assert "`a` cannot be resolved" in message.message


def test_defaults_are_evaluated_once_where_they_are_always_the_same(sessions: SparkSessions) -> None:
    text = """create table t (
        a int default 1, a2 date default date '2024-01-01', a3 int default -1, a4 int default cast(1.7 as int),
        b varchar default upper('x') || 'y', c date default date '2024-01-31' + interval 1 month,
        d varchar array default array('p', NULL), e map<varchar, int> default map('k', 2), f timestamp default now(),
        g varchar default uuid(), j timestamp default localtimestamp, k time default localtime,
        h timestamp default timestamp '2024-01-01 00:00:00' + interval '1' hour,
        i bigint default cast(connector_metadata()['kafka_offset'] as bigint), l int default 1.5, m decimal(4, 1) default 2.25,
        n uuid default '0199C0DE-0000-7000-8000-000000000000', o smallint unsigned default 65535,
        p varchar(2) default 'abc', q binary(2) default x'01', r varbinary(1) default x'0102')"""
    schema = compile_program(text, sessions).schemas["t"]
    assert schema.defaults == {
        "a": 1,
        "a2": dt.date(2024, 1, 1),
        "a3": -1,
        "a4": 1,
        "b": "Xy",
        "c": dt.date(2024, 2, 29),
        "d": ["p", None],
        "e": [("k", 2)],
        "h": dt.datetime(2024, 1, 1, 1),
        "i": None,
        "l": 1,
        "m": Decimal("2.3"),
        "n": "0199c0de-0000-7000-8000-000000000000",
        "o": 65535,
        "p": "ab",
        "q": b"\x01\x00",
        "r": b"\x01",
    }
    assert schema.varying is not None
    assert schema.varying.columns == {"g"}


def test_defaults_of_intervals_are_literals_or_any_constant(sessions: SparkSessions) -> None:
    text = """create table t (a int,
        s interval day to second default make_dt_interval(1, 2), h interval hour default interval 3 hours,
        y interval year to month default make_ym_interval(1, 3), m interval month default -interval '2' month,
        n interval day default null)"""
    schema = compile_program(text, sessions).schemas["t"]
    parsed = JsonParser(schema, JsonOptions(update_format="raw")).parse(b'{"a": 1}')
    assert parsed.changes is not None
    (row,) = parsed.changes.rows.to_pylist()
    assert (row["s"], row["h"], row["n"]) == (dt.timedelta(days=1, hours=2), dt.timedelta(hours=3), None)
    assert (row["y"], row["m"]) == (15, -2)


def test_defaults_that_differ_are_evaluated_when_they_are_needed(sessions: SparkSessions) -> None:
    text = """create function twice(x int) returns int as x * 2;
    create table t (a uuid default uuid(), b varchar default uuid(), c timestamp default now() - interval 1 hour,
        d int default twice(year(current_date)), e varchar default now(), f int default 1 / (year(now()) - 2023),
        g row(a int, b varchar) default named_struct('a', 1, 'b', cast(now() as varchar)), h char(4) default 'ab');
    create table clocked (a varchar default cast(now() as varchar))"""
    program = compile_program(text, sessions)
    varying, clocked = program.schemas["t"].varying, program.schemas["clocked"].varying
    assert varying is not None
    assert clocked is not None
    moment = dt.datetime(2024, 2, 29, 0, 30)
    now = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    rows = [varying.row(now) for _ in range(40)]
    assert len({row["a"] for row in rows} | {row["b"] for row in rows}) == 80
    assert {UUID(row["a"]).version for row in rows} == {4}
    earlier = moment - dt.timedelta(hours=1)
    assert {(row["c"], row["d"], row["e"], row["f"]) for row in rows} == {(earlier, 4048, str(moment), 1)}
    assert rows[0]["g"] == {"a": 1, "b": str(moment)}
    assert program.schemas["t"].defaults == {"h": "ab"}
    with pytest.raises(ValueError, match=r"DIVIDE_BY_ZERO|Division by zero"):
        varying.row(now - 366 * 86_400_000_000)
    assert varying.row(now + 1)["c"] == earlier + dt.timedelta(microseconds=1), "it goes on"
    assert [clocked.row(at)["a"][-3:] for at in (5, 5, 6)] == ["005", "005", "006"]


@pytest.mark.core
def test_defaults_that_read_metadata_are_evaluated_for_records(sessions: SparkSessions) -> None:
    text = """create table t (a bigint default cast(CONNECTOR_METADATA()['kafka_offset'] as bigint),
        b varchar(4) default upper(cast(connector_metadata()['kafka_topic'] as varchar)) || '!',
        c map<varchar, varbinary> default cast(connector_metadata()['kafka_headers'] as map<varchar, varbinary>),
        d timestamp default cast(connector_metadata()['kafka_timestamp'] as timestamp) + interval 1 hour,
        e variant default connector_metadata()['kafka_topic'], f int default 7,
        g varchar default coalesce(cast(connector_metadata()['nothing'] as varchar), 'none'),
        h varchar default cast(cast(connector_metadata()['kafka_headers'] as map<varchar, varbinary>)['x'] as varchar))"""
    schema = compile_program(text, sessions).schemas["t"]
    assert schema.described is not None
    assert schema.described.columns == set("abcdegh")
    assert {name: schema.defaults[name] for name in "abcdegh"} == {**dict.fromkeys("abcdeh"), "g": "none"}
    moment = dt.datetime(2024, 2, 29, 23, 30)
    metadata = pa.table(
        {
            "kafka_offset": pa.array([5, 6], pa.int64()),
            "kafka_topic": ["t1", None],
            "kafka_headers": pa.array([{"x": b"ab"}, {}], pa.map_(pa.string(), pa.binary())),
            "kafka_timestamp": pa.array([moment, None], pa.timestamp("us")),
        }
    )
    first, second = schema.described.rows(0, metadata)
    assert (first["a"], first["b"], first["c"], first["d"]) == (5, "T1!", [("x", b"ab")], dt.datetime(2024, 3, 1, 0, 30))
    assert variant.to_json(first["e"]) == '"t1"'
    assert (first["g"], first["h"]) == ("none", "ab")
    assert (second["a"], second["b"], second["c"], second["d"], second["h"]) == (6, None, [], None, None)
    (message,) = errors(sessions, "create table t (a int default connector_metadata()['kafka_offset'] + 'x')")
    assert message.message.startswith("The DEFAULT of column a is wrong: ")


@pytest.mark.core
def test_defaults_that_no_value_fits_are_refused(sessions: SparkSessions) -> None:
    (message,) = errors(sessions, "create table t (a int default 1, b tinyint default 300, c int default 2)")
    assert message.message.startswith("The DEFAULT of column b is wrong: ")
    found = errors(sessions, "create table t (a int unsigned default -1, b uuid default 'x', c int default 2 + 2)")
    assert [message.message.partition(" is wrong: ")[0] for message in found] == [
        "The DEFAULT of column a",
        "The DEFAULT of column b",
    ]
    assert "-1 does not fit into" in found[0].message
    # The clock gives times without a time zone here, as in views.
    (message,) = errors(sessions, "create table t (a bigint default unix_millis(now()), b timestamp default now())")
    assert message.message.startswith("The DEFAULT of column a is wrong: ")


@pytest.mark.core
@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("fil_input", '"fil_input"'),
        ("name", '{"name": "two", "transport": {"name": "fil_input"}}'),
        (None, '{"name": "two", "transport": {"name": "fil_input"}}'),
    ],
)
def test_connectors_are_checked_at_their_place(sessions: SparkSessions, word: str | None, place: str) -> None:
    text = """create table t (a int) with ('connectors' = '[
      {"name": "one", "transport": {"name": "file_input"}},
      {"name": "two", "transport": {"name": "fil_input"}}]');
    create view v as select * from t"""
    seen: list[str] = []

    def check(connector: Connector, schema: RelationSchema) -> None:
        seen.append(f"{connector.endpoint}({', '.join(schema.column_names)})")
        if connector.transport != "file_input":
            raise UnknownOptionError(f"connector {connector.endpoint!r}: unknown transport {connector.transport!r}", word)

    for _ in range(2):
        with pytest.raises(ProgramErrors) as caught:
            compile_program(text, sessions, check)
        (message,) = caught.value.messages
        assert message.message == "Connector 't.two': unknown transport 'fil_input'"
        assert message.span is not None
        assert SourceText(text).slice(message.span) == place
        assert [c.name for c in compile_program(text, sessions).connectors] == ["one", "two"]
    assert seen == ["t.one(a)", "t.two(a)"] * 2


@pytest.mark.core
def test_a_query_that_exhausts_a_stack_of_spark_nests_too_deep(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(*_: object) -> None:
        raise AnalysisFailed("the parser failed") from RuntimeError("in Java")

    monkeypatch.setattr(views, "plan_query", planned)
    text = f"{TABLE}create view v as select a from t -- a text of its own"
    (message,) = errors(sessions, text)
    assert message.message == "Spark cannot plan the query of v: the parser failed"
    monkeypatch.setattr(java_errors, "java_stack", lambda _: "java.lang.StackOverflowError")
    (message,) = errors(sessions, text)
    assert message.message == "The query of v nests too deep: move parts of it into views of their own"


@pytest.mark.core
def test_every_table_type_can_be_read(sessions: SparkSessions) -> None:
    text = """create table t (a boolean, b tinyint, c smallint, d int, e bigint, f real, g double, h decimal(10,3), i varchar(5),
      j char(2), k binary(3), l varbinary, m date, n time, o timestamp, p timestamp with time zone, q uuid, r variant,
      s int array, u map<varchar, int>, v row(x int, "Y" varchar null), w struct<x: int array>);
    create view all_of_it as select * from t;
    create view parts as select s[0] as s0, u['k'] as uk, v.x, v."Y", w.x[1] as wx, hour(n) as n from t"""
    compiled = compile_program(text, sessions)
    table = {column.name: column.type for column in compiled.tables["t"].columns}
    assert types(compiled, "all_of_it") == table
    assert types(compiled, "parts")["Y"] == ColumnType("VARCHAR")


@pytest.mark.core
def test_compiling_is_safe_from_many_threads(sessions: SparkSessions) -> None:
    def one(number: int) -> list[str]:
        text = (
            f"create table t (c{number} int, x{number} string); create view v as select * from t; create view w as select * from v"
        )
        return [column.name for column in compile_program(text, sessions).views["w"].columns]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [[f"c{number}", f"x{number}"] for number in range(8)]


@pytest.mark.core
def test_a_warm_compile_runs_no_spark_job(sessions: SparkSessions) -> None:
    compile_program(program("2024-01-01", "2024-02-01"), sessions)
    context = sessions.small.sparkContext
    context.setJobGroup("compile", "compile")
    for day in range(2, 6):
        compile_program(program("2024-01-01", f"2024-02-0{day}"), sessions)
    assert list(context.statusTracker().getJobIdsForGroup("compile")) == []


@pytest.mark.core
def test_the_same_text_is_compiled_once(sessions: SparkSessions) -> None:
    text = program("2023-01-01", "2023-02-01")
    assert compile_program(text, sessions) is compile_program(text, sessions)
