"""Programs: relations, names, the order of views, and the places of errors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.program.relations import Index, ViewKind
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.types import ColumnType, decimal
from airflow_pipelines.sql.program.parser import parse_program
from tests.sql.program.refusals import caught_texts, errors, the_error

GRADES = """create table students (
    id bigint,
    name varchar
) with ('materialized' = 'true');

/* Grades; one row each */
create table Grades (
    student_id bigint not null, -- of students
    class string,
    "Grade" decimal(5,2) default 0.00 not null,
    primary key (Student_ID, "Grade")
);
create local view Later as select * from EARLIER;
create materialized view earlier (a, B) as
    select s.ID, "Grade" from grades g join Students s on g.student_id = s.id;
"""


def test_tables_columns_and_keys() -> None:
    program = parse_program(GRADES)
    assert list(program.tables) == ["students", "grades"]
    students, grades = program.tables["students"], program.tables["grades"]
    assert students.materialized
    assert students.primary_key is None
    assert [column.type for column in students.columns] == [ColumnType("BIGINT"), ColumnType("VARCHAR")]
    assert grades.primary_key == ("student_id", "Grade")
    assert grades.materialized, "a primary key makes a table materialized"
    grade = grades.columns[2]
    assert (grade.name, grade.case_sensitive, grade.default) == ("Grade", True, "0.00")
    assert grade.type == decimal(5, 2, nullable=False)
    assert grades.columns[1].type.nullable


def test_views_come_after_what_they_read() -> None:
    program = parse_program(GRADES)
    assert list(program.views) == ["earlier", "later"]
    earlier = program.views["earlier"]
    assert earlier.kind is ViewKind.MATERIALIZED
    assert earlier.column_names == ("a", "b")
    assert earlier.reads == ("grades", "students")
    assert earlier.query == "select s.id, `Grade` from grades g join students s on g.student_id = s.id"
    assert program.views["later"].kind is ViewKind.LOCAL


def test_query_keeps_the_offsets_of_the_text() -> None:
    text = 'CREATE TABLE t("A""b" INT);'
    text += 'CREATE VIEW V AS\r\n\tSELECT "A""b" /* é "x" */ , \'Ünï\'\'X\' AS C -- tail\r\n FROM T WHERE X = 1.5E0'
    view = parse_program(text).views["v"]
    original = text[view.query_offset : view.query_offset + len(view.query)]
    assert original.startswith("SELECT")
    assert original.endswith("1.5E0")
    assert view.query == "select `A\"b`              , 'Ünï''X' as c        \r\n from t where x = 1.5E0"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_unknown_relation(line_end: str) -> None:
    text = line_end.join(["create table t (a int);", "", "create view v as", "  select *", "    from t join Blah on true"])
    (message,) = errors(text)
    assert message.error_type == "Compilation error"
    assert message.message == "From line 5, column 17 to line 5, column 20: Object 'blah' not found"
    assert message.span == Span(5, 17, 5, 20)
    assert message.snippet == ("    4|  select *\n" + "    5|    from t join Blah on true\n" + "                      ^^^^\n")
    assert message.to_wire() == {
        "start_line_number": 5,
        "start_column": 17,
        "end_line_number": 5,
        "end_column": 20,
        "warning": False,
        "error_type": "Compilation error",
        "message": message.message,
        "snippet": message.snippet,
    }


def test_snippet_of_the_first_line_has_no_line_before() -> None:
    (message,) = errors("create view v as select * from nope")
    assert message.snippet == "    1|create view v as select * from nope\n" + " " * 37 + "^^^^\n"


def test_common_tables_are_not_relations() -> None:
    text = """create table t (a int);
    create view v as with c as (select * from t), d as (select * from c) select * from d, (with e as (select 1) select * from e) x;
    create view r as with recursive n(i) as (select 1 union all select i + 1 from n where i < 3) select * from n;
    create view s as with t as (select * from t) select * from t"""
    views = parse_program(text).views
    assert views["v"].reads == ("t",)
    assert views["r"].reads == ()
    assert views["s"].reads == ("t",), "inside its own definition the name is the table's"


def test_later_common_table_is_not_visible_earlier() -> None:
    text = "create view v as with c as (select 1 from later), later as (select 1 as a) select * from c"
    assert the_error(text, "later").endswith("Object 'later' not found")


def test_qualified_relation_names_do_not_exist() -> None:
    text = "create table t (a int); create view v as select * from parquet.`/etc/passwd`"
    assert "Object 'parquet./etc/passwd' not found" in the_error(text, "parquet.`/etc/passwd`")


def test_relations_in_subqueries_are_reads() -> None:
    text = """create table t(a int); create table u(b int);
    create view v as select (select max(b) from u) from t where a in (select b from u)"""
    assert parse_program(text).views["v"].reads == ("u", "t")


def test_cycle_names_its_views() -> None:
    text = 'create view a as select * from "B"; create view "B" as select * from c; create view c as select * from a'
    messages = errors(text)
    declare = "To compute them by recursion, add DECLARE RECURSIVE VIEW a(<columns and types>)"
    assert caught_texts(messages) == [f'Views read each other in a cycle: a -> "B" -> c -> a. {declare}']


def test_a_view_that_reads_itself_is_a_cycle() -> None:
    assert the_error("create view v as select * from v", "v", 1).startswith("Views read each other in a cycle: v -> v. To compute")


@pytest.mark.rest
def test_long_chains_of_views_are_ordered() -> None:
    count = 1200
    text = "".join(f"create view v{n} as select * from v{n + 1};" for n in range(count)) + f"create view v{count} as select 1"
    assert next(iter(parse_program(text).views)) == f"v{count}"


def test_all_errors_are_reported_in_the_order_of_the_text() -> None:
    text = """create table t (a itn);
