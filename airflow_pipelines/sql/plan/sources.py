"""The sources in the FROM clauses of a query's tree, and those of outer queries that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the entries of a FROM clause, those in parentheses included."""
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
    """Return the outer sources whose columns a query reads, which are in none of its own FROM clauses: it is correlated to them."""
    inner = {alias for select in tree.find_all(exp.Select) for alias in own_sources(select)}
    return frozenset(column.table for column in tree.find_all(exp.Column) if column.table and column.table not in inner)


def own_sources(select: exp.Select) -> list[str]:
    """Return the names of the sources in a SELECT's own FROM clause, those before and after PIVOT and UNPIVOT."""
    named = [part for source in sources_of(select) for part in (source, *(source.args.get("pivots") or []))]
    return [part.args["alias"].name for part in named if part.args.get("alias")]
