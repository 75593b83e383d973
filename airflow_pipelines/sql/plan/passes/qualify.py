"""Qualifying a query's names: every column gets its source, every source a name that nothing else in the query has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.qualify import qualify as qualify_names
from sqlglot.schema import MappingSchema

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.expressions import NotIncremental, Unplannable, sql, substitute
from airflow_pipelines.sql.plan.ir.nodes import ColumnTypes
from airflow_pipelines.sql.syntax.dialect import PipelineSpark, parse_query

_SHARED = "shared"
"""The mark of a join with columns that USING or NATURAL makes one."""
_GIVEN = "_col_"
"""How the names begin that sqlglot gives to columns without one."""


def qualify(query: str, relations: Mapping[str, ColumnTypes], analyzer: Analyzer) -> exp.Expr:
    """The query's tree with every column qualified, every star expanded, and names of sources that occur once.

    :param query: Spark SQL that Spark accepts
    :param relations: columns of everything the query may read
    :param analyzer: says whether the tree still means what the text does
    :raises NotIncremental: when names cannot be resolved, or the tree would mean something else
    """
    # Types do not matter for resolving names, and Spark writes some that sqlglot does not know.
    known: dict[str, object] = {name: {column: "unknown" for column, _ in columns} for name, columns in relations.items()}
    dialect = PipelineSpark(normalization_strategy="case_sensitive")
    try:
        tree = parse_query(query)
        _note_shared_columns(tree)
        schema = MappingSchema(known, dialect=dialect, normalize=False)
        tree = qualify_names(tree, schema=schema, dialect=dialect, validate_qualify_columns=True, quote_identifiers=True)
    except Exception as error:
        # Besides its own errors, sqlglot raises ValueError, KeyError and the like for what it does not expect. Spark has
        # accepted the query, so that whatever sqlglot has against it only rules the symbolic way out.
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise NotIncremental(f"names could not be resolved symbolically: {first}") from error
    _resolve_shared_columns(tree)
    _Renamer().query(tree, {})
    _strip_aliases(tree)
    # sqlglot may print something else than it read; only a text that Spark optimises to the same plan may be taken apart.
    require_same(
        query, _without_given_names(tree), analyzer, "the query could not be rewritten with qualified names and the same meaning"
    )
    return tree


def require_same(query: str, tree: exp.Expr, analyzer: Analyzer, reason: str) -> None:
    """Refuse a tree that Spark does not surely read as the query.

    :param reason: what the refusal says when it means something else
    :raises NotIncremental: also when Spark cannot plan the query itself
    """
    if analyzer.same(query, sql(tree)):
        return
    complaint = analyzer.complaint(query)
    if complaint is not None:
        raise Unplannable(f"Spark cannot plan the query: {complaint}")
    raise NotIncremental(reason)


def _note_shared_columns(tree: exp.Expr) -> None:
    """Mark the joins the conditions of which sqlglot is going to make of USING or NATURAL."""
    for join in tree.find_all(exp.Join):
        if join.args.get("using") or (join.args.get("method") or "").upper() == "NATURAL":
            join.meta[_SHARED] = True


def _resolve_shared_columns(tree: exp.Expr) -> None:
    """Take the column of USING and NATURAL joins from the side that Spark takes it from.

    sqlglot reads it as COALESCE of all sides. The parser keeps functions as they are written, so that every ``Coalesce`` in the
    tree is one of these.
    """
    for select in tree.find_all(exp.Select):
        shared: dict[str, exp.Expr] = {}
        for join in select.args.get("joins") or []:
            if join.meta.get(_SHARED):
                _share(join, shared)
        for found in [found for found in select.find_all(exp.Coalesce) if found.find_ancestor(exp.Select) is select]:
            column = shared.get(found.this.name)
            if column is not None and {part.table for part in found.find_all(exp.Column)} >= {
                part.table for part in column.find_all(exp.Column)
            }:
                found.replace(column.copy())


def _share(join: exp.Join, shared: dict[str, exp.Expr]) -> None:
    """Bring ``shared``, the columns that USING has made one, beyond a join that has USING, and its condition in their terms."""
    pairs = [part.unnest() for part in join.args["on"].flatten()] if isinstance(join.args["on"], exp.And) else [join.args["on"]]
    conditions = []
    for pair in pairs:
        own = pair.expression
        before = shared.get(own.name, pair.this)
        conditions.append(exp.EQ(this=before.copy(), expression=own.copy()))
        side = (join.side or "").upper()
        if side == "RIGHT":
            shared[own.name] = own.copy()
        elif side == "FULL":
            shared[own.name] = exp.Coalesce(this=before.copy(), expressions=[own.copy()])
        else:
            shared[own.name] = before.copy()
    join.set("on", exp.and_(*conditions, copy=False))


def _strip_aliases(tree: exp.Expr) -> None:
    """Take away aliases that only repeat a column's name, and put back those that QUALIFY used.

    Otherwise Spark plans ORDER BY and window functions in another way.
    """
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            if isinstance(item, exp.Alias) and isinstance(item.this, exp.Column) and item.this.name == item.alias:
                item.replace(item.this)
        if select.args.get("qualify") is not None:
            named = {item.this: exp.column(item.alias, quoted=True) for item in select.expressions if isinstance(item, exp.Alias)}
            select.set("qualify", substitute(select.args["qualify"], named))


def _without_given_names(tree: exp.Expr) -> exp.Expr:
    """A copy without the names that sqlglot gives to the columns of subqueries in expressions, since Spark gives others."""
    copy = tree.copy()
    for select in copy.find_all(exp.Select):
        around = select.parent
        while isinstance(around, exp.Subquery):
            around = around.parent
        if around is not None and not isinstance(around, exp.From | exp.Join | exp.Lateral | exp.CTE | exp.SetOperation):
            for item in select.expressions:
                if isinstance(item, exp.Alias) and item.alias.startswith(_GIVEN):
                    item.replace(item.this)
    return copy


@dataclass(slots=True)
class _Renamer:
    """Renames sources whose name occurred before, and the columns that are read of them."""

    taken: set[str] = field(default_factory=set)

    def query(self, tree: exp.Expr, outer: Mapping[str, str]) -> None:
        """Rename within a query; ``outer``: what the names of the sources around it have become."""
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
        for source in _sources(tree):
            alias = source.args.get("alias")
            if alias is not None and alias.this is not None:
                names[alias.name] = self._fresh(alias.name)
                alias.set("this", exp.to_identifier(names[alias.name], quoted=True))
        for source in _sources(tree):
            for pivot in source.args.get("pivots") or []:
                self._pivot(pivot, names)
        for name, value in tree.args.items():
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr) and name != "with_":
                    self._expression(child, names)

    def _pivot(self, pivot: exp.Pivot, names: dict[str, str]) -> None:
        """Rename what PIVOT or UNPIVOT reads of its source, and then its own result, which may have the source's name."""
        for found in pivot.find_all(exp.Column):
            if found.table in names:
                found.set("table", exp.to_identifier(names[found.table], quoted=True))
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


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    """The entries of a FROM clause, those in parentheses included."""
    clause = select.args.get("from_")
    if clause is not None:
        yield from _entries(clause.this)
    for join in select.args.get("joins") or []:
        yield from _entries(join.this)
    yield from select.args.get("laterals") or []


def _entries(source: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
        yield from _entries(source.this)
    else:
        yield source
    for join in source.args.get("joins") or []:
        yield from _entries(join.this)


def free_sources(tree: exp.Expr) -> frozenset[str]:
    """The sources that a query reads columns of without having them in a FROM clause of its own: it is correlated to them."""
    inner = {alias for select in tree.find_all(exp.Select) for alias in own_sources(select)}
    return frozenset(column.table for column in tree.find_all(exp.Column) if column.table and column.table not in inner)


def own_sources(select: exp.Select) -> list[str]:
    """The names of the sources in a SELECT's own FROM clause, those before and after PIVOT and UNPIVOT."""
    named = [part for source in _sources(select) for part in (source, *(source.args.get("pivots") or []))]
    return [part.args["alias"].name for part in named if part.args.get("alias")]
