"""A pass that renames sources so that each name occurs once in the whole query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.sources import sources_of


def unique_source_names(tree: exp.Expr, _builder: Builder) -> exp.Expr:
    """Rename every source whose name occurred before, and the columns that are read from it.

    :param tree: a query with qualified columns; it is changed
    :returns: the tree
    """
    _Renamer().query(tree, {})
    return tree


@dataclass(slots=True)
class _Renamer:
    """A renamer of sources whose name occurred before, and of the columns that are read from them."""

    taken: set[str] = field(default_factory=set)

    def query(self, tree: exp.Expr, outer: Mapping[str, str]) -> None:
        """Rename within a query.

        :param outer: the new names of the sources around it
        """
        clause = tree.args.get("with_")
        for common in clause.expressions if clause is not None else ():
            self.query(common.this, outer)
        if isinstance(tree, exp.Select):
            self._select(tree, outer)
            return
        for name, child in tree.args.items():
            if isinstance(child, exp.Expr) and name != "with_":
                self.query(child, outer)

    def _select(self, tree: exp.Select, outer: Mapping[str, str]) -> None:
        names = dict(outer)
        for source in sources_of(tree):
            alias = source.args.get("alias")
            if alias is not None and alias.this is not None:
                names[alias.name] = self._fresh(alias.name)
                alias.set("this", exp.to_identifier(names[alias.name], quoted=True))
        for source in sources_of(tree):
            for pivot in source.args.get("pivots") or []:
                self._pivot(pivot, names)
        for name, value in tree.args.items():
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr) and name != "with_":
                    self._expression(child, names)

    def _pivot(self, pivot: exp.Pivot, names: dict[str, str]) -> None:
        """Rename the columns that PIVOT or UNPIVOT reads from its source, and then its own result.

        The result may have the source's name.
        """
        for column in pivot.find_all(exp.Column):
            if column.table in names:
                column.set("table", exp.to_identifier(names[column.table], quoted=True))
        alias = pivot.args.get("alias")
        if alias is not None and alias.this is not None:
            names[alias.name] = self._fresh(alias.name)
            alias.set("this", exp.to_identifier(names[alias.name], quoted=True))

    def _expression(self, tree: exp.Expr, names: Mapping[str, str]) -> None:
        if isinstance(tree, exp.Pivot):
            return
        if isinstance(tree, exp.Query) and not isinstance(tree, exp.Subquery):
            self.query(tree, names)
            return
        if isinstance(tree, exp.Column) and tree.table in names:
            tree.set("table", exp.to_identifier(names[tree.table], quoted=True))
        for child in list(tree.iter_expressions()):
            self._expression(child, names)

    def _fresh(self, name: str) -> str:
        fresh, number = name, 1
        while fresh in self.taken:
            number += 1
            fresh = f"{name}_{number}"
        self.taken.add(fresh)
        return fresh
