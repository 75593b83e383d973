"""Values and shapes that are easily got wrong: each program is checked against Spark's own answer after every step."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.engine.step import Step
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running, emitted
from tests.engine.random_changes import comparable
from tests.engine.sizes import SIZES


@pytest.fixture(params=["small", "looked up", "large"])
def size(request: pytest.FixtureRequest) -> Limits:
    """Run the test with everything in memory, shown whole or looked up, and with everything in files."""
    return SIZES[request.param]


class Checked(Running):
    """A running program whose tables are also kept as plain lists, from which Spark computes what every view should be."""

    def __init__(self, text: str, sessions: SparkSessions, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(text, sessions, limits=limits)
        self.session = sibling(sessions.small, SMALL_CONF)
        self.contents: dict[str, list[Sequence[Any]]] = {name: [] for name in self.program.tables}
        self.sums: dict[str, Counter[Any]] = {name: Counter() for name in self.program.views}

    def change(self, table: str, insert: Sequence[Sequence[Any]] = (), delete: Sequence[Sequence[Any]] = ()) -> Step:
        """Delete and insert rows in one step, then compare."""
        for row in delete:
            at = [comparable(old) for old in self.contents[table]].index(comparable(row))
            self.contents[table].pop(at)
        self.contents[table] += insert
        parts = [self.changes(table, *delete, op=Op.DELETE)] if delete else []
        parts += [self.changes(table, *insert)] if insert else []
        step = self.step(*parts)
        for view, delta in step.view_deltas.items():
            rows = delta.to_arrow().to_pylist()
            for row in rows:
                weight = row.pop("__weight")
                self.sums[view][_key(row.values())] += weight
        self.check()
        return step

    def check(self) -> None:
        for name, rows in self.contents.items():
            arrow = self.program.schemas[name].arrow
            columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(arrow)]
            schema = spark_schema(self.program.schemas[name])
            self.session.createDataFrame(pa.table(columns, names=arrow.names), schema).createOrReplaceTempView(name)
        for name, plan in self.program.plans.items():
            table = self.session.sql(plan.query).toArrow().rename_columns([column for column, _ in plan.columns])
            schema = StructType.fromDDL(", ".join(f"{column} {kind}" for column, kind in plan.columns))
            self.session.createDataFrame(table, schema).createOrReplaceTempView(name)
            expected = Counter(_key(row.values()) for row in table.to_pylist())
            assert Counter({row: n for row, n in self.sums[name].items() if n}) == expected, name

    def reopen(self) -> None:
        manifest = json.loads(json.dumps(self.circuit.snapshot.flush(self.store).to_manifest()))
        limits = self.circuit.limits
        self.circuit = Circuit(self.program, self.sessions, self.store, limits=limits)
        self.circuit.restore(Snapshot.from_manifest(manifest, self.store, limits))

    def strategies(self) -> dict[str, list[str]]:
        return {name: [stage.strategy for stage in plan.stages] for name, plan in self.program.plans.items()}


def _key(values: Any) -> tuple[Any, ...]:
    return tuple(repr(value) if isinstance(value, list | dict) else value for value in comparable(values))


@pytest.mark.core("small")
def test_null_keys_nan_and_negative_zero(sessions: SparkSessions, size: Limits) -> None:
    running = Checked(
        """create table t (f double, s varchar, x double) with ('materialized' = 'true');
        create materialized view n as select f, count(*) as c, sum(length(s)) as l from t group by f;
        create view m as select f, s, max(x) as x, sum(x) as y from t group by f, s;
        create view j as select a.f, b.s from t a join t b on a.f = b.f and a.s <=> b.s;
        create view z as select f * -1 as f, count(*) as c from t group by f * -1;""",
        sessions,
        limits=size,
    )
    nan = math.nan
    running.change("t", [(nan, None, 1.0), (nan, "a", -0.0), (-0.0, "", 0.0), (0.0, "", nan), (None, None, None), (None, "a", 2.0)])
    running.change("t", [(nan, "a", math.inf)], [(-0.0, "", 0.0), (None, None, None)])
    running.change("t", [], [(nan, None, 1.0), (nan, "a", -0.0), (0.0, "", nan)])
    assert running.rows("n") == [(None, 1, 1), (nan, 1, 1)] or len(running.rows("n")) == 2


def test_duplicates_have_weights(sessions: SparkSessions) -> None:
    running = Checked(
        """create table t (k int, s varchar) with ('materialized' = 'true');
        create materialized view same as select s from t;
        create materialized view pairs as select a.k, b.s from t a join t b on a.k = b.k;
        create materialized view three as select a.k from t a join t b on a.k = b.k join t c on b.k = c.k and c.s = 'x';
        create materialized view twice as select k from t union all select k from t;
        create materialized view medians as select k, percentile(k, 0.5) as m, count(distinct s) as d from t group by k;""",
        sessions,
    )
    running.change("t", [(1, "x")] * 3 + [(1, "y"), (2, "x")])
    running.change("t", [(2, "x"), (2, None)], [(1, "x"), (1, "x")])
    assert running.rows("same") == [("x",)] * 3 + [("y",), (None,)]
    running.reopen()
    running.change("t", [(1, "x")], [(1, "x"), (1, "y")])
    running.change("t", [], [(1, "x"), (2, "x"), (2, "x"), (2, None)])
    assert running.rows("twice") == []


def test_a_total_over_nothing_and_having(sessions: SparkSessions) -> None:
    running = Checked(
        """create table t (k int, d decimal(5,2));
        create view n as select count(*) as n, sum(d) as s, avg(d) as a, max(k) as m from t;
        create view l as select count(*) as n, sum(d) as s, avg(d) as a from t;
        create view h as select count(*) as n from t having count(*) > 1;
        create view e as select count(*) as n from t having count(*) = 0;
        create view g as select k, sum(d) as s from t group by k having sum(d) > 1 and count(*) < 3;
        create view above as select n.n + l.n as x from n cross join l;""",
        sessions,
    )
    running.change("t")
    one = decimal.Decimal("1.00")
    running.change("t", [(1, one), (1, one), (2, None)])
    running.change("t", [(1, one)], [(2, None)])
    running.change("t", [], [(1, one)])
    running.change("t", [], [(1, one), (1, one)])
    assert running.sums["e"][(0,)] == 1


@pytest.mark.core
def test_extremes_of_an_append_only_table_whose_rows_are_replaced_by_key(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (k int not null primary key, g int, x int) with ('append_only' = 'true');
        create materialized view v as select g, max(x) as most, min(x) as least from t group by g;""",
        sessions,
    )
    running.insert("t", (1, 1, 5), (2, 1, 3))
    assert running.rows("v") == [(1, 5, 3)]
    running.insert("t", (1, 1, 1))
    assert running.rows("v") == [(1, 3, 1)]


