"""The scope of a query within a larger one: the common table expressions that it can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, sql
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.sources import free_sources


@dataclass(slots=True)
class Common:
    """A common table expression: its tree, the scope that it was defined in, and its node once planned."""

    name: str
    tree: exp.Expr
    scope: Scope
    node: Linear | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope that a query is planned in.

    :param plan: the function that plans a query's tree
    :param commons: the common table expressions that it can name
    """

    builder: Builder
    plan: Callable[[exp.Expr, Scope], Node | Scan]
    commons: Mapping[str, Common] = field(default_factory=dict)

    def enter(self, tree: exp.Expr) -> Scope:
        """Return the scope inside a query, with the definitions of its WITH clause."""
        clause = tree.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise NotIncremental("WITH RECURSIVE has no incremental rule yet", clause)
        scope = self
        for common in clause.expressions:
            if common.args["alias"].columns:
                raise NotIncremental("a CTE with a column list has no incremental rule yet", common)
            scope = replace(scope, commons={**scope.commons, common.alias: Common(common.alias, common.this, scope)})
        return scope

    def linear(self, tree: exp.Expr) -> Linear:
        """Plan a query as a node that FROM can read.

        Without an incremental rule, only this query is recomputed in full, if it is not correlated.
        """
        made = len(self.builder.stages)
        try:
            return self.builder.linear(self.plan(tree, self))
        except NotIncremental as error:
            if free_sources(tree):
                raise
            self.builder.drop_stages_after(made)
            self._forget()
            text, relations = self.standalone(tree)
            return self.builder.stage(Full(text, relations, self.builder.places.reason(error, tree)))

    def _forget(self) -> None:
        """Forget the nodes of common table expressions whose stages were dropped."""
        known = {*self.builder.relations, *(stage.relation for stage in self.builder.stages)}
        for common in self.commons.values():
            if common.node is not None and not common.node.reads <= known:
                common.node = None
            common.scope._forget()

    def resolve(self, name: str) -> Linear:
        """Return the node of a name in a FROM clause."""
        common = self.commons.get(name)
        if common is not None:
            if common.node is None:
                common.node = common.scope.linear(common.tree)
            return common.node
        if name not in self.builder.relations:
            raise NotIncremental(f"relation {name!r} could not be resolved symbolically")
        return Scan(name, tuple(column for column, _ in self.builder.relations[name]))

    def standalone(self, tree: exp.Expr) -> tuple[str, tuple[str, ...]]:
        """Return a query as text with all common table expressions that it needs, and the relations that it reads."""
        needed: dict[str, Common] = {}
        relations: dict[str, None] = {}
        self._collect(tree, needed, relations)
        copy = tree.copy()
        if needed:
            own = copy.args.get("with_")
            commons = [
                exp.CTE(this=common.tree.copy(), alias=exp.TableAlias(this=exp.to_identifier(common.name, quoted=True)))
                for common in needed.values()
            ]
            copy.set("with_", exp.With(expressions=[*commons, *(own.expressions if own is not None else [])]))
        return sql(copy), tuple(relations)

    def _collect(self, tree: exp.Expr, needed: dict[str, Common], relations: dict[str, None]) -> None:
        clause = tree.args.get("with_")
        own = {common.alias for common in clause.expressions} if clause is not None else set()
        for table in tree.find_all(exp.Table):
            # A table function has no name.
            if table.name in own or not isinstance(table.this, exp.Identifier):
                continue
            common = self.commons.get(table.name)
            if common is None:
                relations[table.name] = None
            elif table.name not in needed:
                common.scope._collect(common.tree, needed, relations)
                needed[table.name] = common
