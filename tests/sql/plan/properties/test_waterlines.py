"""Which columns keep a waterline, and what may be forgotten for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.full import CHOSEN, Full
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source, TemporalFilter, UnionAll
from airflow_pipelines.sql.plan.ir.markers import CLOCK
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from airflow_pipelines.sql.plan.passes.temporal_filters import mark_temporal_filters
from airflow_pipelines.sql.plan.properties.append_only import append_only_relations
from airflow_pipelines.sql.plan.properties.retention import RetentionRule, retention_rules
from airflow_pipelines.sql.plan.properties.waterlines import WaterlineAnalysis

T = Scan("t", ("id", "ts"))
U = Scan("u", ("id", "ts"))
CLOCK_SCAN = Scan(CLOCK.relation, (CLOCK.column,))


@pytest.fixture
def analysis() -> WaterlineAnalysis:
    found = WaterlineAnalysis(frozenset({CLOCK.relation}))
    found.declare("t", ["ts"])
    found.declare("u", ["ts"])
    return found


def block(*items: str, sources: tuple[tuple[str, Scan], ...] = (("t", T),), where: str | None = None) -> Select:
    return Select(
        tuple(Source(alias, node) for alias, node in sources),
        tuple(Item(f"c{at}", Expression(text)) for at, text in enumerate(items)),
        None if where is None else WhereClause(where),
    )


def grouped(key: str, *, linear: bool = False) -> Aggregate:
    call = Call("__r0", Expression("MAX(c0)"), "bigint", Expression("__a0") if linear else None)
    items = (Item("k", Expression("__k0")), Item("m", Expression("__r0")))
    return Aggregate(block("`t`.`id`", "`t`.`ts`"), (Item("__k0", Expression(key)),), ("date",), (call,), (), items)


@pytest.mark.parametrize(
    ("text", "waterline"),
    [
        ("`t`.`ts`", "`__w:t.ts`"),
        ("DATE_TRUNC('hour', `t`.`ts`)", "DATE_TRUNC('hour', `__w:t.ts`)"),
        ("CAST(`t`.`ts` AS DATE)", "CAST(`__w:t.ts` AS DATE)"),
        ("`t`.`ts` - INTERVAL '1' DAY", "`__w:t.ts` - INTERVAL '1' DAY"),
        ("DATE_SUB(`t`.`ts`, 1)", None),
        ("WINDOW(`t`.`ts`, '2 minutes', '1 minute').`start`", None),
        ("INTERVAL '1' DAY - `t`.`ts`", None),
        ("HOUR(`t`.`ts`)", None),
        ("-`t`.`ts`", None),
        ("`t`.`id`", None),
        ("`t`.`ts` - `t`.`ts`", None),
        ("CAST(`t`.`ts` AS STRING)", None),
    ],
)
def test_expressions_keep_a_waterline_when_they_keep_the_order(
    analysis: WaterlineAnalysis, text: str, waterline: str | None
) -> None:
    assert analysis.of(block(text)).get("c0") == waterline


def test_a_tumbling_window_has_the_waterline_of_its_start(analysis: WaterlineAnalysis) -> None:
    found = analysis.of(block("WINDOW(`t`.`ts`, '2 minutes').`start`", "WINDOW(`t`.`ts`, '2 minutes').`end`"))
    assert "PMOD(UNIX_MICROS(CAST(`__w:t.ts` AS TIMESTAMP)), 120000000)" in found["c0"]
    assert "+ 120000000" in found["c1"]
    assert analysis.of(block("WINDOW(`t`.`ts`, ' INTERVAL 2 minutes ').`start`"))["c0"] == found["c0"]
    assert analysis.keys(grouped("WINDOW(c1, '1 hour')")).keys() == {"__k0.`start`"}


def test_a_column_of_tumbling_windows_has_the_waterlines_of_its_bounds(analysis: WaterlineAnalysis) -> None:
    start, end = (analysis.of(block(f"WINDOW(`t`.`ts`, '2 minutes').`{bound}`"))["c0"] for bound in ("start", "end"))
    inner = replace(grouped("c0"), input=block("WINDOW(`t`.`ts`, '2 minutes')", "`t`.`id`"))
    assert analysis.keys(inner) == {"__k0.`start`": start}
    analysis.add([Stage("d", (("k", "struct<start:timestamp,end:timestamp>"), ("m", "bigint")), inner)])
    groups = Scan("d", ("k", "m"))
    above = block("`d`.`k`", "`d`.`k`.`end`", sources=(("d", groups),))
    assert analysis.of(above)["c1"] == end
    union = UnionAll((block("WINDOW(`t`.`ts`, '2 minutes')", "1"), above), (("k0", "struct<>"), ("v", "int")))
    whole = Select((Source("u", union),), (Item("c0", Expression("`u`.`k0`")), Item("c1", Expression("`u`.`v`"))))
    assert analysis.keys(replace(grouped("c0"), input=whole)) == {"__k0.`start`": start}
    assert analysis.of(Select((Source("u", union),), (Item("s", Expression("`u`.`k0`.`start`")),)))["s"] == start
    other = replace(union, parts=(union.parts[0], block("WINDOW(`t`.`ts`, '3 minutes', '1 minute')", "1")))
    assert analysis.of(other) == {}
    assert analysis.of(Scan("d", ("m",))) == {}


def test_a_join_keeps_waterlines_of_columns_that_all_sides_agree_in(analysis: WaterlineAnalysis) -> None:
    sources = (("a", T), ("b", U))
    apart = block("`a`.`ts`", sources=sources, where="`a`.`id` = `b`.`id`")
    assert analysis.of(apart) == {}
    together = block("`a`.`ts`", "`b`.`ts`", "`a`.`id`", sources=sources, where="`a`.`ts` = `b`.`ts` AND `a`.`id` = `b`.`id`")
    found = analysis.of(together)
    assert found.keys() == {"c0", "c1"}
    assert found["c0"] == found["c1"]
    assert "LEAST(`__w:t.ts`, `__w:u.ts`)" in found["c0"]


def test_what_follows_the_clock_has_no_waterline(analysis: WaterlineAnalysis) -> None:
    filtered = block("`t`.`ts`", sources=(("n", CLOCK_SCAN), ("t", T)), where="`t`.`ts` > `n`.`__now`")
    assert analysis.of(filtered) == {}


def test_unions_have_the_lower_waterline_and_recomputed_views_none(analysis: WaterlineAnalysis) -> None:
    union = UnionAll((block("`t`.`ts`"), block("`u`.`ts`", sources=(("u", U),))), (("c0", "timestamp"),))
    assert "LEAST" in analysis.of(union)["c0"]
    other = UnionAll((block("`t`.`ts`"), block("`t`.`id`")), (("c0", "timestamp"),))
    assert analysis.of(other) == {}
    assert analysis.of(Full("select * from t", ("t",), CHOSEN)) == {}


def test_closed_groups_and_rows_below_them_may_go(analysis: WaterlineAnalysis) -> None:
    stage = Stage("v", (("k", "date"), ("m", "bigint")), grouped("CAST(c1 AS DATE)"))
    late = {"t": ["ts"], "u": ["ts"]}
    found = retention_rules([stage], analysis, late, set(), {})
    assert found == (
        RetentionRule("v", "__k0 < CAST(`__w:t.ts` AS DATE)", of_state=True),
        RetentionRule("t", "(`ts` < `__w:t.ts`) AND ((CAST(`ts` AS DATE)) < CAST(`__w:t.ts` AS DATE))", of_state=False),
        RetentionRule("u", "`ts` < `__w:u.ts`", of_state=False),
    )
    # What can be asked for, and what is recomputed, stays.
    assert [one.relation for one in retention_rules([stage], analysis, late, {"t", "u"}, {})] == ["v"]
    full = Stage("w", (("ts", "timestamp"),), Full("select ts from t", ("t",), CHOSEN))
    assert [one.relation for one in retention_rules([stage, full], analysis, late, {"u"}, {})] == ["v"]


def test_the_other_side_of_a_join_bounds_what_may_go(analysis: WaterlineAnalysis) -> None:
    joined = block("`a`.`id`", sources=(("a", T), ("b", U)), where="`a`.`ts` = `b`.`ts`")
    found = retention_rules([Stage("v", (("c0", "bigint"),), joined)], analysis, {"t": ["ts"], "u": ["ts"]}, set(), {})
    assert [one.relation for one in found] == ["t", "u"]
    assert all("LEAST(" in one.condition for one in found)
    free = block("`a`.`id`", sources=(("a", T), ("b", U)), where="`a`.`id` = `b`.`id`")
    assert retention_rules([Stage("v", (("c0", "bigint"),), free)], analysis, {"t": ["ts"], "u": ["ts"]}, set(), {}) == ()


def _plan(node: Select) -> ViewPlan:
    stage = Stage("v", (("c0", "bigint"),), node)
    return ViewPlan("v", "", stage.columns, (stage,), stage)


@pytest.mark.parametrize(
    ("where", "item", "crossings"),
    [
        ("`t`.`ts` >= `n`.`__now`", "`t`.`id`", [TemporalFilter(0, Expression("`t`.`ts`"), ("t", "ts"))]),
        ("`t`.`id` > 1 AND `n`.`__now` > `t`.`ts` + 1", "`t`.`id`", [TemporalFilter(0, Expression("`t`.`ts` + 1"))]),
        ("`t`.`ts` BETWEEN `t`.`id` AND `n`.`__now`", "`t`.`id`", [TemporalFilter(0, Expression("`t`.`ts`"), ("t", "ts"))]),
        ("`t`.`ts` >= `n`.`__now` OR `t`.`id` = 1", "`t`.`id`", []),
        ("`t`.`ts` >= `n`.`__now`", "`n`.`__now`", []),
        ("`t`.`ts` >= `n`.`__now` AND `n`.`__now` + `t`.`id` > 3", "`t`.`id`", []),
    ],
)
def test_temporal_filters_touch_the_rows_that_the_clock_passes_by(where: str, item: str, crossings: list[TemporalFilter]) -> None:
    stage = Stage("v", (("x", "int"),), block(item, sources=(("n", CLOCK_SCAN), ("t", T)), where=where))
    node = mark_temporal_filters(stage, {CLOCK.relation: CLOCK}).node
    assert isinstance(node, Select)
    assert list(node.temporal_filters) == crossings


def test_linear_views_of_append_only_tables_only_gain() -> None:
    assert append_only_relations(_plan(block("`t`.`id`")), {"t"}) == {"v"}
    assert append_only_relations(_plan(block("`t`.`id`")), set()) == frozenset()
    assert append_only_relations(_plan(block("`t`.`id`", sources=(("n", CLOCK_SCAN), ("t", T)))), {"t"}) == frozenset()
    aggregate = Stage("v", (("k", "date"), ("m", "bigint")), grouped("c1"))
    assert append_only_relations(ViewPlan("v", "", aggregate.columns, (aggregate,), aggregate), {"t"}) == frozenset()
