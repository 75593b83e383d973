from __future__ import annotations

import pytest

from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.sql.program.adhoc import AdhocKind, parse_adhoc


def test_select() -> None:
    text = '  SELECT "A", B FROM V x join W on x.a = w.a -- all\n;'
    (statement,) = parse_adhoc(text)
    assert statement.kind is AdhocKind.SELECT
    assert statement.query.text == "select `A`, b from v x join w on x.a = w.a"
    assert statement.reads == ("v", "w")
    assert text[statement.offset :].startswith("SELECT")
    (constant,) = parse_adhoc("VALUES (1, 'a')")
    assert constant.reads == ()
    (common,) = parse_adhoc("with c as (select * from T) select * from c")
    assert common.reads == ("t",)


@pytest.mark.parametrize(
    ("text", "columns", "source", "reads"),
    [
        ("insert into T values (1, 'It''s'), (2, NULL)", None, "SELECT * FROM VALUES (1, 'It''s'), (2, null)", ()),
        ('INSERT INTO T ("A", B) VALUES (1, 2)', ("A", "b"), "SELECT * FROM VALUES (1, 2)", ()),
        ("insert into table t (a) select A from U where a > 1", ("a",), "select a from u where a > 1", ("u",)),
        ("insert into t (select a from u)", None, "(select a from u)", ("u",)),
        ("insert into t with c as (select 1 as a) select * from c", None, "with c as (select 1 as a) select * from c", ()),
    ],
)
def test_insert(text: str, columns: tuple[str, ...] | None, source: str, reads: tuple[str, ...]) -> None:
    (statement,) = parse_adhoc(text)
    assert (statement.kind, statement.target) == (AdhocKind.INSERT, "t")
    assert (statement.columns, statement.query.text, statement.reads) == (columns, source, reads)


def test_delete() -> None:
    (everything,) = parse_adhoc('delete from "T"')
    assert (everything.kind, everything.target, everything.query.text) == (AdhocKind.DELETE, "T", "SELECT * FROM `T`")
    text = "insert into u values (1); DELETE FROM t WHERE A = 'X' or a in (select max(b) from u)"
    some = parse_adhoc(text)[1]
    assert some.query.text == "SELECT * FROM `t` WHERE (a = 'X' or a in (select max(b) from u))"
    assert some.reads == ("u",)
    at = some.query.text.index("max(b)")
    assert text[slice(*some.place(*some.query.origin(at, at + 6)))] == "max(b)"


def test_several_statements() -> None:
    kinds = [
        statement.kind for statement in parse_adhoc("insert into t values (1); delete from u where a = ';';\nselect * from t;")
    ]
    assert kinds == [AdhocKind.INSERT, AdhocKind.DELETE, AdhocKind.SELECT]


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("select 1; select 2", "select", "Only the last statement"),
        ("create table t (a int)", "create", "change the pipeline's program"),
        ("DROP TABLE t", "DROP", "change the pipeline's program"),
        ("alter table t add column b int", "alter", "change the pipeline's program"),
        ("update t set a = 1", "update", "only SELECT, INSERT and DELETE"),
        ("insert overwrite t values (1)", "overwrite", "not supported yet"),
        ("insert into a.b values (1)", ".", "one part"),
        ("insert into t (a, A) values (1, 2)", "A", "listed twice"),
        ("insert into t", "t", "Expected VALUES"),
        ("delete from t where", "where", "Expected a condition"),
        ("delete t", "t", "Expected FROM"),
        ("select from where", "where", "found 'where'"),
        ("select 'abc", "'", "not closed"),
        ("hello world", "hello", "Expected SELECT, INSERT, DELETE, PREPARE or EXECUTE"),
        ("select transform(a) using 'cat' from t", "transform", "not allowed"),
        ("select * from identifier('t')", "identifier", "not allowed"),
        ("insert into t select reflect('java.lang.System', 'exit', 1)", "reflect", "not allowed"),
        ("delete from t where java_method('java.lang.System', 'exit', 1) = 1", "java_method", "not allowed"),
    ],
)
def test_refusals_have_a_place(text: str, at: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        parse_adhoc(text)
    (message,) = caught.value.messages
    assert message.span is not None
    assert says in message.message
    assert SourceText(text).slice(message.span) == at


def test_all_errors_are_reported() -> None:
    with pytest.raises(ProgramErrors) as caught:
        parse_adhoc("drop table t; update t set a = 1; select 1")
    assert len(caught.value.messages) == 2


@pytest.mark.parametrize("text", ["", " ; ;", "-- nothing"])
def test_empty_requests(text: str) -> None:
    with pytest.raises(ProgramErrors, match="no statement"):
        parse_adhoc(text)


def test_prepared_statements_are_read_where_they_are_executed() -> None:
    text = """PREPARE p(INT, VARCHAR(3)) AS SELECT A + $1 AS x, $2 FROM T WHERE s = '$1' OR a > $1;
              PREPARE "Put" AS INSERT INTO t VALUES ($2, $1);
              EXECUTE "Put"('a, b', f(1, 2)); EXECUTE p(1 + 2, 'abcd')"""
    put, select = parse_adhoc(text)
    assert (put.kind, put.target, put.query.text) == (AdhocKind.INSERT, "t", "SELECT * FROM VALUES ((f(1, 2)), ('a, b'))")
    assert select.query.text == (
        "select a + (cast(1 + 2 as int)) as x, (LEFT(CAST('abcd' AS STRING), 3)) from t where s = '$1' or a > (cast(1 + 2 as int))"
    )
    assert select.reads == ("t",)
    assert text[slice(*select.place(0, 1))] == "EXECUTE p(1 + 2, 'abcd')"
    at = select.query.text.index("(LEFT")
    assert select.find_written(text, *select.query.origin(at, at + 30)) == "(cast('abcd' as varchar(3))"
    assert parse_adhoc("prepare p as select 1") == []


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("execute p", "p", "No statement p is prepared"),
        ("prepare p as select $1; execute p", "p", "takes 1 values, and EXECUTE gives 0"),
        ("prepare p(int) as select 1; execute p(1, 2)", "p", "takes 1 values"),
        ("prepare p(int) as select $2", "p", "no parameter $2"),
        ("prepare p as select 1; prepare p as select 2", "p", "prepared already"),
        ("prepare p as", "as", "Expected SELECT"),
        ("prepare p as drop table t; execute p", "execute p", "change the pipeline's program"),
        ("prepare p as select 1; execute p; select 2", "execute", "Only the last statement"),
        ("prepare p as select 1; execute p(,)", ",", "Expected a value"),
    ],
)
def test_wrong_prepared_statements_have_a_place(text: str, at: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        parse_adhoc(text)
    (message,) = caught.value.messages
    assert says in message.message
    assert message.span is not None
    assert SourceText(text).slice(message.span) == at
