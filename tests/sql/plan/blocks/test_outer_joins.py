"""By which keys outer, semi and anti joins follow changes."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.planner import plan_view

RELATIONS = {
    "t": (
        ("k", "int"),
        ("d", "date"),
        ("at", "timestamp_ntz"),
        ("s", "string"),
        ("f", "double"),
        ("r", "float"),
        ("m", "decimal(10,2)"),
        ("o", "boolean"),
        ("x", "binary"),
        ("l", "array<int>"),
        ("p", "map<string,int>"),
    ),
    "u": (
        ("k", "bigint"),
        ("d", "date"),
        ("at", "timestamp_ntz"),
        ("z", "timestamp"),
        ("s", "string"),
        ("m", "decimal(12,4)"),
        ("l", "array<bigint>"),
    ),
}


def _node(analyzer: Analyzer, query: str) -> AffectedKeys:
    plan = plan_view("v", query, RELATIONS, analyzer.columns(query), ("t", "u"), analyzer)
    node = plan.stages[-1].node
    assert isinstance(node, AffectedKeys), plan.reason
    return node


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("u.at = date_trunc('hour', t.at)", "timestamp"),
        ("u.z = t.at", "timestamp"),
        ("u.z = t.d", "timestamp"),
        ("u.d = t.at", "timestamp_ntz"),
        ("u.d = t.s", "date"),
        ("u.z = t.s", "timestamp"),
        ("u.at = t.s", "timestamp_ntz"),
        ("u.s = t.k", "bigint"),
        ("u.s = t.f", "double"),
        ("u.s = t.r", "double"),
        ("u.s = t.m", "double"),
        ("u.s = t.o", "boolean"),
        ("u.s = t.x", "binary"),
        ("u.k = t.r", "double"),
        ("u.m = t.m", "decimal(12,4)"),
        ("u.k <=> t.k", "bigint"),
        ("u.l = t.l", "array<bigint>"),
    ],
)
@pytest.mark.parametrize("join", ["left join", "full join"])
def test_an_equality_is_a_key_in_the_type_in_which_spark_compares(analyzer: Analyzer, join: str, condition: str, kind: str) -> None:
    node = _node(analyzer, f"select t.k, u.s from t {join} u on {condition}")
    assert node.key_types == (kind,)
    assert node.reason is None
    assert all(source.keys for source in node.sources)


def test_a_text_that_is_no_number_does_not_end_the_pipeline(analyzer: Analyzer) -> None:
    node = _node(analyzer, "select t.k, u.s from t left join u on u.s = t.k")
    assert [source.keys[0].partition("(")[0] for source in node.sources] == ["CAST", "TRY_CAST"]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("select t.k, u.s from t left join u on t.at >= u.at and t.k > 0", ((2), 0)),
        ("select t.k, u.s from t right join u on t.at >= u.at", (0, 1)),
        ("select t.k from t semi join u on t.at >= u.at", (1, 0)),
        ("select t.k from t anti join u on t.at >= u.at", (1, 0)),
        ("select t.k, u.s from t left join u on u.s = 'x'", (1, 0)),
        ("select t.k, u.s from t left join u on t.k = 1", (1, 0)),
        ("select u.k, t.s from u left join t on u.s = t.s collate utf8_lcase", (1, 0)),
        # Rows of both sides are kept, so that each may become one without a match.
        ("select t.k, u.s from t full join u on t.at >= u.at", (0, 0)),
        # Rows are not found by a MAP.
        ("select t.k, u.s from t left join u on cast(t.p as string) < u.s", (0, 0)),
    ],
)
def test_without_an_equality_a_row_of_the_side_that_is_kept_affects_its_own_matches_alone(
    analyzer: Analyzer, query: str, keys: tuple[int, int]
) -> None:
    node = _node(analyzer, query)
    assert tuple(len(source.keys) for source in node.sources) == keys
    assert node.reason is not None
    assert "no equality joins the two sides" in node.reason.message
    assert node.keeps_contents
