"""Plans of SELECT: its clauses in the order in which SQL evaluates them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from airflow_pipelines.sql.plan.blocks.group_by import (
    aggregate,
    expand_grouping_sets,
    groups_of,
    materialize_groups,
)
from airflow_pipelines.sql.plan.blocks.groups import Groups, Outputs
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, ColumnRef
from airflow_pipelines.sql.plan.clauses.joins import plan_from
from airflow_pipelines.sql.plan.clauses.limits import first_rows, row_limit_of
from airflow_pipelines.sql.plan.clauses.set_operations import distinct
from airflow_pipelines.sql.plan.clauses.window_functions import apply_windows, inline_windows, qualify_of, window_functions
from airflow_pipelines.sql.plan.decorrelate.subquery_placeholders import SubqueryPlaceholders
from airflow_pipelines.sql.plan.decorrelate.unnest_subqueries import apply_conditions, unnest_subqueries
from airflow_pipelines.sql.plan.expressions import NotIncremental, conjuncts, is_generator, require_only, require_scalar, substitute
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Scan
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.scope import Scope

_PARTS = frozenset(
    {
        "with_", "kind", "expressions", "hint", "from_", "joins", "laterals", "where", "group", "having", "windows", "qualify",
        "order", "limit", "offset", "distinct",
    }
)  # fmt: skip


def plan_select(tree: exp.Select, scope: Scope) -> Node | Scan:
    """Plan one SELECT.

    :param tree: the SELECT
    :param scope: the scope of the SELECT
    :returns: a node whose columns have the query's names
    :raises NotIncremental: if a clause has no incremental rule
    """
    require_only(tree, _PARTS)
    outputs = _outputs(tree)
    if tree.args.get("from_") is None:
        return _plan_constant(tree, scope)
    names = tuple(name for name, _ in outputs)
    # Without LIMIT, ORDER BY has no meaning for a relation.
    limit = row_limit_of(tree, outputs)
    block = Block(scope.builder, _find_columns(tree))
    apply_conditions(block, scope, plan_from(tree, block, scope))
    node = _plan_projection(tree, block, scope, [*outputs, *(limit.sort_columns if limit is not None else [])])
    if tree.args.get("distinct"):
        if limit is not None and limit.sort_columns:
            raise NotIncremental("DISTINCT sorted by what is not selected has no incremental rule", tree.args["order"])
        node = distinct(scope.builder, scope.builder.linear(node))
    return node if limit is None else first_rows(scope.builder, scope.builder.linear(node), names, limit)


def _plan_projection(tree: exp.Select, block: Block, scope: Scope, outputs: Outputs) -> Node | Scan:
    """Plan GROUP BY, HAVING, window functions, QUALIFY and the SELECT list over a block."""
    placeholders = SubqueryPlaceholders()
    definitions = tree.args.get("windows") or []
    outputs = [(name, placeholders.replace_subqueries(inline_windows(item, definitions))) for name, item in outputs]
    having = placeholders.replace_subqueries(_condition(tree.args["having"].this)) if tree.args.get("having") is not None else None
    qualify = qualify_of(tree, outputs)
    last = [qualify] if qualify is not None else []
    tree = placeholders.replace_in_group_by(tree)
    groups = groups_of(tree, outputs, [*(item for _, item in outputs), *last, *([having] if having is not None else [])])
    names: Mapping[exp.Expr, exp.Expr] = {}
    if groups is not None:
        if groups.sets:
            groups, show = expand_grouping_sets(block, groups)
            outputs, last = [(name, show(item)) for name, item in outputs], [show(part) for part in last]
            having = show(having) if having is not None else None
        names = placeholders.unnest_below_groups(block, scope, groups)
        outputs, last = _replace_parts(outputs, last, names)
        having = substitute(having, names) if having is not None else None
        groups = Groups([substitute(key, names) for key in groups.keys], [substitute(call, names) for call in groups.calls])
        above = [*(item for _, item in outputs), *([having] if having is not None else [])]
        if not last and not any(
            is_generator(item) or window_functions(item) or placeholders.has_placeholder(item) for item in above
        ):
            return aggregate(block, groups, outputs, having)
        later = having is not None and placeholders.has_placeholder(having)
        members = materialize_groups(block, groups, None if later else having)
        outputs, last = _replace_parts(outputs, last, members)
        names = {key: members[key] for key in groups.keys}
        if having is not None and later:
            apply_conditions(block, scope, [placeholders.restore(substitute(having, members), names)])
    outputs = [
        (name, unnest_subqueries(block, scope, placeholders.restore(item, names)) if placeholders.has_placeholder(item) else item)
        for name, item in outputs
    ]
    calls = [call for item in [*(item for _, item in outputs), *last] for call in window_functions(item)]
    if calls:
        outputs, last = _replace_parts(outputs, last, apply_windows(block, calls))
    for condition in last:
        for part in conjuncts(condition):
            require_scalar(part)
            block.filter(part)
    for _, item in outputs:
        require_scalar(item)
    return block.select(outputs)


def _condition(having: exp.Expr) -> exp.Expr:
    """Return the condition of HAVING; unlike other clauses, HAVING casts a value that is no predicate to BOOLEAN."""
    if isinstance(having.unnest(), exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
        return having
    return exp.cast(having.copy(), "boolean")


def _replace_parts(outputs: Outputs, last: list[exp.Expr], names: Mapping[exp.Expr, exp.Expr]) -> tuple[Outputs, list[exp.Expr]]:
    """Replace parts of the SELECT list and of the conditions after it."""
    return [(name, substitute(item, names)) for name, item in outputs], [substitute(part, names) for part in last]


def _outputs(tree: exp.Select) -> Outputs:
    outputs = [(item.alias_or_name, item.unalias()) for item in tree.expressions]
    if any(item.is_star for _, item in outputs):
        raise NotIncremental("the columns of a * could not be found symbolically")
    if any(isinstance(item, exp.Aliases) for item in tree.expressions):
        several = next(item for item in tree.expressions if isinstance(item, exp.Aliases))
        raise NotIncremental("an expression gives several columns", several)
    # Nothing can read the second of two columns of one name, except the view itself, which takes columns by position.
    first = {name: at for at, (name, _) in reversed(list(enumerate(outputs)))}
    return [(name if first[name] == at else f"{name}__{at}", item) for at, (name, item) in enumerate(outputs)]


def _find_columns(tree: exp.Select) -> frozenset[ColumnRef]:
    """Return the columns of any source that a SELECT reads, including its subqueries."""
    return frozenset((column.table, column.name) for column in tree.find_all(exp.Column) if column.table)


def _plan_constant(tree: exp.Select, scope: Scope) -> Full:
    """Plan a SELECT without FROM, which is computed once."""
    for item in tree.expressions:
        require_scalar(item)
    text, reads = scope.standalone(tree)
    return Full(text, reads, None)
