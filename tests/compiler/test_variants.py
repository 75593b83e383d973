"""Fields and elements of VARIANT values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions


def test_fields_and_elements(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (id int, j varchar, m map<varchar, int>, k varchar, n int) with ('materialized' = 'true');
        create local view p as select id, parse_json(j) as v, m, k, n from t;
        create materialized view w as
            select id, cast(p.v['a']['b'] as int) as x, cast(v.a.b as int) as y, cast(v['list'][1] as varchar) as z, m['m'] as m,
                   cast(v[k] as varchar) as byname, cast(v['list'][n] as varchar) as byplace
            from p where v['a'] is not null;
        create materialized view g as select cast(v['k'] as varchar) as k, count(*) as n from p group by cast(v['k'] as varchar)""",
        sessions,
    )
    one = (1, '{"a": {"b": 5}, "list": ["p", "q"], "k": "same"}', [("m", 7)], "k", 2)
    two = (2, '{"k": "same", "it\'s": 1}', None, None, None)
    running.insert("t", one, two)
    assert running.rows("w") == [(1, 5, 5, "p", 7, "same", "q")]
    assert running.rows("g") == [("same", 2)]
    running.step(running.changes("t", one, op=Op.DELETE))
    assert running.rows("w") == []
    assert running.rows("g") == [("same", 1)]
    found = run_adhoc(running.circuit, "select parse_json(j)['it''s']::int as i, parse_json(j)[1] as none from t").frame
    assert found is not None
    assert [tuple(row) for row in found.collect()] == [(1, None)]


def test_what_is_taken_out_may_be_taken_apart_again(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (id int primary key, j varchar, i int);
        create local view p as select id, parse_json(j) as v, j, i from t;
        create materialized view w as
            select id, cast(v['l'][2] as int) as a, cast(v.l[3].k as varchar) as b, cast(v['l'][i]['k'] as varchar) as c,
                   cast(v.a['b'].c[1] as int) as d, cast(parse_json(j)['l'][2] as int) as e
            from p where v['l'] is not null;
        create materialized view g as
            select cast(v['l'][1] as int) as k, cast(v.a['b'].x as varchar) as x, count(*) as n, sum(cast(v['l'][2] as int)) as s
            from p group by cast(v['l'][1] as int), cast(v.a['b'].x as varchar) having cast(v['l'][1] as int) > 0""",
        sessions,
    )
    one = (1, '{"l": [1, 20, {"k": "deep"}], "a": {"b": {"c": [5], "x": "y"}}}', 3)
    two = (2, '{"l": [1, 30], "a": {"b": {"x": "y"}}}', 1)
    three = (3, '{"l": [0, 1]}', 1)
    running.insert("t", one, two, three)
    assert running.rows("w") == [
        (1, 20, "deep", "deep", 5, 20),
        (2, 30, None, None, None, 30),
        (3, 1, None, None, None, 1),
    ]
    assert running.rows("g") == [(1, "y", 2, 50)]
    running.delete("t", one, three)
    assert running.rows("w") == [(2, 30, None, None, None, 30)]
    assert running.rows("g") == [(1, "y", 1, 30)]


@pytest.mark.core
def test_a_field_that_cannot_be_grouped_by_is_named(sessions: SparkSessions) -> None:
    text = "create table t (v variant); create view g as select v['l'][1] as q, count(*) as n from t group by v['l'][1];"
    with pytest.raises(ProgramErrors) as caught:
        compile_program(text, sessions)
    [message] = caught.value.messages
    assert 'cannot be used as a grouping expression because its data type "VARIANT"' in message.message
    assert message.span is not None
    assert SourceText(text).slice(message.span).startswith("v['l'][1]")


@pytest.mark.core
def test_timestamps_are_milliseconds_as_numbers(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (id int primary key, ts timestamp, n bigint);
        create materialized view v as
            select cast(ts as bigint) as b, ts::decimal(20,2) as d, cast(n as timestamp) as m, try_cast(ts as tinyint) as none
            from t""",
        sessions,
    )
    running.insert("t", (1, dt.datetime(1970, 1, 1, 0, 0, 1, 500_900), -1))
    assert running.rows("v") == [(1500, Decimal(1500), dt.datetime(1969, 12, 31, 23, 59, 59, 999_000), None)]
    frame = run_adhoc(running.circuit, "select cast(timestamp '1970-01-01 00:00:01' as int) as n").frame
    assert frame is not None
    assert frame.collect()[0][0] == 1000


@pytest.mark.core
@pytest.mark.parametrize(
    "left",
    [
        "select k from t where k in (select i from v) and b <= 1",
        "select k, exists (select 1 from v where v.i = t.k) as e from t where true and b <= 1",
        "select k, (select max(i) from v) as m from t where true and b <= 1",
    ],
)
def test_aggregates_of_having_that_spark_forgets(sessions: SparkSessions, left: str) -> None:
    query = f"""select l.k, r.* from ({left}) as l
        cross join (select o, sum(i) as s from v group by o having sum(i) > 2 or count(*) = 3) as r"""
    running = Running(
        f"""create table t (k int, b bigint) with ('materialized' = 'true');
        create table v (i int, o int) with ('materialized' = 'true');
        create materialized view w as {query}""",
        sessions,
    )
    running.insert("t", (1, 0), (2, 1), (1, 5))
    running.insert("v", (1, 1), (2, 1), (1, 2))
    assert {row for row in running.rows("w") if row[0] == 1} == {(1, 1, 3)}
    running.insert("v", (0, 2), (0, 2))
    assert {row for row in running.rows("w") if row[0] == 1} == {(1, 1, 3), (1, 2, 1)}
    answer = run_adhoc(running.circuit, query).frame
    assert answer is not None
    assert sorted(map(tuple, answer.collect())) == sorted(running.rows("w"))