def test_union_all_widens_types_pair_by_pair(sessions: SparkSessions) -> None:
    running = Checked(
        """create table t (i int, d decimal(4,1)); create table u (b bigint, f decimal(6,3), s varchar);
        create materialized view v as select i as x, d as y from t union all select b, f from u union all select 1, 2.5 from u;
        create view n as select x, sum(y) as y, count(*) as n from v group by x;
        create view w as select cast(null as int) as x, i as y from t union all select b, null from u;""",
        sessions,
    )
    assert running.program.plans["v"].columns == (("x", "bigint"), ("y", "decimal(6,3)"))
    running.change("t", [(1, decimal.Decimal("2.5")), (None, None)])
    running.change("u", [(2**40, decimal.Decimal("0.125"), "it's"), (1, decimal.Decimal("2.500"), None)])
    running.change("t", [(2, decimal.Decimal("-999.9"))], [(1, decimal.Decimal("2.5"))])
    running.change("u", [], [(2**40, decimal.Decimal("0.125"), "it's")])


@pytest.mark.core("small")
def test_extreme_dates_times_decimals_and_texts(sessions: SparkSessions, size: Limits) -> None:
    running = Checked(
        """create table t (k int, d date, ts timestamp, x decimal(38,10), y decimal(38,0), s varchar, b varbinary, o time)
            with ('materialized' = 'true');
        create materialized view c as select k, d, ts, cast(ts as timestamp_ltz) as z, x, y, s, b, o from t
            where s <> 'no ''match' or s is null;
        create view g as select d, max(ts) as ts, min(x) as x, max(s) as s, max(o) as o from t group by d;
        create view q as select s, count(*) as n, max(b) as b from t group by s;
        create local view i as select k, max(ts) - min(ts) as life from t group by k;
        create view j as select k, extract(day from life) as days from i;""",
        sessions,
        limits=size,
    )
    low = (1, datetime.date(1, 1, 1), datetime.datetime(1, 1, 1), decimal.Decimal("-9999999999999999999999999999.9999999999"), None)
    high = (2, datetime.date(9999, 12, 31), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), None, decimal.Decimal(10**38 - 1))
    first = (*low, 'it\'s "q" `b` \\ \n \0 ü😀', b"\0\xff", datetime.time(23, 59, 59, 999999))
    second = (*high, "", b"", datetime.time(0, 0))
    third = (1, None, datetime.datetime(1582, 10, 10, 1, 2, 3, 4), decimal.Decimal("0.0000000001"), None, None, None, None)
    running.change("t", [first, second, third])
    running.reopen()
    running.change("t", [first], [second])
    running.change("t", [second], [first, third])


