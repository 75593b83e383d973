"""A view kept incrementally, a view recomputed in full, the same query asked ad hoc, and plain Spark give the same rows."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.changes import Op, TableChanges
from tests.engine.programs import Running
from tests.engine.random_changes import comparable, multiset

START = datetime.datetime(2026, 1, 1, 10)
MODULE = """
def half(x):
    return None if x is None else x // 2
"""
TABLES = """
create type money as decimal(8,2);
create table t (g int, k int, v varchar, d decimal(5,2), w decimal(15,2), b bigint, ts timestamp, j varchar)
    with ('materialized' = 'true');
create table u (g int, n int, at timestamp) with ('materialized' = 'true');
create function net(x money) returns money as x * 90 / 100;
create function half(x int) returns int;
"""
PLAIN = {
    # AVG of decimals.
    "average": "select g, avg(d) as a, avg(w) as b, avg(case when k > 1 then 1.0 else 0.0 end) as c from t group by g",
    "average_of_all": "select avg(d) as a, avg(d) filter (where k > 1) as b, avg(distinct w) as c, count(distinct v) as n from t",
    "average_window": "select g, avg(d) over (partition by g) as a, avg(w) over (partition by g order by k, v, d, b) as b from t",
    "average_of_averages": "select avg(a) as a from (select g, avg(d) as a from t group by g)",
    "above_average": "select g, d from t where d > (select avg(d) from t) and w < (select avg(x.w) from t x where x.g = t.g)",
    "many_digits": "select g, avg(cast(w as decimal(30,4))) as a, avg(w * w) as b, avg(cast(w as decimal(38,10))) as c"
    " from t group by g",
    "few_digits": "select k, avg(cast(d as decimal(11,6))) as a, avg(cast(k as decimal(3,0))) as b, mean(d) as c from t group by k",
    # Others that both know.
    "sums": "select g, sum(d) as s, count(*) as n, max(w) as m from t group by g having count(*) > 1",
    "joined": "select t.g, n, d from t left join u on t.g = u.g and t.k = u.n",
    "ranks": "select g, k, rank() over (partition by g order by k desc) as r from t",
    "window": "select window.start as s, g, count(*) as n, sum(d) as x from t group by window(ts, '10 minutes', '5 minutes'), g",
    "session_window": "select g, session_window.start as s, count(*) as n from t group by g, session_window(ts, '5 minutes')",
    "rolled_up": "select g, k, avg(d) as a, grouping_id() as i from t group by rollup (g, k)",
}
"""Queries that plain Spark answers, too."""
_CHOSEN = {
    "{f}(v, k)": "{by}(v, struct(k, v)) filter (where k is not null)",
    "{f}(v, k) filter (where d > 2)": "{by}(v, struct(k, v)) filter (where k is not null and d > 2)",
    "{f}(distinct v, k)": "{by}(v, struct(k, v)) filter (where k is not null)",
    "{f}(d, -k)": "{by}(d, struct(-k, d)) filter (where k is not null)",
}
"""What ARG_MAX and the like are to give, in words of which Spark leaves nothing open."""
FUNCTIONS = {"arg_max": "max_by", "max_by": "max_by", "arg_min": "min_by", "min_by": "min_by"}


_CALLS = {text.format(f=name): wanted.format(by=by) for name, by in FUNCTIONS.items() for text, wanted in _CHOSEN.items()}


def _chosen(tail: str, over: str = "") -> tuple[str, str]:
    """A query with all of these calls, and what it is to give."""
    one, other = (
        ", ".join(f"{call}{over} as c{number}" for number, call in enumerate(calls)) for calls in (_CALLS, _CALLS.values())
    )
    return f"select g, {one}{tail}", f"select g, {other}{tail}"


CHOSEN = {
    "chosen": _chosen(" from t group by g"),
    "chosen_beside_distinct": _chosen(", count(distinct d) as n, sum(distinct b) as s from t group by g"),
    # Spark has no DISTINCT in windows.
    "chosen_over": _chosen(" from t", " over (partition by g)"),
    "chosen_having": (
        "select g from t group by g having arg_max(v, k) > arg_min(v, k)",
        "select g from t group by g having max_by(v, struct(k, v)) filter (where k is not null)"
        " > min_by(v, struct(k, v)) filter (where k is not null)",
    ),
}
"""Queries, and what they are to give."""
OURS = {
    # Ties of an order.
    "numbered": "select g, k, d, row_number() over (partition by g order by k) as r from t",
    "neighbours": "select g, lag(v) over (order by g) as p, ntile(3) over (order by k) as n from t",
    "first_of_range": "select g, first_value(v) over w as f, last_value(d) over w as l"
    " from t window w as (partition by g order by k)",
    "running": "select g, sum(d) over (partition by g order by k rows between 1 preceding and current row) as s from t",
    "limited": "select g, v from t order by g limit 3",
    "limited_inside": "select count(*) as n, max(v) as m from (select v from t order by k desc limit 4 offset 1)",
    "qualified": "select g, v from t qualify row_number() over (partition by g order by k) = 1",
    "modes": "select g, mode(v) as m from t group by g",
    "spread": "select g, stddev(k) as a, var_pop(d) as b from t group by g",
    # Windows of time.
    "tumbling": "select g, window_start, window_end, count(*) as n"
    " from table(tumble(table t, descriptor(ts), interval '10' minute)) group by g, window_start, window_end",
    "hopping": "select k, window_start from table(hop(table t, descriptor(ts), interval '5' minute, interval '15' minute))",
    "session_rows": "select k, window_start, window_end"
    " from session(data => table t partition by g, timecol => descriptor(ts), gap => interval '4' minute)",
    "old_tumble": "select tumble_start(ts, interval '10' minute) as s, tumble_end(ts, interval '10' minute) as e, avg(d) as a"
    " from t group by tumble(ts, interval '10' minute)",
    "old_hop": "select hop_start(ts, interval '5' minute, interval '10' minute) as s, g, count(*) as n"
    " from t group by hop(ts, interval '5' minute, interval '10' minute), g",
    "old_session": "select g, session_start(ts, interval '4' minute) as s, count(*) as n"
    " from t group by g, session(ts, interval '4' minute)",
    # ASOF joins.
    "latest": "select t.g, t.v, u.n, u.at from t left asof join u match_condition (t.ts >= u.at) on t.g = u.g",
    "next": "select t.v, u.n from t asof join u match_condition (t.ts < u.at) on t.g = u.g",
    # The program's functions, and what is translated.
    "program_functions": "select net(d) as n, half(k) as h, truncate(w, 1) as t from t",
    "translated": "select g, countif(k > 1) as c, to_hex(cast(v as binary)) as h, ts from t group by g, v, ts",
    "variant": "select g, cast(parse_json(j)['a'] as int) as a, to_json(parse_json(j)['l']) as l from t",
    # The clock.
    "recent": "select g, ts from t where ts >= now() - interval 10 minutes",
    "today": "select current_date as d, count(*) as n, max(current_timestamp) as m from t",
    "times": "select distinct now() as n, localtimestamp() as l, localtimestamp as b, localtime as e, curdate() as c,"
    " current_time as t, unix_timestamp() as u from t",
    "waiting": "select g, max(now() - ts) > interval 8 minutes as late from t where ts is not null group by g",
    "timed_join": "select t.g, u.n from t join u on t.g = u.g and u.at between now() - interval 5 minutes and now()",
}
"""Queries with a meaning that plain Spark has not, or that it leaves open."""
QUERIES = {"plain": PLAIN, "chosen": {name: query for name, (query, _) in CHOSEN.items()}, "ours": OURS}
"""By the way in which they are compared with plain Spark."""
REFERENCES = {**{name: query for name, query in PLAIN.items()}, **{name: wanted for name, (_, wanted) in CHOSEN.items()}}


def _t(draw: random.Random) -> tuple[Any, ...]:
    return (
        draw.choice([None, 1, 1, 2]),
        draw.choice([None, 1, 2, 2, 3]),
        draw.choice([None, "a", "b", "c", "d"]),
        draw.choice([None, Decimal("1.00"), Decimal("2.25"), Decimal("-3.33"), Decimal("999.99")]),
        draw.choice([None, Decimal("0.01"), Decimal("7.70"), Decimal("-1234567890123.45")]),
        draw.choice([None, 1, 5]),
        draw.choice([None, *(START + datetime.timedelta(seconds=20 * at) for at in range(0, 90, 7))]),
        draw.choice([None, '{"a": 1, "l": ["x"]}', '{"a": "2"}', '{"l": [3, 4]}']),
    )


def _u(draw: random.Random) -> tuple[Any, ...]:
    at = draw.choice([None, *(START + datetime.timedelta(minutes=minute) for minute in range(0, 30, 4))])
    return draw.choice([1, 2, 2, None]), draw.choice([1, 2, None]), at


MAKERS = {"t": _t, "u": _u}


class Answers:
    """Views by both strategies, and the tables as they should be."""

    def __init__(self, sessions: SparkSessions, queries: Mapping[str, str]) -> None:
        self.queries = queries
        views = "".join(f"create materialized view {name} as {query};\n" for name, query in queries.items())
        compiled = compile_program(TABLES + views, sessions, udf_python=MODULE)
        self.running = Running("", sessions, "incremental", compiled)
        self.full = Running("", sessions, "full", compiled)
        self.session = sibling(sessions.small, SMALL_CONF)
        self.tables: dict[str, list[tuple[Any, ...]]] = {name: [] for name in MAKERS}
        self.random = random.Random(5)

    def step(self, minute: int, inserts: int, deletes: int) -> None:
        """Change every table by some random rows; the clock moves to a minute after the start."""
        changes: list[TableChanges] = []
        for name, make in MAKERS.items():
            held = self.tables[name]
            gone = self.random.sample(held, min(deletes, len(held)))
            new = [make(self.random) for _ in range(inserts)]
            for row in gone:
                held.remove(row)
            held += new
            changes += [self.running.changes(name, *gone, op=Op.DELETE)] if gone else []
            changes += [self.running.changes(name, *new)] if new else []
        clock = START.replace(tzinfo=datetime.UTC) + datetime.timedelta(minutes=minute)
        for circuit in (self.running.circuit, self.full.circuit):
            circuit.publish(circuit.step(changes, int(clock.timestamp()) * 1_000_000))

    def check(self) -> None:
        """All ways give the same rows, and columns of the same types."""
        for name, rows in self.tables.items():
            schema = self.running.program.schemas[name]
            columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(schema.arrow)]
            frame = self.session.createDataFrame(pa.table(columns, names=schema.arrow.names), spark_schema(schema))
            frame.createOrReplaceTempView(quote(name))
        for name, query in self.queries.items():
            kept = _view(self.running.circuit, name)
            assert kept == _view(self.full.circuit, name), (name, "full")
            asked = run_adhoc(self.running.circuit, query).frame
            assert asked is not None
            assert multiset(tuple(row) for row in asked.collect()) == kept, (name, "ad hoc")
            schema = spark_schema(self.running.program.schemas[name])
            kinds = [field.dataType.simpleString() for field in schema.fields]
            assert [field.dataType.simpleString() for field in asked.schema.fields] == kinds, (name, "types")
            if name in REFERENCES:
                spark = self.session.sql(REFERENCES[name])
                assert [field.dataType.simpleString() for field in spark.schema.fields] == kinds, (name, "Spark's types")
                assert multiset(tuple(row) for row in spark.collect()) == kept, (name, "Spark")

    def close(self) -> None:
        self.running.circuit.close()
        self.full.circuit.close()


def _view(circuit: Circuit, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(comparable(tuple(row)) for row in circuit.relation(name).collect())


@pytest.mark.parametrize("kind", QUERIES)
def test_all_ways_to_ask_agree_after_every_step(sessions: SparkSessions, kind: str) -> None:
    answers = Answers(sessions, QUERIES[kind])
    for minute, inserts, deletes in ((0, 12, 0), (9, 3, 6), (25, 0, 100)):
        answers.step(minute, inserts, deletes)
        answers.check()
    answers.close()
