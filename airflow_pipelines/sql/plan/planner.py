"""The planner, which decomposes a view's query into stages whose deltas are surely right, or gives the reason why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.clauses.limits import first_rows, row_limit_of
from airflow_pipelines.sql.plan.clauses.select import plan_select
from airflow_pipelines.sql.plan.clauses.set_operations import distinct, except_, except_all, intersect, intersect_all, union_all
from airflow_pipelines.sql.plan.expressions import NotIncremental, Unplannable, construct_name, require_only
from airflow_pipelines.sql.plan.ir.full import CHOSEN, Full
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan
from airflow_pipelines.sql.plan.ir.node import ColumnTypes, Node
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from airflow_pipelines.sql.plan.ir.to_sql import to_sql
from airflow_pipelines.sql.plan.passes.canonical_form import canonical_query
from airflow_pipelines.sql.plan.pipeline import finished_stages, prepared_tree
from airflow_pipelines.sql.plan.positions import Places
from airflow_pipelines.sql.plan.properties.emptiness import required_inputs
from airflow_pipelines.sql.plan.scope import Scope


def plan_view(
    view: str,
    query: str,
    relations: Mapping[str, ColumnTypes],
    columns: ColumnTypes,
    reads: Sequence[str],
    analyzer: Analyzer,
    append_only: Set[str] = frozenset(),
    noncanonical: Mapping[str, frozenset[str]] = MappingProxyType({}),
    places: Places | None = None,
) -> ViewPlan:
    """Plan a view.

    :param view: the canonical name
    :param query: Spark SQL with folded names, as both strategies are to understand it
    :param relations: the columns of all relations that the query may read, by canonical name; declared to ``analyzer`` already
    :param columns: the view's columns; only their names matter, the query's columns are taken by position
    :param reads: the relations that the query names
    :param analyzer: the analyzer, which answers about Spark's view of queries
    :param append_only: those of ``relations`` that never lose a row
    :param noncanonical: the columns of each relation that hold a part of the query and whose values Spark may represent differently
    :param places: the positions of the parts of ``query`` in the program; None if the query is the whole text
    :returns: a plan that always has the full strategy, and stages of its own if every construct has an incremental rule
    :raises AnalysisFailed: if Spark refuses the query itself
    """
    types = (kind for _, kind in analyzer.columns(query))
    columns = tuple((name, kind) for (name, _), kind in zip(columns, types, strict=True))
    answer = canonical_query(query, columns)
    full = Stage(view, columns, Full(answer, tuple(reads), CHOSEN))
    places = places or Places.within(query)
    builder = Builder(view, relations, analyzer, places, append_only=frozenset(append_only), noncanonical=noncanonical)
    try:
        node = _plan(prepared_tree(query, builder), Scope(builder, _plan))
        stages = finished_stages((*builder.stages, _as_view(node, columns, builder)), builder)
    except Unplannable as error:
        # Like Spark over empty tables, the constant is not evaluated before there is a row.
        return _plan_recomputed(full, query, Full(answer, tuple(reads), places.reason(error), required_inputs(query, reads)))
    except NotIncremental as error:
        return _plan_recomputed(full, query, Full(answer, tuple(reads), places.reason(error)))
    except RecursionError:
        return _plan_recomputed(full, query, Full(answer, tuple(reads), places.reason("the query nests too deep to be decomposed")))
    return ViewPlan(view, query, columns, stages, full)


def _plan_recomputed(stage: Stage, query: str, node: Full) -> ViewPlan:
    stage = replace(stage, node=node)
    return ViewPlan(stage.relation, query, stage.columns, (stage,), stage)


def _as_view(node: Node | Scan, columns: ColumnTypes, builder: Builder) -> Stage:
    """Return the last stage: a node with the view's own column names."""
    types = builder.types(to_sql(node))
    if [kind for _, kind in types] != [kind for _, kind in columns]:
        raise NotIncremental("the plan's types differ from the query's")
    return Stage(builder.view, columns, node.renamed([name for name, _ in columns]))


def _plan(tree: exp.Expr, scope: Scope) -> Node | Scan:
    """Plan a query inside its scope, to a node whose columns have the query's names."""
    while isinstance(tree, exp.Subquery):
        if tree.args.get("limit") is not None or tree.args.get("offset") is not None:
            require_only(tree, {"this", "order", "limit", "offset", "with_"})
            return _plan_limited(tree, scope.enter(tree).linear(tree.this), scope)
        require_only(tree, {"this", "order"})
        tree = tree.this
    scope = scope.enter(tree)
    if isinstance(tree, exp.Select):
        return plan_select(tree, scope)
    if isinstance(tree, exp.SetOperation):
        return _set_operation(tree, scope)
    raise NotIncremental(f"{construct_name(tree)} has no incremental rule yet", tree)


def _set_operation(tree: exp.SetOperation, scope: Scope) -> Node:
    # ORDER BY alone has no meaning for a relation.
    require_only(tree, {"with_", "this", "expression", "distinct", "order", "limit", "offset"})
    if tree.args.get("limit") is not None or tree.args.get("offset") is not None:
        whole = tree.copy()
        for part in ("order", "limit", "offset"):
            whole.set(part, None)
        return _plan_limited(tree, scope.linear(whole), scope)
    builder, once = scope.builder, bool(tree.args.get("distinct"))
    left, right = scope.linear(tree.this), scope.linear(tree.expression)
    if isinstance(tree, exp.Intersect):
        return (intersect if once else intersect_all)(builder, left, right)
    if isinstance(tree, exp.Except):
        return (except_ if once else except_all)(builder, left, right)
    both = union_all(builder, [left, right])
    return distinct(builder, both) if once else both


def _plan_limited(tree: exp.Expr, rows: Linear, scope: Scope) -> Node:
    """Plan LIMIT and OFFSET of a whole query in parentheses or of a set operation, which can only sort by its own columns."""
    limit = row_limit_of(tree, [(name, exp.column(name)) for name in rows.columns])
    if limit is None or limit.sort_columns:
        raise NotIncremental(
            "a set operation sorted by something else than its columns has no incremental rule", tree.args["order"]
        )
    return first_rows(scope.builder, rows, rows.columns, limit)
