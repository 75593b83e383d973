"""Questions to the analyzer about pieces of a query: the columns that a SELECT reads, and the types of expressions in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.syntax.dialect import DIALECT
from airflow_pipelines.sql.values.total_order import sortable

_SOURCES = ("from_", "joins", "laterals")
_INVISIBLE = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A column of a SELECT's FROM clause, and its Spark type.

    :param source: the name of its source; empty for a derived table without a name
    """

    source: str
    name: str
    type: str

    @property
    def text(self) -> str:
        """The column as the SELECT may read it."""
        return f"{quote(self.source)}.{quote(self.name)}" if self.source else quote(self.name)

    @property
    def sortable(self) -> str:
        """An expression that sorts rows by the column."""
        return sortable(self.text, self.type)


def input_columns(select: exp.Select, analyzer: Analyzer) -> tuple[InputColumn, ...] | None:
    """Return the columns of a SELECT's FROM clause, source by source, or None if Spark cannot tell, as in a correlated subquery.

    :param select: the SELECT, within its query
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    inputs: list[InputColumn] = []
    for alias in _aliases(select):
        try:
            columns = analyzer.columns(_query(select, [f"{quote(alias)}.*"]))
        except AnalysisFailed:
            return None
        inputs += [InputColumn(alias, name, kind) for name, kind in columns]
    return (*inputs, *_find_unnamed(select, inputs, analyzer)) if _has_unnamed(select) else tuple(inputs)


def _has_unnamed(select: exp.Select) -> bool:
    """Return True if a derived table or generator in the FROM clause has no name, so that its columns have no qualifier."""
    return any(not source.alias_or_name for source in sources_of(select))


def _find_unnamed(select: exp.Select, named: Sequence[InputColumn], analyzer: Analyzer) -> list[InputColumn]:
    try:
        columns = analyzer.columns(_query(select, ["*"]))
    except AnalysisFailed:
        return []
    known, names = {column.name for column in named}, [name for name, _ in columns]
    return [InputColumn("", name, kind) for name, kind in columns if name not in known and names.count(name) == 1]


def star_columns(select: exp.Select, source: str, analyzer: Analyzer) -> tuple[str, ...] | None:
    """Return the columns that ``*`` stands for in a SELECT, or None if Spark cannot tell.

    :param select: the SELECT, within its query
    :param source: the relation of ``source.*``; empty for ``*``
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    try:
        columns = analyzer.columns(_query(select, [f"{quote(source)}.*" if source else "*"]))
    except AnalysisFailed:
        return None
    return tuple(name for name, _ in columns)


def types_in(select: exp.Select, expressions: Sequence[str], analyzer: Analyzer) -> tuple[str, ...] | None:
    """Return the types of expressions over the columns of a SELECT's FROM clause, or None if Spark cannot tell.

    :param select: the SELECT, within its query
    :param expressions: Spark SQL of each
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    try:
        columns = analyzer.columns(_query(select, [f"{text} AS p{at}" for at, text in enumerate(expressions)]))
    except AnalysisFailed:
        return None
    return tuple(kind for _, kind in columns)


def select_at(tree: exp.Expr, start: int, end: int) -> exp.Select | None:
    """Return the innermost SELECT around the text between two offsets, or None if there is no name or call.

    :param tree: the whole query, parsed
    :param start: an offset in its text
    :param end: the offset behind
    """
    within = (node for node in tree.walk() if start <= node.meta.get("start", -1) < end)
    return next((select for node in within if (select := node.find_ancestor(exp.Select)) is not None), None)


def output_columns(query: exp.Expr, analyzer: Analyzer) -> ColumnTypes | None:
    """Return the names and types of the columns of a query within a larger one, or None if Spark cannot tell.

    :param query: the inner query, within the larger one
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    copy = query.copy()
    copy.set("with_", None)
    try:
        return analyzer.columns(_with(query) + copy.sql(dialect=DIALECT))
    except AnalysisFailed:
        return None


def _aliases(select: exp.Select) -> list[str]:
    return [source.alias_or_name for source in sources_of(select) if source.alias_or_name]


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """Return the tables, subqueries and generators whose columns a SELECT reads.

    :param select: the SELECT
    """
    clause = select.args.get("from_")
    sources = [clause.this] if clause is not None else []
    sources += [join.this for join in select.args.get("joins") or [] if (join.args.get("kind") or "").upper() not in _INVISIBLE]
    return sources + (select.args.get("laterals") or [])


def _query(select: exp.Select, items: Sequence[str]) -> str:
    parts = exp.Select()
    for part in _SOURCES:
        value = select.args.get(part)
        if value:
            parts.set(part, [item.copy() for item in value] if isinstance(value, list) else value.copy())
    return f"{_with(select)}SELECT {', '.join(items)} {parts.sql(dialect=DIALECT).removeprefix('SELECT').strip()}"


def with_visible(tree: exp.Expr, text: str) -> str:
    """Return a query with the common table expressions that are visible at the position of a tree.

    :param tree: a part of a larger query
    :param text: the query, without a WITH clause
    """
    return _with(tree) + text


def _with(tree: exp.Expr) -> str:
    """Return the WITH clause of all common table expressions that a query may read."""
    clauses: list[exp.Expr] = []
    recursive = False
    above: exp.Expr | None = tree
    while above is not None:
        clause = above.args.get("with_")
        if clause is not None:
            clauses = [*_before(clause.expressions, _inside(tree, clause)), *clauses]
            recursive = recursive or bool(clause.args.get("recursive"))
        above = above.parent
    if not clauses:
        return ""
    texts = ", ".join(clause.sql(dialect=DIALECT) for clause in clauses)
    return f"WITH {'RECURSIVE ' if recursive else ''}{texts} "


def _inside(tree: exp.Expr, clause: exp.Expr) -> exp.Expr | None:
    """Return the common table expression of ``clause`` that contains ``tree``."""
    at: exp.Expr | None = tree
    while at is not None:
        if at.parent is clause:
            return at
        at = at.parent
    return None


def _before(clauses: list[exp.Expr], own: exp.Expr | None) -> list[exp.Expr]:
    """Return the common table expressions that one may read: those before it."""
    earlier = []
    for clause in clauses:
        if clause is own:
            break
        earlier.append(clause)
    return earlier
