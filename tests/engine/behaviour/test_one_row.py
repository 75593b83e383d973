"""One row is one row: what a row gave when it came, it takes away when it goes, whatever functions see of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.variant_binary import encode_text, encode_variant
from tests.engine.another_release import release_without_canonical_form
from tests.engine.oracle import Oracle, Rows, rows_of
from tests.engine.programs import Running
from tests.engine.random_changes import exact, net
from tests.engine.sizes import SIZES

TABLES = """
create table t(
    id int not null primary key, x double, s struct<a double, b int>, a double array, m map<varchar, int>, j varchar, v variant
) with ('materialized' = 'true');
create table u(id int, y double, v variant, m map<varchar, int>) with ('materialized' = 'true');
"""
QUERIES = {
    "negated": "select id, -x as y, cast(-x as string) as z from t",
    "joined": "select n.id, cast(n.y as string) as z, u.y from negated n left join u on u.id = n.id",
    "nested": "select id, cast(s.a as string) as z, cast(a[0] as string) as q, to_json(m) as j from t",
    "parsed": "select id, from_json(j, 'map<string,int>') as m from t",
    "numbered": "select id, to_json(m) as j, row_number() over (partition by id order by id) as n from parsed",
    "at_once": "select to_json(m) as j, n from (select from_json(j, 'map<string,int>') as m,"
    " row_number() over (partition by id order by j) as n from t)",
    "grouped": "select x, count(*) as c, max(y) as y from (select t.x, -u.y as y from t join u on t.id = u.id) group by x",
    "sides": "select a.id, a.y, b.y as z, a.y * b.y as p from negated a full join u b on a.y = b.y",
    "typed": "select t.id, schema_of_variant(t.v) as k, to_json(t.v) as j, t.v, u.v as w from t left join u on t.id = u.id",
    "odd": "select t.id, named_struct('a b', -t.x, 'not', t.m) as s, u.y from t left join u on t.id = u.id",
    "odd_text": "select id, cast(s.`a b` as string) as z, to_json(s) as j from odd",
    "summed": "select t.m, count(*) as c, sum(t.x) as x from t join u on t.id = u.id group by t.m",
}
"""Views over functions that see how values are represented."""
DATE = encode_variant(b"\x2c" + (18262).to_bytes(4, "little"))
TEXT = encode_variant(encode_text(b"2020-01-01"))


OF_EACH_KIND = {name: QUERIES[name] for name in ("negated", "joined", "typed", "summed")}
"""Some of them: a projection, joins, groups."""


def _compile(queries: Mapping[str, str], sessions: SparkSessions) -> Program:
    return compile_program(TABLES + "".join(f"create materialized view {n} as {q};" for n, q in queries.items()), sessions)


@pytest.fixture(scope="module")
def compiled(sessions: SparkSessions) -> Program:
    return _compile(QUERIES, sessions)


@pytest.fixture(scope="module")
def of_each_kind(sessions: SparkSessions) -> Program:
    return _compile(OF_EACH_KIND, sessions)


def _t(key: int, other: bool) -> tuple[Any, ...]:
    """The row of a key, in one of two representations; the rows of some keys differ, too."""
    zero = -0.0 if other else 0.0
    pairs = [("b", 1), ("a", 2)] if other else [("a", 2), ("b", 1)]
    text = f'{{"b":1,"a":{key}}}' if other else f'{{"a":{key},"b":1}}'
    return key, zero if key % 3 else 0.25 * key, {"a": zero, "b": None}, [zero, None], pairs, text, DATE if other else TEXT


def _u(key: int, y: float, other: bool = False) -> tuple[Any, ...]:
    return key, y, DATE if other else TEXT, [("b", 1), ("a", None)] if other else [("a", None), ("b", 1)]


Change = tuple[str, Op, list[tuple[Any, ...]]]
STEPS: list[list[Change]] = [
    [
        ("t", Op.INSERT, [_t(key, False) for key in range(5)]),
        ("u", Op.INSERT, [_u(0, 0.0), _u(1, -0.0), _u(1, 0.0, True), _u(2, float("nan"))]),
    ],
    [("t", Op.INSERT, [_t(key, True) for key in range(3)]), ("u", Op.INSERT, [_u(3, -1.5)])],
    # The same row as one that is there, in another representation; and one of which only the VARIANT is another.
    [("u", Op.DELETE, [(1, 0.0, TEXT, [("b", 1), ("a", None)]), (1, 0.0, DATE, [("b", 1), ("a", None)])])],
    [("t", Op.DELETE, [_t(1, True)]), ("t", Op.INSERT, [_t(key, key % 2 == 0) for key in range(2, 7)])],
    [
        ("t", Op.DELETE, [_t(key, False) for key in range(7)]),
        ("u", Op.DELETE, [_u(0, -0.0), _u(2, -float("nan")), _u(3, -1.5)]),
    ],
]
FULLEST = 3
"""The step after which the tables have the most rows in both representations."""


@pytest.mark.parametrize(
    ("strategy", "size"), [("incremental", "small"), ("incremental", "narrow"), ("incremental", "large"), ("full", "small")]
)
def test_rows_go_as_they_came(sessions: SparkSessions, compiled: Program, strategy: str, size: str) -> None:
    _follow(Running("", sessions, strategy, compiled, SIZES[size]), QUERIES)


@pytest.mark.core(slow_because="each view is compared with Spark's batch answer after each step")
def test_rows_of_each_kind_of_view_go_as_they_came(sessions: SparkSessions, of_each_kind: Program) -> None:
    _follow(Running("", sessions, "incremental", of_each_kind), OF_EACH_KIND)


def _follow(running: Running, queries: Mapping[str, str]) -> None:
    oracle = Oracle(running, queries, running.sessions)
    sums: dict[str, Rows] = {name: Counter() for name in queries}
    for number, changes in enumerate(STEPS):
        step = running.step(*(running.changes(table, *rows, op=op) for table, op, rows in changes))
        assert not step.rejected
        tables = {name: _stored(running, name) for name in ("t", "u")}
        for name, rows in oracle.answers(tables).items():
            sums[name].update(rows_of(step.view_deltas.get(name)))
            found = Counter({row: weight for row, weight in sums[name].items() if weight})
            assert found == rows, (name, running.program.plans[name])
            assert net(running.circuit.snapshot.traces[name]) == {row: (weight,) for row, weight in rows.items()}, name
            # Spark reads the same; one such step is enough.
            assert number != FULLEST or Counter(exact(row) for row in _stored(running, name)) == rows, name
        running.circuit.maintain()
    snapshot = running.circuit.snapshot
    assert [name for name, trace in [*snapshot.traces.items(), *snapshot.all_states().items()] if net(trace)] == []
    running.circuit.close()


def _stored(running: Running, relation: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in collected(running.circuit.relation(relation)).to_pylist()]


@pytest.mark.core
def test_tables_hold_one_representation(sessions: SparkSessions, of_each_kind: Program) -> None:
    running = Running("", sessions, compiled=of_each_kind)
    running.insert("t", _t(1, True))
    ((_, x, s, a, m, _, _),) = _stored(running, "t")
    assert exact((x, s["a"], a, m)) == ("0.0", "0.0", ("0.0", None), (("a", 2), ("b", 1)))
    running.circuit.close()


@pytest.mark.core
def test_a_json_delete_finds_its_row_whatever_the_order_of_its_keys(sessions: SparkSessions, of_each_kind: Program) -> None:
    running = Running("", sessions, compiled=of_each_kind)
    parser = JsonParser(of_each_kind.schemas["u"], JsonOptions())
    inserted = parser.parse(
        b'{"insert": {"id": 1, "y": -0.0, "v": {"z": [1.50, {"d": 1, "c": 2}], "a": 1}, "m": {"b": 1, "a": null}}}'
    )
    deleted = parser.parse(b'{"delete": {"m": {"a": null, "b": 1}, "v": {"a": 1, "z": [1.5, {"c": 2, "d": 1}]}, "y": 0, "id": 1}}')
    assert inserted.changes is not None
    assert deleted.changes is not None
    assert running.step(inserted.changes).table_deltas["u"].rows == 1
    step = running.step(deleted.changes)
    assert not step.rejected
    assert _stored(running, "u") == []
    running.circuit.close()


@pytest.mark.parametrize("queries", [pytest.param(OF_EACH_KIND, id="some"), pytest.param(QUERIES, id="all")])
def test_rows_stored_without_a_canonical_form_get_it(sessions: SparkSessions, queries: Mapping[str, str]) -> None:
    compiled = _compile(queries, sessions)
    before = Running("", sessions, compiled=compiled)
    with release_without_canonical_form():
        before.step(*(before.changes(table, *rows, op=op) for table, op, rows in STEPS[0]))
        before.insert("t", *(_t(key, True) for key in range(4, 9)))
        manifest = before.circuit.snapshot.flush(before.store).to_manifest()
    assert {row[4][0][0] for row in _stored(before, "t") if row[0] > 4} == {"b"}, "as it came"
    running = Running("", sessions, compiled=compiled)
    running.circuit.restore(Snapshot.from_manifest(manifest, before.store))
    running.circuit.refresh()
    assert running.circuit.snapshot.canonical_form == CANONICAL_FORM
    oracle = Oracle(running, queries, sessions)
    for changes in ([], STEPS[2], [("t", Op.DELETE, [_t(key, True) for key in range(4)])]):
        running.step(*(running.changes(table, *rows, op=op) for table, op, rows in changes))
        for name, rows in oracle.answers({name: _stored(running, name) for name in ("t", "u")}).items():
            assert Counter(exact(row) for row in _stored(running, name)) == rows, name
    assert not running.delete("t", *(_t(key, False) for key in range(4, 9))).rejected
    running.delete("u", _u(0, 0.0), _u(2, float("nan")))
    assert [name for name, trace in running.circuit.snapshot.traces.items() if net(trace)] == []
    for each in (before, running):
        each.circuit.close()
