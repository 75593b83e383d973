"""Derives which relations are append-only: append-only tables, and what linear stages make of them."""

from __future__ import annotations

from collections.abc import Set

from airflow_pipelines.sql.plan.ir.nodes import Select, UnionAll, ViewPlan


def append_only_relations(plan: ViewPlan, known: Set[str]) -> frozenset[str]:
    """The relations of a plan that never lose a row.

    :param plan: a view's plan
    :param known: relations before it that never lose a row; markers are not among them, since their rows move
    """
    found: set[str] = set()
    for stage in (*plan.stages, *plan.after):
        if isinstance(stage.node, Select | UnionAll) and stage.reads <= known | found:
            found.add(stage.relation)
    return frozenset(found)
