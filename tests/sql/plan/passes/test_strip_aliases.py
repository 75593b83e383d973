"""Aliases that repeat a column's name are removed, at a cost that follows the number of columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlglot import exp

from airflow_pipelines.sql.plan.passes.strip_aliases import strip_aliases
from airflow_pipelines.sql.syntax.dialect import DIALECT, parse_query


def stripped(query: str) -> str:
    return strip_aliases(parse_query(query), None).sql(dialect=DIALECT)  # type: ignore[arg-type]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the children of trees whose places are written down anew."""
    written = [0]
    original = exp.Expression._set_parent

    def counting(self: exp.Expr, arg_key: str, value: object, index: int | None = None) -> Any:
        written[0] += len(value) if isinstance(value, list) else 1
        return original(self, arg_key, value, index)

    with monkeypatch.context() as patch:
        patch.setattr(exp.Expression, "_set_parent", counting)
        yield written


def test_only_aliases_that_repeat_a_name_go() -> None:
    query = (
        "SELECT t.a AS a, t.b AS c, t.a + 1 AS a, d FROM (SELECT u.a AS a FROM u) AS t QUALIFY ROW_NUMBER() OVER (ORDER BY c) = 1"
    )
    assert stripped(query) == (
        "SELECT t.a, t.b AS c, t.a + 1 AS a, d FROM (SELECT u.a FROM u) AS t QUALIFY ROW_NUMBER() OVER (ORDER BY c) = 1"
    )


def test_the_work_follows_the_number_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    work = []
    for count in (100, 200, 400):
        tree = parse_query("SELECT " + ", ".join(f"t.c{number} AS c{number}" for number in range(count)) + " FROM t")
        with counted(monkeypatch) as written:
            strip_aliases(tree, None)  # type: ignore[arg-type]
        work.append(written[0])
    assert work[2] - work[1] <= 2.2 * (work[1] - work[0])
