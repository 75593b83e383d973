"""A pass that derives the join graph of every block that joins or filters.

With the join graph an operator looks rows up instead of reading everything, and evaluates plain conditions itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from airflow_pipelines.sql.plan.ir.blocks import map_blocks
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.join_graph import Conjunct, Equality, JoinGraph, SourceColumn
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.plan.ir.lookup import RelationColumn
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.properties.base_columns import base_column, columns_read
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure

_PLAIN_TESTS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is)


def derive_join_graphs(stage: Stage, _markers: Mapping[str, Marker]) -> Stage:
    """Add the join graphs of a stage's blocks to the blocks.

    :param stage: a stage that no pass changes any more
    """
    return replace(stage, node=map_blocks(stage.node, _with_join_graph))


def _with_join_graph(node: Select) -> Select:
    return replace(node, join_graph=join_graph(node)) if len(node.sources) > 1 or node.where else node


def join_graph(node: Select) -> JoinGraph:
    """Return the join graph of a block, without the parts that cannot be parsed.

    :param node: the block
    """
    try:
        where = node.where.parse() if node.where else None
    except SyntaxFailure:
        return JoinGraph()
    aliases = frozenset(source.alias for source in node.sources)
    equalities, conjuncts, is_complete = [], [], True
    for part in _conjuncts(where) if where is not None else ():
        read = _sources(part, aliases)
        if read is None:
            is_complete = False
            continue
        columns = _columns_of(part)
        conjuncts.append(Conjunct(Expression(part.sql(dialect=DIALECT)), read, _is_plain(part), columns, part.copy()))
        equality = _equality(node, part, aliases) if isinstance(part, exp.EQ) else None
        equalities += [equality] if equality is not None else []
    items = _item_columns(node, aliases)
    by_source = None if items is None or not is_complete else _by_source(aliases, [*items, *(part.columns for part in conjuncts)])
    return JoinGraph(tuple(equalities), tuple(conjuncts), by_source, _reads(node), items, is_complete)


def _equality(node: Select, part: exp.EQ, aliases: frozenset[str]) -> Equality | None:
    """Return the equality between two sources that a comparison expresses, or None if it expresses none."""
    left, right = _sources(part.this, aliases), _sources(part.expression, aliases)
    if left is None or right is None or len(left) != 1 or len(right) != 1 or left == right:
        return None
    texts = (Expression(part.this.sql(dialect=DIALECT)), Expression(part.expression.sql(dialect=DIALECT)))
    columns = (_base_column(node, part.this), _base_column(node, part.expression))
    return Equality((next(iter(left)), next(iter(right))), texts, columns)


def _base_column(node: Select, tree: exp.Expr) -> RelationColumn | None:
    column = tree.unnest()
    if not isinstance(column, exp.Column) or len(column.parts) != 2:
        return None
    return next((base_column(source.node, column.name) for source in node.sources if source.alias == column.table), None)


def _reads(node: Select) -> dict[str, frozenset[str] | None]:
    """Return the columns of the one relation below each source that the source may read."""
    single = {source.alias: (source.node, next(iter(source.node.reads))) for source in node.sources if len(source.node.reads) == 1}
    return {alias: columns_read(inner, relation) for alias, (inner, relation) in single.items()}


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    if isinstance(tree, exp.Or):
        # A conjunct of both alternatives follows from the OR.
        other = set(_conjuncts(tree.expression))
        return [tree, *(part for part in _conjuncts(tree.this) if part in other)]
    return [tree]


def _sources(tree: exp.Expr, aliases: frozenset[str]) -> frozenset[str] | None:
    """Return the sources that an expression reads, or None if one of its columns may belong to any source."""
    if tree.find(exp.Query, exp.Star, exp.Lambda):
        return None
    sources = {column.parts[0].name if len(column.parts) > 1 else "" for column in tree.find_all(exp.Column)}
    return frozenset(sources) if sources <= aliases else None


def _is_plain(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Not):
        return _is_plain(tree.this.unnest())
    if isinstance(tree, exp.Column):
        return True
    if not isinstance(tree, _PLAIN_TESTS):
        return False
    parts = [part for value in tree.args.values() for part in (value if isinstance(value, list) else [value])]
    return all(_is_value(part.unnest()) for part in parts if isinstance(part, exp.Expr))


def _is_value(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Neg):
        return _is_value(tree.this.unnest())
    if isinstance(tree, exp.Cast):
        return isinstance(tree.this.unnest(), exp.Literal)
    return isinstance(tree, exp.Column | exp.Literal | exp.Boolean | exp.Null)


def _columns_of(tree: exp.Expr) -> frozenset[SourceColumn]:
    """Return the sources' columns that an expression reads."""
    return frozenset((column.parts[0].name, column.parts[1].name) for column in tree.find_all(exp.Column))


def _item_columns(node: Select, aliases: frozenset[str]) -> tuple[frozenset[SourceColumn], ...] | None:
    """Return the columns that each item of a block reads, or None if that is not certain."""
    if node.laterals:
        return None
    trees = [item.text.tree for item in node.items]
    known = [tree for tree in trees if tree is not None]
    if len(known) < len(trees) or any(_sources(tree, aliases) is None for tree in known):
        return None
    return tuple(_columns_of(tree) for tree in known)


def _by_source(aliases: frozenset[str], columns: Iterable[frozenset[SourceColumn]]) -> Mapping[str, frozenset[str]]:
    """Group columns of sources by source."""
    read = frozenset().union(*columns)
    return {alias: frozenset(name for source, name in read if source == alias) for alias in aliases}
