"""The split of a correlated subquery into its uncorrelated rows and the conditions that correlate them with the outer query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.query_blocks import ColumnRef, column
from airflow_pipelines.sql.plan.expressions import NotIncremental, conjuncts, distinct, require_deterministic, substitute
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.plan.sources import free_sources
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls

_PLAIN = frozenset({"with_", "kind", "expressions", "hint", "from_", "joins", "laterals", "where", "order"})


@dataclass(frozen=True, slots=True)
class Correlation:
    """A subquery that reads columns of the query around it.

    :param whole: the subquery
    :param core: the SELECT with the correlated conditions: the subquery itself or a derived table of its FROM clause
    :param uncorrelated: the uncorrelated conditions of the core
    :param correlated: the correlated conditions of the core
    :param scope: the names that the core can read
    """

    whole: exp.Query
    core: exp.Select
    uncorrelated: tuple[exp.Expr, ...]
    correlated: tuple[exp.Expr, ...]
    scope: Scope

    @property
    def is_plain(self) -> bool:
        """True if the subquery gives one row for each of the core's rows that meet its conditions."""
        return self.whole is self.core and is_plain(self.core)

    @property
    def items(self) -> list[exp.Expr]:
        """The core's SELECT list."""
        return [item.unalias() for item in self.core.expressions]

    @property
    def inner(self) -> list[exp.Column]:
        """The core's columns that its correlated conditions, SELECT list and GROUP BY read."""
        outer = free_sources(self.whole)
        columns = distinct(read for part in self._above() for read in part.find_all(exp.Column))
        return [part for part in columns if isinstance(part, exp.Column) and part.table and part.table not in outer]

    def _above(self) -> list[exp.Expr]:
        parts = list(self.correlated)
        for name, value in self.core.args.items():
            if name not in {"from_", "joins", "laterals", "where", "with_"}:
                parts += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr)]
        return parts

    def rows(self) -> tuple[Linear, dict[ColumnRef, str]]:
        """Return the core's rows without the correlated conditions: a node, and the names of the core's columns in it."""
        names = {(read.table, read.name): f"c{at}" for at, read in enumerate(self.inner)}
        items = [exp.alias_(column(place), name) for place, name in names.items()] or [exp.alias_(exp.Literal.number(1), "c0")]
        return self.scope.linear(self.query(items)), names

    def query(self, items: list[exp.Expr], keys: list[exp.Expr] | None = None) -> exp.Select:
        """Return a query over the core's rows without the correlated conditions.

        :param items: the SELECT list
        :param keys: the GROUP BY keys; none for a query without groups
        """
        copy = exp.Select(expressions=items)
        for name in ("from_", "joins", "laterals"):
            value = self.core.args.get(name)
            if value:
                copy.set(name, [part.copy() for part in value] if isinstance(value, list) else value.copy())
        for join in copy.args.get("joins") or []:
            # The conditions of inner joins are among the uncorrelated ones.
            if _is_inner(join):
                join.set("on", None)
        if self.uncorrelated:
            copy.set("where", exp.Where(this=exp.and_(*self.uncorrelated, copy=True)))
        if keys:
            copy.set("group", exp.Group(expressions=keys))
        return copy

    def over(self, alias: str, names: Mapping[ColumnRef, str]) -> exp.Query:
        """Return the subquery with its core reading its rows from another relation.

        :param alias: the relation's name in the query
        :param names: the core's columns and their names in the relation
        """
        whole = self.whole.copy()
        core = _core(whole, free_sources(self.whole))[-1]
        for name in ("joins", "laterals", "with_"):
            core.set(name, None)
        core.set("from_", exp.From(this=exp.to_table(quote(alias), dialect="spark")))
        core.set("where", exp.Where(this=exp.and_(*self.correlated, copy=True)) if self.correlated else None)
        for select in _core(whole, free_sources(self.whole)):
            select.set("with_", None)
            # Inside, the columns get other names; readers of the subquery need the original ones.
            select.set("expressions", [_with_name(item) for item in select.expressions])
        trees: dict[exp.Expr, exp.Expr] = {column(place): column((alias, name)) for place, name in names.items()}
        return substitute(whole, trees)  # type: ignore[return-value]


def correlation(whole: exp.Query, scope: Scope, outer: frozenset[str]) -> Correlation:
    """Split a correlated subquery.

    :param whole: the subquery
    :param scope: the scope of the subquery
    :param outer: the sources of the outer query
    :raises NotIncremental: if its rows cannot be separated from the outer row
    """
    free_names = free_sources(whole)
    if not free_names <= outer:
        raise NotIncremental("a subquery that reads columns of a query further out has no incremental rule", whole)
    path = _core(whole, free_names)
    for select in path:
        scope = scope.enter(select)
    core = path[-1]
    conditions = list(conjuncts(core.args["where"].this)) if core.args.get("where") is not None else []
    for join in core.args.get("joins") or []:
        if join.args.get("on") is not None and _is_inner(join):
            conditions += conjuncts(join.args["on"])
    correlated = tuple(condition for condition in conditions if free_sources(condition) & free_names)
    uncorrelated = tuple(condition for condition in conditions if not free_sources(condition) & free_names)
    split = Correlation(whole, core, uncorrelated, correlated, scope)
    if free_sources(split.query([exp.Literal.number(1)])) & free_names:
        raise NotIncremental("a correlation outside of WHERE has no incremental rule", whole)
    for part in split._above():
        require_deterministic(part)
        if part.find(exp.Query):
            raise NotIncremental("a subquery inside a correlated condition or item of another one has no incremental rule", part)
    return split


def is_plain(select: exp.Select) -> bool:
    """Return True if a SELECT gives one row for each row that meets its conditions."""
    if any(value and name not in _PLAIN for name, value in select.args.items()):
        return False
    return not any(True for item in select.expressions for _ in aggregate_calls(item)) and not select.find(exp.Window)


def is_one_row(query: exp.Query) -> bool:
    """Return True if a query always gives exactly one row: aggregates without groups."""
    if not isinstance(query, exp.Select) or any(value and name not in _PLAIN for name, value in query.args.items()):
        return False
    return any(True for item in query.expressions for _ in aggregate_calls(item))


def _with_name(item: exp.Expr) -> exp.Expr:
    name = item.alias_or_name
    return exp.alias_(item.unalias(), name, quoted=True) if name else item


def _is_inner(join: exp.Join) -> bool:
    side, sort = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    return not join.args.get("method") and side in {"", "INNER"} and sort in {"", "INNER", "CROSS"}


def _core(whole: exp.Query, outer: frozenset[str]) -> list[exp.Select]:
    """Return the SELECTs from the whole subquery down to the one with the correlated conditions; each reads only the next one."""
    path: list[exp.Select] = []
    tree: exp.Expr = whole
    while True:
        while isinstance(tree, exp.Subquery):
            tree = tree.this
        if not isinstance(tree, exp.Select):
            raise NotIncremental("a correlated subquery that is not a plain SELECT has no incremental rule", tree)
        path.append(tree)
        clause = tree.args.get("from_")
        if clause is None:
            raise NotIncremental("a correlated subquery without FROM has no incremental rule", tree)
        if not isinstance(clause.this, exp.Subquery) or not free_sources(clause.this) & outer:
            return path
        if tree.args.get("joins") or tree.args.get("laterals"):
            raise NotIncremental("a correlated derived table in a join has no incremental rule", tree)
        tree = clause.this
