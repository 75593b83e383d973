"""Collations have no incremental rule, and the reason says what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.positions import Places


class Types:
    """Has one type for everything."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None: ...

    def columns(self, query: str) -> ColumnTypes:
        return (("a", self.kind),)

    def same_plan(self, one: str, other: str) -> bool:
        return one == other

    def planning_error(self, query: str) -> str | None:
        return None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("string collate UTF8_LCASE", r"no relation holds text with a collation: LOWER\(...\) instead of COLLATE UTF8_LCASE"),
        ("array<string collate UNICODE>", "no relation holds text with a collation"),
        ("interval", "an interval that mixes months with days or times cannot be stored"),
    ],
)
def test_types_that_cannot_be_stored(kind: str, reason: str) -> None:
    query = "select 1"
    with pytest.raises(NotIncremental, match=reason):
        Builder("v", {}, Types(kind), Places.within(query)).types(query)
