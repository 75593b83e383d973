"""Plans of FROM clauses: inner joins and unnesting extend a block; outer, semi and anti joins become stages keyed by join keys."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.outer_joins import outer_join
from airflow_pipelines.sql.plan.blocks.query_blocks import Block
from airflow_pipelines.sql.plan.clauses.pivots import plan_pivot
from airflow_pipelines.sql.plan.decorrelate.lateral import join_lateral
from airflow_pipelines.sql.plan.decorrelate.subquery_predicates import has_subquery, subquery_expressions
from airflow_pipelines.sql.plan.decorrelate.unnest_subqueries import apply_conditions, unnest_subqueries
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    conjuncts,
    construct_name,
    is_generator,
    planning,
    require_only,
    require_scalar,
    sql,
)
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.plan.sources import free_sources

_JOIN_PARTS = frozenset({"this", "on", "kind", "side", "method", "using"})


def plan_from(tree: exp.Select, block: Block, scope: Scope) -> list[exp.Expr]:
    """Add a SELECT's FROM clause to a block.

    Conditions on the preserved side of an outer join are pushed below it, which makes the join smaller.

    :param tree: the SELECT
    :param block: an empty block
    :param scope: the scope of the SELECT
    :returns: the conjuncts of its WHERE clause that are still to be applied
    """
    waiting = list(conjuncts(tree.args["where"].this)) if tree.args.get("where") is not None else []
    clause = tree.args.get("from_")
    if clause is not None:
        with planning(clause.this):
            _add_entry(clause.this, block, scope)
        for join in tree.args.get("joins") or []:
            with planning(join):
                waiting = _join(join, block, scope, waiting)
        for lateral in tree.args.get("laterals") or []:
            with planning(lateral):
                _unnest(lateral, block, outer=bool(lateral.args.get("outer")))
    return waiting


def _add_entry(source: exp.Expr, block: Block, scope: Scope) -> None:
    """Add one entry of a FROM clause."""
    for join in source.args.get("joins") or []:
        if (join.args.get("side") or join.args.get("kind") or "INNER").upper() not in {"INNER", "CROSS"}:
            raise NotIncremental("an outer join in parentheses has no incremental rule yet")
    if source.args.get("pivots"):
        require_only(source, {"this", "alias", "pivots", "joins"})
        turned = scope.resolve(source.name) if isinstance(source, exp.Table) else scope.linear(source.this)
        with planning(source.args["pivots"][0]):
            block.add(*plan_pivot(block.builder, turned, _alias(source), source.args["pivots"]))
    elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
        require_only(source, {"this"})
        _add_entry(source.this, block, scope)
    elif isinstance(source, exp.Subquery):
        require_only(source, {"this", "alias"})
        block.add(_alias(source), scope.linear(source.this))
    elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        require_only(source, {"this", "alias", "joins"})
        block.add(_alias(source), scope.resolve(source.name))
    elif isinstance(source, exp.Lateral) and isinstance(source.this, exp.Query):
        join_lateral(block, scope, source, None, outer=False)
    elif isinstance(source, exp.Lateral):
        _unnest(source, block, outer=False)
    elif isinstance(source, exp.Values):
        require_only(source, {"expressions", "alias"})
        columns = ", ".join(quote(column.name) for column in source.args["alias"].columns)
        rows = exp.Values(expressions=[row.copy() for row in source.expressions])
        query = f"SELECT * FROM {sql(rows)} AS v({columns})"
        block.add(source.alias, block.builder.stage(Full(query, (), None)))
    else:
        raise NotIncremental(f"{construct_name(source)} in FROM has no incremental rule yet")
    for join in source.args.get("joins") or []:
        _join(join, block, scope, [])


def _alias(source: exp.Expr) -> str:
    alias = source.args.get("alias")
    if alias is None or alias.this is None:
        raise NotIncremental("a source without a name has no incremental rule")
    if alias.columns:
        raise NotIncremental("a table alias with a column list has no incremental rule yet")
    return str(alias.name)


def _join(join: exp.Join, block: Block, scope: Scope, waiting: list[exp.Expr]) -> list[exp.Expr]:
    require_only(join, _JOIN_PARTS)
    if join.args.get("using") or (join.args.get("method") or "").upper() not in {"", "NATURAL"}:
        raise NotIncremental(f"{join.args.get('method') or 'USING'} in a join has no incremental rule yet")
    side, sort = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    condition = join.args.get("on")
    if isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Query):
        if side not in {"", "INNER", "LEFT"} or sort not in {"", "INNER", "CROSS", "OUTER"}:
            raise NotIncremental(f"{side or sort} JOIN LATERAL has no incremental rule")
        join_lateral(block, scope, join.this, condition, outer=side == "LEFT")
        return waiting
    if isinstance(join.this, exp.Lateral) and side == "LEFT" and (condition is None or sql(condition) == "TRUE"):
        _unnest(join.this, block, outer=True)
        return waiting
    if side in {"", "INNER"} and sort in {"", "INNER", "CROSS"}:
        _add_entry(join.this, block, scope)
        if condition is not None:
            apply_conditions(block, scope, [condition])
        return waiting
    if isinstance(join.this, exp.Lateral):
        raise NotIncremental("an outer join of LATERAL has no incremental rule yet")
    if side in {"", "LEFT"}:
        waiting = _push_down(block, waiting)
    right = Block(block.builder, block.required)
    _add_entry(join.this, right, scope)
    if condition is not None:
        condition = _unnest_condition(condition, block, right, scope)
        require_scalar(condition)
    outer_join(block, right, sort if sort in {"SEMI", "ANTI"} else side, condition, join)
    return waiting


def _unnest_condition(condition: exp.Expr, left: Block, right: Block, scope: Scope) -> exp.Expr:
    """Unnest the subqueries in the condition of an outer join, each on the side whose columns it reads."""
    parts = []
    for part in conjuncts(condition):
        if has_subquery(part):
            subqueries = list(subquery_expressions(part))
            side = left if all(free_sources(subquery) <= left.aliases for subquery in subqueries) else right
            side.required = left.required | right.required
            part = unnest_subqueries(side, scope, part) if len(subqueries) == 1 else part
        parts.append(part)
    left.required = left.required | right.required
    return exp.and_(*parts, copy=True)


def _push_down(block: Block, waiting: list[exp.Expr]) -> list[exp.Expr]:
    """Push down the conditions that read only sources that the block has already.

    :returns: the remaining conditions
    """
    left = []
    for condition in waiting:
        tables = {column.table for column in condition.find_all(exp.Column)}
        if tables <= block.aliases and condition.find(exp.Query) is None:
            require_scalar(condition)
            block.filter(condition)
        else:
            left.append(condition)
    return left


def _unnest(lateral: exp.Lateral, block: Block, outer: bool) -> None:
    """Add LATERAL VIEW or LATERAL of a generator."""
    call = lateral.this
    alias = lateral.args.get("alias")
    if alias is None or alias.this is None or not is_generator(call):
        raise NotIncremental("this form of LATERAL has no incremental rule yet")
    names = [column.name for column in alias.columns]
    read = [name for table, name in block.required if table == alias.name]
    if not set(read) <= set(names):
        raise NotIncremental("LATERAL without names for its columns has no incremental rule yet")
    columns = f" AS {', '.join(map(quote, names))}" if names else ""
    block.laterals.append(f"LATERAL VIEW {'OUTER ' if outer else ''}{block.text(call)} {quote(alias.name)}{columns}")
    block.add_columns(alias.name, names)
