"""Long chains are balanced: they print as before, and nothing goes as deep as they are long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from airflow_pipelines.sql.syntax.balanced_chains import LONG, balance_chains
from airflow_pipelines.sql.syntax.dialect import DIALECT, parse_tokens, tokenise


def unbalanced(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=DIALECT)


def depth(tree: exp.Expr) -> int:
    return max(sum(1 for _ in above(column)) for column in tree.find_all(exp.Column))


def above(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


@pytest.mark.rest
def test_a_chain_is_as_deep_as_the_logarithm_of_its_length() -> None:
    text = "SELECT 1 FROM t WHERE " + " OR ".join(f"a = {number}" for number in range(3000))
    assert depth(unbalanced(text)) > 3000
    tree = parse_tokens(tokenise(text), text)
    assert depth(tree) < 20
    assert tree.sql(dialect=DIALECT) == unbalanced(text).sql(dialect=DIALECT)


def test_short_chains_stay_as_they_are() -> None:
    text = "SELECT " + " AND ".join(["a"] * (LONG - 1))
    tree = unbalanced(text)
    assert balance_chains(tree.copy()) == tree
    assert depth(tree) == LONG - 1


@st.composite
def conditions(draw: st.DrawFn, level: int = 1) -> str:
    word = draw(st.sampled_from([" AND ", " OR "]))
    parts = st.sampled_from(["a", "NOT b", "c = 1", "d IN (SELECT e FROM u WHERE f OR g)", "CASE WHEN a AND b THEN c END"])
    if level:
        parts |= conditions(level - 1).map(lambda inner: f"({inner})")
    count = draw(st.sampled_from([1, 2, LONG - 1, LONG, LONG + 1] if level else [1, 3, LONG]))
    return word.join(draw(st.lists(parts, min_size=count, max_size=count)))


@pytest.mark.rest
@settings(max_examples=40, deadline=None)
@given(
    conditions(),
    st.sampled_from(["SELECT a FROM t WHERE {0}", "SELECT {0} AS x", "{0}", "SELECT a FROM t JOIN u ON {0} OR a AND b"]),
)
def test_the_text_stays_the_same(condition: str, query: str) -> None:
    tree = unbalanced(query.format(condition))
    before = tree.sql(dialect=DIALECT)
    after = balance_chains(tree)
    assert after.sql(dialect=DIALECT) == before
    assert [column.name for column in after.find_all(exp.Column, bfs=False)] == [
        column.name for column in unbalanced(before).find_all(exp.Column, bfs=False)
    ]