def test_nested_columns_and_maps(sessions: SparkSessions, size: Limits) -> None:
    running = Checked(
        """create table t (k int not null primary key, m map<varchar, int>, l int array, st row(x int null, y varchar null));
        create materialized view g as select m, l, count(*) as n from t group by m, l;
        create materialized view p as select k, m['a'] as a, l[0] as l, st from t where l is not null;
        create view d as select distinct l, st from t;
        create view e as select k, explode(l) as x from t;
        create view a as select k % 2 as p, max(st) as st, sum(l[0]) as s from t group by k % 2;""",
        sessions,
        limits=size,
    )
    rows = [(1, {"a": 1}, [1], {"x": 1, "y": "a"}), (2, {"a": 1}, [1], {"x": None, "y": None}), (3, None, None, None)]
    running.change("t", rows)
    running.change("t", [(4, {}, [2, None], {"x": 1, "y": "a"})], [rows[0]])
    running.reopen()
    running.change("t", [], [rows[1], rows[2]])


def test_variants_in_views(sessions: SparkSessions, size: Limits) -> None:
    running = Running(
        """create table t (k int not null primary key, s varchar) with ('materialized' = 'true');
        create materialized view v as select k, parse_json(s) as v from t;
        create materialized view a as select k, variant_get(v, '$.a', 'int') as a from v;
        create materialized view d as select a, count(*) as n from a group by a;
        create materialized view f as select x.v from v x left join t y on x.k = y.k + 1 limit 100;""",
        sessions,
        limits=size,
    )
    running.insert("t", (1, '{"a": 1}'), (2, '{"a": 1.50}'), (3, "null"), (4, None))
    assert running.rows("d") == [(1, 2), (None, 2)]
    step = running.insert("t", (1, '{"a": 2}'))
    assert emitted(step, "d") == [(1, 1, 1), (1, 2, -1), (2, 1, 1)]
    running.delete("t", (3, None), (4, None))
    assert running.rows("d") == [(1, 1), (2, 1)]
    found = [row[0].toPython()["a"] for row in running.circuit.relation("f").collect()]
    assert sorted(found) == [decimal.Decimal("1.50"), 2]


def test_views_over_views_over_views(sessions: SparkSessions) -> None:
    running = Checked(
        """create table t (k int, v int);
        create view a as select k, sum(v) as v from t group by k;
        create local view b as select v, count(*) as n, max(k) as k from a group by v;
        create view c as select x.n, y.k, x.v from b x join a y on x.v = y.v where x.n > 0;
        create materialized view e as select n, count(*) as c, sum(v) as v from c group by n;""",
        sessions,
    )
    running.change("t", [(1, 1), (2, 1), (3, 2)])
    running.change("t", [(3, -1), (4, 7)])
    running.change("t", [(1, 6)], [(4, 7), (2, 1)])
    running.change("t", [], [(1, 6), (1, 1), (3, 2), (3, -1)])
    assert running.rows("e") == []


@pytest.mark.core
def test_text_is_compared_with_a_collation_inside_queries_only(sessions: SparkSessions) -> None:
    table = "create table t (s varchar);"
    with pytest.raises(ProgramErrors, match="Column x of view v has a collation"):
        compile_program(f"{table} create view v as select s collate UTF8_LCASE as x from t;", sessions)
    running = Running(
        f"""{table} create materialized view v as select min(cast(s as string collate UTF8_BINARY)) as s, count(*) as n
            from (select s collate UTF8_LCASE as s from t) group by s;""",
        sessions,
    )
    running.insert("t", ("a",), ("A",), ("b",))
    assert running.rows("v") == [("A", 2), ("b", 1)]
    running.delete("t", ("A",))
    assert running.rows("v") == [("a", 1), ("b", 1)]