create view v as select from where;
create view w as select * from t, nope;
create function f(a itn) returns int;
select 1"""
    messages = errors(text)
    assert [message.span.start_line for message in messages if message.span] == [1, 2, 3, 4, 5]
    assert "Unknown type 'itn'" in messages[0].message
    assert "found 'where'" in messages[1].message
    assert "Object 'nope' not found" in messages[2].message, "t is declared, if wrongly"
    assert "Unknown type 'itn'" in messages[3].message
    assert "write CREATE VIEW name AS SELECT" in messages[4].message


@pytest.mark.parametrize(
    ("statement", "head", "advice"),
    [
        ("CREATE UNIQUE INDEX i ON v(a)", "CREATE UNIQUE INDEX", "write CREATE INDEX"),
        ("CREATE LINEAR AGGREGATE a(x INT) RETURNS INT", "CREATE LINEAR AGGREGATE", "prepare their arguments with CREATE FUNCTION"),
        ("SET spark.x = ON", "SET", "runtime configuration"),
        ("INSERT INTO t VALUES (1)", "INSERT", "ad-hoc request"),
        ("ALTER TABLE t ADD COLUMN a INT", "ALTER", "change the CREATE statement instead"),
        ("DROP VIEW v", "DROP", "remove the CREATE statement instead"),
        ("CREATE STREAMING TABLE t (a INT)", "CREATE STREAMING TABLE", "CREATE TABLE with an input connector"),
    ],
)
def test_statements_of_other_systems_are_refused_with_advice(statement: str, head: str, advice: str) -> None:
    assert advice in the_error(f"-- first\n{statement};", head)


def test_indexes_are_read_and_settings_of_other_systems_have_no_effect() -> None:
    declared = "create table t (a int); create view v as select a from t;"
    program = parse_program(f"SET FELDERA_X = ON; {declared} create index i on V(A); create index j on t(a)")
    assert [declared.index for declared in program.indexes] == [Index("i", "v", ("a",)), Index("j", "t", ("a",))]
    assert [warning.message.split(" has no effect")[0] for warning in program.warnings] == ["SET"]
    assert "Object 'nowhere' not found" in the_error("create index i on nowhere(a)", "nowhere")
    assert "declared twice" in the_error("create table t (a int); create index i on t(a); create index I on t(a)", "I")
    assert "Expected the end" in the_error("create table t (a int); create index i on t(a) using b", "using")


def test_names_declared_twice_give_both_places() -> None:
    message = the_error('create table t (a int);\ncreate view "t" as select 1 as a', '"t"')
    assert message == "t is declared twice: first at line 1, column 14, again at line 2, column 13"
    assert "first at line 1, column 17, again at line 1, column 24" in the_error("create table t (a int, A int)", "A")
    assert "is declared twice" in the_error("create view v(a, b, A) as select 1, 2, 3", "A")
    assert "two primary keys" in the_error("create table t (a int primary key, primary key (a))", "primary key (a)")


def test_quoted_names_keep_their_case() -> None:
    program = parse_program(
        'create view "V0" as select 1 as x; create view v0 as select * from "V0"; create view `Sp ace` as select * from v0'
    )
    assert list(program.views) == ["V0", "v0", "Sp ace"]
    assert program.views["V0"].case_sensitive
    assert not program.views["v0"].case_sensitive
    assert program.views["v0"].query == "select * from `V0`"


@pytest.mark.parametrize("name", ["feldera_x", "FELDERA", '"Feldera"', "error_view"])
def test_reserved_names(name: str) -> None:
    assert "reserved" in the_error(f"create table {name} (a int)", name)


def test_reserved_columns() -> None:
    assert "reserved" in the_error("create table t (a int, __weight int)", "__weight")


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("create table t (a int", "int", "end of the statement"),
        ("create table t a int", "a", "Expected ("),
        ("create table t (a int) as select 1", "as", "CREATE MATERIALIZED VIEW"),
        ("create table t (a int b int)", "b", "Expected NOT NULL"),
        ("create table a.b (a int)", ".", "one part"),
        ("create view v", "v", "Expected AS"),
        ("create view v as", "as", "Expected a query"),
        ("create view v as insert into t values (1)", "insert", "Expected a query"),
        ("create table t (a int watermark 1)", "watermark", "not supported yet"),
        ("create table t (a int, check (a > 0))", "check", "not supported yet"),
        ("create view v as select 'abc", "'", "This string is not closed"),
        ('create view v as select date "2024-01-01" as d', "as", "strings take single quotes: '2024-01-01'"),
        ("create view v as select 1 /* a /* b */", "/", "This comment is not closed"),
        ('create view v as select "abc', '"', "This quoted name is not closed"),
    ],
)
def test_syntax_errors_have_a_place(text: str, at: str, says: str) -> None:
    (message,) = errors(text)
    assert message.span is not None
    assert SourceText(text).slice(message.span) == at
    assert says in message.message


def test_empty_programs() -> None:
    for text in ("", "  \r\n", ";;", "-- nothing\n", "/* nothing */"):
        program = parse_program(text)
        assert not program.tables
        assert not program.views


def test_byte_order_mark_is_no_part_of_the_text() -> None:
    view = parse_program("\ufeffcreate view v as select 1 as a").views["v"]
    assert (view.query, view.query_offset) == ("select 1 as a", 18)


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    text = "create view v as select " + "(" * 5000 + "1" + ")" * 5000 + " as a"
    (message,) = errors(text)
    assert "nests too deep" in message.message
    (message,) = errors(f"create table t (a {'array<' * 200}int{'>' * 200})")
    assert "cannot nest deeper" in message.message


names = st.text(st.characters(categories=["L", "N"], include_characters="_ .`\"'-/*;"), min_size=1, max_size=8).filter(str.strip)


@pytest.mark.rest
@settings(max_examples=60, deadline=None)
@given(
    table=names,
    column=names,
    text=st.text(max_size=12),
    gap=st.sampled_from([" ", "\n", "\r\n", "\t-- c ' \"\n", " /* ' \" ; */ "]),
)
def test_any_quoted_name_and_string_survive(table: str, column: str, text: str, gap: str) -> None:
    if table.lower().startswith(("feldera", "error_view")) or column.startswith("__") or "\\" in text:
        return

    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    literal = "'" + text.replace("'", "''") + "'"
    query = f"SELECT {quoted(column)},{gap}{literal} FROM {quoted(table)}"
    program = f"create table {quoted(table)}{gap}({quoted(column)} int);{gap}create view Äv as{gap}{query}"
    parsed = parse_program(program)
    assert list(parsed.tables) == [table]
    assert parsed.tables[table].columns[0].name == column
    view = parsed.views["äv"]
    assert view.query_offset == len(program) - len(query)
    assert view.reads == (table,)
    head = f"select {quoted(column)},"
    assert view.query.startswith(head)
    assert view.query[len(head) :].lstrip().startswith(literal)
    assert view.query.endswith(f"{literal} from {quoted(table)}")
    assert len(view.query) == len(query)
