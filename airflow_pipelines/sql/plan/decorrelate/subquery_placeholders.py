"""Placeholder columns for the subqueries of SELECT lists, GROUP BY and HAVING, used until grouping is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.sql.plan.blocks.groups import Groups
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, column
from airflow_pipelines.sql.plan.decorrelate.subquery_predicates import subquery_expressions
from airflow_pipelines.sql.plan.decorrelate.unnest_subqueries import unnest_subqueries
from airflow_pipelines.sql.plan.expressions import substitute
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.plan.sources import own_sources
from airflow_pipelines.sql.syntax.aggregate_calls import is_aggregate

_ALIAS = "__subquery"
_AROUND_ARGUMENTS = (exp.Filter, exp.Where, exp.Distinct, exp.WithinGroup, exp.Order, exp.Ordered)


@dataclass(slots=True)
class SubqueryPlaceholders:
    """The placeholder columns and the subqueries that they stand for."""

    subqueries: dict[exp.Expr, exp.Expr] = field(default_factory=dict)
    """The subqueries by their placeholders."""

    def replace_subqueries(self, tree: exp.Expr) -> exp.Expr:
        """Replace each subquery of an expression by a placeholder; equal subqueries share one."""
        names = {subquery: self._column(subquery) for subquery in subquery_expressions(tree)}
        return substitute(tree, names) if names else tree

    def replace_in_group_by(self, select: exp.Select) -> exp.Select:
        """Replace the subqueries in the GROUP BY of a SELECT by placeholders."""
        group = select.args.get("group")
        if group is None or not any(True for _ in subquery_expressions(group)):
            return select
        copy = select.copy()
        copy.set("group", self.replace_subqueries(group))
        return copy

    def has_placeholder(self, tree: exp.Expr) -> bool:
        """Return True if an expression has a placeholder."""
        return bool(self.subqueries) and any(part.table == _ALIAS for part in tree.find_all(exp.Column))

    def restore(self, tree: exp.Expr, keys: Mapping[exp.Expr, exp.Expr]) -> exp.Expr:
        """Replace the placeholders of an expression by their subqueries.

        :param keys: the replacements of parts inside the subqueries
        """
        return substitute(tree, {name: substitute(subquery, keys) for name, subquery in self.subqueries.items()})

    def unnest_below_groups(self, block: Block, scope: Scope, groups: Groups) -> dict[exp.Expr, exp.Expr]:
        """Unnest the subqueries in keys and in arguments of aggregates, over the rows of FROM.

        :param block: the rows of FROM; it takes the joins that unnesting adds
        :param scope: the names that subqueries can read
        :param groups: the keys and aggregates of the query
        :returns: the replacements of these keys and aggregates
        """
        names: dict[exp.Expr, exp.Expr] = {}
        for key in groups.keys:
            if self.has_placeholder(key):
                names[key] = unnest_subqueries(block, scope, self.restore(key, {}))
        for call in groups.calls:
            if self.has_placeholder(call):
                names[call] = self._arguments(call, block, scope)
        return names

    def _arguments(self, tree: exp.Expr, block: Block, scope: Scope) -> exp.Expr:
        if not self.has_placeholder(tree):
            return tree.copy()
        if not is_aggregate(tree) and not isinstance(tree, _AROUND_ARGUMENTS):
            return unnest_subqueries(block, scope, self.restore(tree, {}))
        answers = {child: self._arguments(child, block, scope) for child in tree.iter_expressions()}
        return substitute(tree, answers)

    def _column(self, subquery: exp.Expr) -> exp.Expr:
        for name, known in self.subqueries.items():
            if _canonical(known) == _canonical(subquery):
                return name
        name = column((_ALIAS, f"q{len(self.subqueries)}"))
        self.subqueries[name] = subquery.copy()
        return name


def _canonical(subquery: exp.Expr) -> exp.Expr:
    """Return a subquery with its sources named by position, because the names in the query are all different."""
    copy = subquery.copy()
    own = [alias for select in copy.find_all(exp.Select) for alias in own_sources(select)]
    names = {alias: f"s{at}" for at, alias in enumerate(own)}
    for node in copy.find_all(exp.Column, exp.TableAlias):
        part = "table" if isinstance(node, exp.Column) else "this"
        name = node.args[part].name if node.args.get(part) is not None else ""
        if name in names:
            node.set(part, exp.to_identifier(names[name], quoted=True))
    return copy
