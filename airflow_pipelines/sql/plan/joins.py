"""FROM clauses: inner joins and unnesting grow a block, outer, semi and anti joins become stages keyed by their equalities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from airflow_pipelines.sql.identifiers import quote
from airflow_pipelines.sql.plan.blocks import Block, Place, bare, column, common_type, is_key_type, key_types
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    conjuncts,
    is_generator,
    kind,
    only,
    require_scalar,
    sql,
    substituted,
)
from airflow_pipelines.sql.plan.nodes import Full, KeyedSource, Select, Shape
from airflow_pipelines.sql.plan.scope import Scope

_JOIN_PARTS = frozenset({"this", "on", "kind", "side", "method", "using"})


def plan_from(tree: exp.Select, block: Block, scope: Scope) -> list[exp.Expr]:
    """Add a SELECT's FROM clause to a block; gives the conjuncts of its WHERE clause that are still to be applied.

    Conditions on the rows that an outer join keeps are applied before it, which makes what is joined, and kept, smaller.
    """
    waiting = list(conjuncts(tree.args["where"].this)) if tree.args.get("where") is not None else []
    clause = tree.args.get("from_")
    if clause is not None:
        _entry(clause.this, block, scope)
        for join in tree.args.get("joins") or []:
            waiting = _join(join, block, scope, waiting)
        for lateral in tree.args.get("laterals") or []:
            _unnest(lateral, block, outer=bool(lateral.args.get("outer")))
    return waiting


def _entry(source: exp.Expr, block: Block, scope: Scope) -> None:
    """Add one entry of a FROM clause."""
    for join in source.args.get("joins") or []:
        if (join.args.get("side") or join.args.get("kind") or "INNER").upper() not in {"INNER", "CROSS"}:
            raise NotIncremental("an outer join in parentheses has no incremental rule yet")
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
        only(source, {"this"})
        _entry(source.this, block, scope)
    elif isinstance(source, exp.Subquery):
        only(source, {"this", "alias"})
        block.add(_alias(source), scope.linear(source.this))
    elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        only(source, {"this", "alias", "joins"})
        block.add(_alias(source), scope.named(source.name))
    elif isinstance(source, exp.Lateral):
        _unnest(source, block, outer=False)
    elif isinstance(source, exp.Values):
        only(source, {"expressions", "alias"})
        columns = ", ".join(quote(found.name) for found in source.args["alias"].columns)
        rows = exp.Values(expressions=[row.copy() for row in source.expressions])
        query = f"SELECT * FROM {sql(rows)} AS v({columns})"
        block.add(source.alias, block.builder.stage(Full(query, (), "a constant")))
    else:
        raise NotIncremental(f"{kind(source)} in FROM has no incremental rule yet")
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
    only(join, _JOIN_PARTS)
    if join.args.get("using") or (join.args.get("method") or "").upper() not in {"", "NATURAL"}:
        raise NotIncremental(f"{join.args.get('method') or 'USING'} in a join has no incremental rule yet")
    side, sort = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    condition = join.args.get("on")
    if condition is not None:
        require_scalar(condition)
    if isinstance(join.this, exp.Lateral) and side == "LEFT" and (condition is None or sql(condition) == "TRUE"):
        _unnest(join.this, block, outer=True)
        return waiting
    if side in {"", "INNER"} and sort in {"", "INNER", "CROSS"}:
        _entry(join.this, block, scope)
        if condition is not None:
            block.filter(condition)
        return waiting
    if isinstance(join.this, exp.Lateral):
        raise NotIncremental("an outer join of LATERAL has no incremental rule yet")
    if side in {"", "LEFT"}:
        waiting = _early(block, waiting)
    right = Block(block.builder, block.wanted)
    _entry(join.this, right, scope)
    _outer_join(block, right, sort if sort in {"SEMI", "ANTI"} else side, condition)
    return waiting


def _early(block: Block, waiting: list[exp.Expr]) -> list[exp.Expr]:
    """Apply the conditions that only read what is there already; gives the others."""
    left = []
    for condition in waiting:
        tables = {found.table for found in condition.find_all(exp.Column)}
        if tables <= block.aliases and condition.find(exp.Query) is None:
            require_scalar(condition)
            block.filter(condition)
        else:
            left.append(condition)
    return left


def _outer_join(left: Block, right: Block, sort: str, condition: exp.Expr | None) -> None:
    """Make ``left`` the join of both; ``sort`` is LEFT, RIGHT, FULL, SEMI or ANTI."""
    builder = left.builder
    (left_node, left_names), (right_node, right_names) = left.packed(), right.packed()
    one, other = builder.name("l"), builder.name("r")
    trees: dict[exp.Expr, exp.Expr] = {column(place): column((one, name)) for place, name in left_names.items()}
    trees |= {column(place): column((other, name)) for place, name in right_names.items()}
    pairs = equal_pairs(list(conjuncts(condition)), (left_node, left_names), (right_node, right_names), left)
    kept: dict[Place, Place] = {place: (one, name) for place, name in left_names.items()}
    if sort not in {"SEMI", "ANTI"}:
        kept |= {place: (other, name) for place, name in right_names.items()}
    names = {place: f"c{at}" for at, place in enumerate(kept)}
    items = [f"{quote(alias)}.{quote(name)} AS {names[place]}" for place, (alias, name) in kept.items()]
    on = f" ON {sql(substituted(condition, trees))}" if condition is not None else ""
    query = f"SELECT {', '.join(items) or '1 AS c0'} FROM {quote(one)} {_join_words(sort)} {quote(other)}{on}"
    pieces = (
        KeyedSource(one, left_node, tuple(pair[0] for pair in pairs)),
        KeyedSource(other, right_node, tuple(pair[1] for pair in pairs)),
    )
    left.become_keyed(pieces, query, names, Shape.JOIN)


def _join_words(sort: str) -> str:
    return f"LEFT {sort} JOIN" if sort in {"SEMI", "ANTI"} else f"{sort} JOIN"


Packed = tuple[Select, Mapping[Place, str]]
"""A block as one node, and the names of the query's columns in it."""


