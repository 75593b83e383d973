"""ASOF joins become lateral subqueries; what is wrong with one is said where it stands."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.asof import asof_joins
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.relation_names import references


class Tables:
    """Knows the columns of whole tables, and nothing else."""

    def __init__(self, **columns: ColumnTypes) -> None:
        self.tables = columns

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None:
        self.tables |= relations

    def columns(self, query: str) -> ColumnTypes:
        name = query.split(" FROM ")[1].split()[0]
        if name not in self.tables:
            raise AnalysisFailed(name)
        return self.tables[name]

    def same_plan(self, one: str, other: str) -> bool:
        return one == other


TABLES = Tables(b=(("k", "int"), ("ts", "int")), m=(("k", "int"), ("ts", "int"), ("w", "map<int,int>")))


def _rewritten(query: str) -> str:
    return asof_joins(Edited(query), TABLES).text


def _lateral(side: str, table: str, alias: str, conditions: str, order: str) -> str:
    inner = f"SELECT {side} AS __asof, `{alias}`.* FROM {table} WHERE {conditions} ORDER BY {order} LIMIT 1"
    return f"JOIN LATERAL (SELECT * EXCEPT (__asof) FROM ({inner})) AS `{alias}` ON TRUE"


def test_the_latest_row_that_is_not_too_late_is_looked_up() -> None:
    query = "select * from a left asof join b match_condition (a.ts >= b.ts) on a.k = b.k where a.k > 0"
    joined = _lateral("b.ts", "b", "b", "(a.ts >= b.ts) AND (a.k = b.k)", "ALL DESC")
    assert _rewritten(query) == f"select * from a LEFT {joined} where a.k > 0"


def test_the_sides_of_a_comparison_may_be_swapped_and_the_next_row_looked_up() -> None:
    swapped = "select * from a asof join b as z match_condition (z.ts < a.ts) on z.k = a.k"
    assert _rewritten(swapped) == "select * from a INNER " + _lateral(
        "z.ts", "b as z", "z", "(z.ts < a.ts) AND (z.k = a.k)", "ALL DESC"
    )
    following = "select * from a inner asof join b as z match_condition (a.ts <= z.ts) on z.k = a.k"
    assert "ORDER BY ALL ASC" in _rewritten(following)


def test_maps_are_sorted_by_their_entries() -> None:
    query = "select * from a left asof join m match_condition (a.ts >= m.ts) on a.k = m.k"
    assert "ORDER BY __asof DESC, `k` DESC, `ts` DESC, SORT_ARRAY(MAP_ENTRIES(`w`)) DESC LIMIT 1" in _rewritten(query)


def test_a_column_does_not_hide_the_table_of_its_name() -> None:
    query = "select * from k left asof join b z match_condition (k.ts >= z.ts + z.k) on k.k = z.k"
    renamed = "(SELECT `z`.`k` AS `__asof_k`, `z`.`ts` FROM b z) AS `z`"
    inner = f"SELECT z.ts + z.`__asof_k` AS __asof, `z`.* FROM {renamed}"
    conditions = "(k.ts >= z.ts + z.`__asof_k`) AND (k.k = z.`__asof_k`)"
    ordered = f"{inner} WHERE {conditions} ORDER BY ALL DESC LIMIT 1"
    assert _rewritten(query) == (
        f"select * from k LEFT JOIN LATERAL (SELECT `__asof_k` AS `k`, `ts` FROM ({ordered})) AS `z` ON TRUE"
    )


def test_joins_may_stand_side_by_side_and_in_each_other() -> None:
    one = "left asof join b match_condition (a.ts >= b.ts) on a.k = b.k"
    other = "asof join (select c.k, c.ts from c left asof join b match_condition (c.ts >= b.ts) on c.k = b.k) d"
    query = f"select a.k from a {one} {other} match_condition (a.ts >= d.ts) on a.k = d.k"
    text = _rewritten(query)
    assert "asof join" not in text.lower()
    assert text.count("JOIN LATERAL") == 3
    assert {reference.name for reference in references(parse_query(query))} == {"a", "b", "c"}


def test_the_words_of_the_syntax_stay_usable_as_names() -> None:
    query = "select a.asof, a.match_condition from a join b as asof on asof.k = a.k"
    assert _rewritten(query) == query


def test_places_lead_back_to_the_query_as_written() -> None:
    query = "select nosuch from a left asof join b match_condition (a.ts >= b.wrong) on a.k = b.k where a.worse"
    edited = asof_joins(Edited(query), TABLES)
    for word in ("a.k = b.k", "a.worse"):
        at = edited.text.index(word)
        assert edited.origin(at, at + len(word)) == (query.index(word), query.index(word) + len(word))
    at = edited.text.rindex("b.wrong")
    assert edited.origin(at, at + 7) == (query.index("b.wrong"), query.index("b.wrong") + 7)


@pytest.mark.parametrize(
    ("join", "place", "message"),
    [
        ("left asof join b match_condition (a.ts = b.ts) on a.k = b.k", "a.ts = b.ts", "MATCH_CONDITION must compare"),
        ("left asof join b match_condition (a.ts >= a.k) on a.k = b.k", "a.ts >= a.k", "with one of b by >=, >, <= or <"),
        ("left asof join b match_condition (a.ts >= ts) on a.k = b.k", "a.ts >= ts", "which table ts belongs to: <table>.ts"),
        ("asof join b match_condition (a.ts >= b.ts) on a.k < b.k", "a.k < b.k", "ON of an ASOF JOIN must be equalities"),
        ("asof join b match_condition (a.ts >= b.ts) on a.k = 1", "a.k = 1", "ON of an ASOF JOIN must be equalities"),
        ("asof join b match_condition (a.ts >= b.ts) on a.k = (select 1)", "a.k = (select 1)", "cannot hold a subquery"),
        ("asof join (select 1 as k) match_condition (a.ts >= k) on a.k = k", "(select 1 as k)", "a subquery with a name"),
        ("asof join b match_condition (a.ts >= b.ts) using (k)", "(", "Expected ON: an ASOF JOIN has no USING"),
        ("asof join b on a.k = b.k", "on", "Expected MATCH_CONDITION"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_where_it_stands(join: str, place: str, message: str) -> None:
    query = f"select * from a {join}"
    with pytest.raises(SyntaxFailure, match=message.replace("(", r"\(")) as failure:
        _rewritten(query)
    assert query[failure.value.start : failure.value.end] == place
