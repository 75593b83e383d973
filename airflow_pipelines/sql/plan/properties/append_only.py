"""The append-only relations of a plan: append-only tables, and the results of linear stages over them."""

from __future__ import annotations

from collections.abc import Set

from airflow_pipelines.sql.plan.ir.stage import ViewPlan


def append_only_relations(plan: ViewPlan, known: Set[str]) -> frozenset[str]:
    """Return the append-only relations of a plan, which never lose a row.

    :param plan: a view's plan
    :param known: the append-only relations that it reads; markers are never append-only, since their row changes
    """
    relations: set[str] = set()
    for stage in (*plan.stages, *plan.after):
        if stage.node.append_only and stage.reads <= known | relations:
            relations.add(stage.relation)
    return frozenset(relations)
