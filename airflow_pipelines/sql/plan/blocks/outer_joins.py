"""Plans of outer, semi and anti joins of two blocks, as stages keyed by the equalities in the join condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.query_blocks import (
    Block,
    ColumnRef,
    column,
    common_type,
    is_key_type,
    key_types,
    without_source,
)
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, conjuncts, is_generator, sql, substitute
from airflow_pipelines.sql.plan.ir.affected_keys import KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import Expression, QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Linear

Packed = tuple[Linear, Mapping[ColumnRef, str]]
"""One side of a join as a node, and the names of the query's columns in it."""
_NO_EQUALITY: Final = "no equality joins the two sides"


def outer_join(left: Block, right: Block, sort: str, condition: exp.Expr | None, written: exp.Expr) -> None:
    """Replace a block by its join with another one.

    :param left: the block
    :param right: the other block
    :param sort: LEFT, RIGHT, FULL, SEMI or ANTI
    :param condition: the join's condition in the query's columns, if it has one
    :param written: the part of the query that contains the join
    """
    builder = left.builder
    (left_node, left_names), (right_node, right_names) = left.as_node(), right.as_node()
    one, other = builder.name("l"), builder.name("r")
    trees: dict[exp.Expr, exp.Expr] = {column(place): column((one, name)) for place, name in left_names.items()}
    trees |= {column(place): column((other, name)) for place, name in right_names.items()}
    pairs = equal_pairs(list(conjuncts(condition)), (left_node, left_names), (right_node, right_names), left)
    kept: dict[ColumnRef, ColumnRef] = {place: (one, name) for place, name in left_names.items()}
    if sort not in {"SEMI", "ANTI"}:
        kept |= {place: (other, name) for place, name in right_names.items()}
    names = {place: f"c{at}" for at, place in enumerate(kept)}
    items = [f"{quote(alias)}.{quote(name)} AS {names[place]}" for place, (alias, name) in kept.items()]
    on = f" ON {sql(substitute(condition, trees))}" if condition is not None else ""
    query = f"SELECT {', '.join(items) or '1 AS c0'} FROM {quote(one)} {_join_words(sort)} {quote(other)}{on}"
    keys = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    reason = None
    if not pairs:
        keys, message = _keys_of_preserved(builder, sort, condition, (left_node, left_names), (right_node, right_names))
        reason = builder.places.reason(message, condition if condition is not None else written)
    pieces = (KeyedSource(one, left_node, keys[0]), KeyedSource(other, right_node, keys[1]))
    left.replace_by_keyed(pieces, QueryExpression(query), names, Shape.JOIN, reason)


def _keys_of_preserved(
    builder: Builder, sort: str, condition: exp.Expr | None, left: Packed, right: Packed
) -> tuple[tuple[tuple[Expression, ...], tuple[Expression, ...]], str]:
    """Return the keys of both sides of a join that has no equality, and the reason why changes may affect all rows.

    Two rows of the preserved side have the same matches if they agree in all columns that the condition reads. So a change of that
    side affects no other rows of it; a change of the other side may affect all.
    """
    if sort == "FULL":
        return ((), ()), f"{_NO_EQUALITY}, so that every row may match every other"
    node, names = right if sort == "RIGHT" else left
    read = list(condition.find_all(exp.Column)) if condition is not None else []
    keys = tuple(dict.fromkeys(names[place] for part in read if (place := (part.table, part.name)) in names)) or node.columns
    columns = tuple(map(Expression.column, keys))
    if not all(map(is_key_type, key_types(builder, node, columns))):
        return ((), ()), f"{_NO_EQUALITY}, and rows cannot be found by what its condition reads"
    kept, other = ("right", "left") if sort == "RIGHT" else ("left", "right")
    return (
        ((), columns) if sort == "RIGHT" else (columns, ())
    ), f"{_NO_EQUALITY}: a row on the {other} may match all on the {kept}"


def _join_words(sort: str) -> str:
    return f"LEFT {sort} JOIN" if sort in {"SEMI", "ANTI"} else f"{sort} JOIN"


def equal_pairs(conditions: Sequence[exp.Expr], left: Packed, right: Packed, block: Block) -> list[tuple[Expression, Expression]]:
    """Return the equalities among some conjuncts that compare the two sides of a join.

    Pairs without a common key type are left out; the join's condition still has them.

    :param conditions: the conjuncts
    :param left: the left side
    :param right: the right side
    :param block: the block that gives the analyzer
    :returns: both sides of each equality, over the columns of the left and of the right node
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


def _sides(
    one: exp.Expr, other: exp.Expr, left: Mapping[ColumnRef, str], right: Mapping[ColumnRef, str]
) -> tuple[Expression, Expression] | None:
    """Return both sides of an equality, the left block's first, or None if it does not compare the two blocks."""
    for first, second in ((one, other), (other, one)):
        if _reads_only(first, left) and _reads_only(second, right):
            return _inside(first, left), _inside(second, right)
    return None


def _reads_only(tree: exp.Expr, names: Mapping[ColumnRef, str]) -> bool:
    places = [(node.table, node.name) for node in tree.find_all(exp.Column)]
    return bool(places) and all(place in names for place in places) and tree.find(exp.Query) is None


def _inside(tree: exp.Expr, names: Mapping[ColumnRef, str]) -> Expression:
    return without_source(substitute(tree, {column(place): exp.column(name, quoted=True) for place, name in names.items()}))
