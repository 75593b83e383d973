"""The passes of the planner, in the order in which they run.

Query passes work on the query's tree before it is decomposed, stage passes on the stages that result from it. Finishing passes
work on each stage of the whole plan, including the stages for lateness and the clock: they derive what operators need to know of
a node's expressions, so that these are not parsed again. Each pass is a function of the same name in a module of
:mod:`airflow_pipelines.sql.plan.passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from airflow_pipelines.sql.plan.passes.append_only_top_k import append_only_top_k
from airflow_pipelines.sql.plan.passes.calls_over_rows import derive_calls_over_rows
from airflow_pipelines.sql.plan.passes.canonical_form import canonical_form
from airflow_pipelines.sql.plan.passes.drop_unread_columns import drop_unread_columns
from airflow_pipelines.sql.plan.passes.join_graphs import derive_join_graphs
from airflow_pipelines.sql.plan.passes.lateral_generators import lateral_generators
from airflow_pipelines.sql.plan.passes.lookup_keys import derive_lookup_keys
from airflow_pipelines.sql.plan.passes.merge_projections import merge_projections
from airflow_pipelines.sql.plan.passes.name_struct_fields import name_struct_fields
from airflow_pipelines.sql.plan.passes.qualify_columns import qualify_columns
from airflow_pipelines.sql.plan.passes.rankings import derive_rankings
from airflow_pipelines.sql.plan.passes.store_inexact_answers import store_inexact_answers
from airflow_pipelines.sql.plan.passes.strip_aliases import strip_aliases
from airflow_pipelines.sql.plan.passes.temporal_filters import mark_temporal_filters
from airflow_pipelines.sql.plan.passes.union_parts import derive_union_parts
from airflow_pipelines.sql.plan.passes.unique_source_names import unique_source_names
from airflow_pipelines.sql.plan.verify import require_same, without_given_names
from airflow_pipelines.sql.syntax.dialect import parse_query

QueryPass = Callable[[exp.Expr, Builder], exp.Expr]
"""A function that changes a query's tree and keeps its meaning. It raises NotIncremental if the query cannot be decomposed."""
StagePass = Callable[[tuple[Stage, ...], Builder], tuple[Stage, ...]]
"""A function that changes the stages of one view, the last of which is the view's own.

It raises NotIncremental if a stage has no rule.
"""

FinishingPass = Callable[[Stage, Mapping[str, Marker]], Stage]
"""A function that derives fields of a stage's node from its other fields, and from the markers that it may read, by relation."""

QUERY_PASSES: tuple[QueryPass, ...] = (
    lateral_generators,
    qualify_columns,
    name_struct_fields,
    unique_source_names,
    strip_aliases,
)
STAGE_PASSES: tuple[StagePass, ...] = (
    store_inexact_answers,
    append_only_top_k,
    merge_projections,
    drop_unread_columns,
    canonical_form,
)
FINISHING_PASSES: tuple[FinishingPass, ...] = (
    mark_temporal_filters,
    derive_calls_over_rows,
    derive_join_graphs,
    derive_lookup_keys,
    derive_rankings,
    derive_union_parts,
)


def prepared_tree(query: str, builder: Builder) -> exp.Expr:
    """Parse a query and run the query passes over its tree.

    :param query: Spark SQL that Spark accepts
    :param builder: the plan that the query is decomposed for
    :returns: a tree that Spark reads as the query
    :raises NotIncremental: if a pass refuses the query, or the tree would mean something else
    """
    try:
        tree: exp.Expr = parse_query(query)
    except SqlglotError as error:
        raise NotIncremental(f"names could not be resolved symbolically: {error}") from error
    for query_pass in QUERY_PASSES:
        tree = query_pass(tree, builder)
    reason = "the query could not be rewritten with qualified names and the same meaning"
    require_same(query, without_given_names(tree), builder.analyzer, reason)
    return tree


def finished_stages(stages: tuple[Stage, ...], builder: Builder) -> tuple[Stage, ...]:
    """Run the stage passes.

    :param stages: the stages of one view, in order; the last is the view's own
    :param builder: the plan that they belong to
    :raises NotIncremental: if a pass has no rule for a stage
    """
    for stage_pass in STAGE_PASSES:
        stages = stage_pass(stages, builder)
    return stages


def finished_plan(plan: ViewPlan, markers: Mapping[str, Marker]) -> ViewPlan:
    """Run the finishing passes over a plan.

    :param plan: the plan of one view, with all its stages
    :param markers: all markers that the plan may read, by relation
    """
    for finishing_pass in FINISHING_PASSES:
        stages, after = (tuple(finishing_pass(stage, markers) for stage in part) for part in (plan.stages, plan.after))
        plan = replace(plan, stages=stages, after=after)
    return plan
