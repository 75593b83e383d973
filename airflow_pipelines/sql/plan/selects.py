"""SELECT: its clauses in the order in which they take effect."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from airflow_pipelines.sql.plan.blocks import Block, Place
from airflow_pipelines.sql.plan.expressions import NotIncremental, is_generator, only, require_scalar, substituted
from airflow_pipelines.sql.plan.grouping import Groups, Outputs, aggregate, grouped, groups_of
from airflow_pipelines.sql.plan.joins import plan_from
from airflow_pipelines.sql.plan.nodes import Full, Node, Scan
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.plan.setops import distinct

_PARTS = frozenset(
    {"with_", "kind", "expressions", "hint", "from_", "joins", "laterals", "where", "group", "having", "order", "distinct"}
)


def plan_select(tree: exp.Select, scope: Scope) -> Node | Scan:
    """Plan one SELECT; columns are called as the query calls them."""
    only(tree, _PARTS)
    outputs = _outputs(tree)
    if tree.args.get("from_") is None:
        return _constant(tree, scope)
    block = Block(scope.builder, _wanted(tree))
    for condition in plan_from(tree, block, scope):
        require_scalar(condition)
        block.filter(condition)
    node = _projected(tree, block, outputs)
    return distinct(scope.builder, scope.builder.linear(node)) if tree.args.get("distinct") else node


def _projected(tree: exp.Select, block: Block, outputs: Outputs) -> Node | Scan:
    """GROUP BY, HAVING and the SELECT list over a block."""
    having = tree.args["having"].this if tree.args.get("having") is not None else None
    groups = groups_of(tree, outputs, [*(item for _, item in outputs), *([having] if having is not None else [])])
    if groups is not None:
        if not any(is_generator(item) for _, item in outputs):
            return aggregate(block, groups, outputs, having)
        outputs = _over_groups(block, groups, outputs, having)
    for _, item in outputs:
        require_scalar(item)
    return block.select(outputs)


def _over_groups(block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None) -> Outputs:
    """Make the block its groups; gives the SELECT list in terms of them."""
    names: Mapping[exp.Expr, exp.Expr] = grouped(block, groups, having)
    return [(name, substituted(item, names)) for name, item in outputs]


def _outputs(tree: exp.Select) -> Outputs:
    outputs = [(item.alias_or_name, item.unalias()) for item in tree.expressions]
    if any(item.is_star for _, item in outputs):
        raise NotIncremental("the columns of a * could not be found symbolically")
    if any(isinstance(item, exp.Aliases) for item in tree.expressions):
        raise NotIncremental("an expression gives several columns")
    # Nothing can read the second of two columns of one name, except the view itself, which counts.
    seen = [name for name, _ in outputs]
    return [(name if name not in seen[:at] else f"{name}__{at}", item) for at, (name, item) in enumerate(outputs)]


def _wanted(tree: exp.Select) -> frozenset[Place]:
    """The columns that a SELECT reads, also in its subqueries, of whatever source."""
    return frozenset((found.table, found.name) for found in tree.find_all(exp.Column) if found.table)


def _constant(tree: exp.Select, scope: Scope) -> Full:
    """A SELECT without FROM: computed once."""
    for item in tree.expressions:
        require_scalar(item)
    text, reads = scope.standalone(tree)
    return Full(text, reads, "a constant")