def equal_pairs(conditions: Sequence[exp.Expr], left: Packed, right: Packed, block: Block) -> list[tuple[str, str]]:
    """The equalities between two packed blocks among some conjuncts, as texts over the columns of each.

    Pairs whose values have no common type to be keys of are left out: as a condition they hold all the same.
    """
    pairs = []
    for condition in conditions:
        inner = condition.unnest()
        if not isinstance(inner, exp.EQ | exp.NullSafeEQ):
            continue
        sides = _sides(inner.left, inner.right, left[1], right[1])
        if sides is None or is_generator(inner):
            continue
        try:
            kinds = key_types(block.builder, left[0], [sides[0]]) + key_types(block.builder, right[0], [sides[1]])
            if is_key_type(common_type(block.builder, kinds)):
                pairs.append(sides)
        except NotIncremental:
            continue
    return pairs


def _sides(one: exp.Expr, other: exp.Expr, left: Mapping[Place, str], right: Mapping[Place, str]) -> tuple[str, str] | None:
    """Both sides of an equality as texts, the left block's first; None when it does not compare the two blocks."""
    for first, second in ((one, other), (other, one)):
        if _reads_only(first, left) and _reads_only(second, right):
            return _inside(first, left), _inside(second, right)
    return None


def _reads_only(tree: exp.Expr, names: Mapping[Place, str]) -> bool:
    found = [(node.table, node.name) for node in tree.find_all(exp.Column)]
    return bool(found) and all(place in names for place in found) and tree.find(exp.Query) is None


def _inside(tree: exp.Expr, names: Mapping[Place, str]) -> str:
    return bare(substituted(tree, {column(place): exp.column(name, quoted=True) for place, name in names.items()}))


def _unnest(lateral: exp.Lateral, block: Block, outer: bool) -> None:
    """Add LATERAL VIEW or LATERAL of a generator."""
    call = lateral.this
    if isinstance(call, exp.Query | exp.Subquery):
        raise NotIncremental("a lateral subquery has no incremental rule yet")
    alias = lateral.args.get("alias")
    if alias is None or alias.this is None or not is_generator(call):
        raise NotIncremental("this form of LATERAL has no incremental rule yet")
    names = [found.name for found in alias.columns]
    read = [name for table, name in block.wanted if table == alias.name]
    if not set(read) <= set(names):
        raise NotIncremental("LATERAL without names for its columns has no incremental rule yet")
    columns = f" AS {', '.join(map(quote, names))}" if names else ""
    block.laterals.append(f"LATERAL VIEW {'OUTER ' if outer else ''}{block.text(call)} {quote(alias.name)}{columns}")
    block.note(alias.name, names)
