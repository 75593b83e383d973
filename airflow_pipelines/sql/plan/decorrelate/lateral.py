"""Plans of lateral subqueries: joins of each outer row with the rows that the subquery gives for it."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.outer_joins import equal_pairs, outer_join
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, ColumnRef, column
from airflow_pipelines.sql.plan.decorrelate.correlation import correlation
from airflow_pipelines.sql.plan.expressions import NotIncremental, require_scalar, sql, substitute
from airflow_pipelines.sql.plan.ir.affected_keys import KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.plan.sources import free_sources


def join_lateral(block: Block, scope: Scope, lateral: exp.Lateral, condition: exp.Expr | None, *, outer: bool) -> None:
    """Join a block with a lateral subquery.

    :param block: the outer rows
    :param scope: the scope of the subquery
    :param lateral: the entry of the FROM clause
    :param condition: the join's condition, if it has one
    :param outer: True to keep outer rows without a match
    """
    if condition is not None:
        require_scalar(condition)
    query: exp.Expr = lateral.this
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Query):
        raise NotIncremental("this form of LATERAL has no incremental rule")
    alias, names = _read_names(lateral, query)
    if not free_sources(query):
        _join_plain(block, scope.linear(query), alias, names, condition, lateral, outer=outer)
        return
    split = correlation(query, scope, block.aliases)
    node, inside = split.rows()
    outer_alias, rows = block.builder.name("o"), block.builder.name("i")
    left, left_names = block.as_node()
    pairs = equal_pairs(split.correlated, (left, left_names), (node, inside), block)
    if not pairs:
        raise NotIncremental("a lateral subquery that no equality correlates with the outer rows has no incremental rule", query)
    read = [name for table, name in block.required if table == alias]
    kept: dict[ColumnRef, ColumnRef] = {place: (outer_alias, name) for place, name in left_names.items()}
    trees: dict[exp.Expr, exp.Expr] = {column(place): column(now) for place, now in kept.items()}
    kept |= {(alias, name): (alias, name) for name in names if name in read}
    columns = {place: f"c{at}" for at, place in enumerate(kept)}
    items = ", ".join(f"{sql(column(now))} AS {columns[place]}" for place, now in kept.items()) or "1 AS c0"
    body = sql(substitute(split.over(rows, inside), trees))
    on = f" ON {sql(substitute(condition, trees))}" if condition is not None else ""
    words = "LEFT JOIN" if outer else "JOIN"
    text = (
        f"SELECT {items} FROM {quote(outer_alias)} {words} LATERAL ({body}) AS {quote(alias)}({', '.join(map(quote, names))}){on}"
    )
    pieces = (
        KeyedSource(outer_alias, left, tuple(pair[0] for pair in pairs)),
        KeyedSource(rows, node, tuple(pair[1] for pair in pairs)),
    )
    block.replace_by_keyed(pieces, QueryExpression(text), columns, Shape.SUBQUERY)


def _read_names(lateral: exp.Lateral, query: exp.Expr) -> tuple[str, list[str]]:
    """Return the name of a lateral subquery and the names of its columns."""
    alias = lateral.args.get("alias")
    if alias is None or alias.this is None:
        raise NotIncremental("a lateral subquery without a name has no incremental rule")
    while not isinstance(query, exp.Select):
        query = query.this
    names = [part.name for part in alias.columns] or [item.alias_or_name for item in query.expressions]
    if len(names) != len(query.expressions) or len(set(names)) < len(names):
        raise NotIncremental("a lateral subquery with two columns of one name has no incremental rule")
    return alias.name, names


def _join_plain(
    block: Block,
    node: Linear,
    alias: str,
    names: list[str],
    condition: exp.Expr | None,
    written: exp.Expr,
    *,
    outer: bool,
) -> None:
    """Join an uncorrelated lateral subquery."""
    inner = Block(block.builder, block.required)
    own = block.builder.name("d")
    inner.required = inner.required | {(own, name) for name in node.columns}
    inner.add(own, node)
    inner.current_columns = {(alias, name): (own, was) for name, was in zip(names, node.columns, strict=True)}
    if outer:
        outer_join(block, inner, "LEFT", condition, written)
        return
    block.sources += inner.sources
    block.current_columns |= inner.current_columns
    if condition is not None:
        block.filter(condition)
