"""Derives the join graph of every block that joins or filters.

By it an operator looks rows up instead of reading everything, and evaluates plain conditions itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from sqlglot import exp

from airflow_pipelines.sql.plan.expression_trees import parse_condition, parse_expression
from airflow_pipelines.sql.plan.ir.blocks import map_blocks
from airflow_pipelines.sql.plan.ir.join_graph import Comparison, Conjunct, Equality, JoinGraph, Operator, SourceColumn
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.plan.ir.lookup import RelationColumn
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.properties.base_columns import base_column, columns_read
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure

_OPERATORS: Mapping[type[exp.Expr], Operator] = {
    exp.EQ: Operator.EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
}
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 #_.,:;/-]*")
_PLAIN_TESTS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is)


def derive_join_graphs(stage: Stage, _markers: Mapping[str, Marker]) -> Stage:
    """Put the join graphs of a stage's blocks into the blocks.

    :param stage: a stage that no pass changes any more
    """
    return replace(stage, node=map_blocks(stage.node, _with_join_graph))


def _with_join_graph(node: Select) -> Select:
    return replace(node, join_graph=join_graph(node)) if len(node.sources) > 1 or node.where else node


def join_graph(node: Select) -> JoinGraph:
    """The join graph of a block; what cannot be parsed is left out.

    :param node: the block
    """
    try:
        where = parse_condition(node.where) if node.where else None
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
        conjuncts.append(Conjunct(part.sql(dialect=DIALECT), read, _is_plain(part), tuple(_comparisons(part) or ()), columns))
        equality = _equality(node, part, aliases) if isinstance(part, exp.EQ) else None
        equalities += [equality] if equality is not None else []
    items = _item_columns(node, aliases)
    by_source = None if items is None or not is_complete else _by_source(aliases, [*items, *(part.columns for part in conjuncts)])
    return JoinGraph(tuple(equalities), tuple(conjuncts), by_source, _reads(node), items, is_complete)


def _equality(node: Select, part: exp.EQ, aliases: frozenset[str]) -> Equality | None:
    """The equality of two sources, if a comparison is one."""
    left, right = _sources(part.this, aliases), _sources(part.expression, aliases)
    if left is None or right is None or len(left) != 1 or len(right) != 1 or left == right:
        return None
    texts = (part.this.sql(dialect=DIALECT), part.expression.sql(dialect=DIALECT))
    columns = (_base_column(node, part.this), _base_column(node, part.expression))
    return Equality((next(iter(left)), next(iter(right))), texts, columns)


def _base_column(node: Select, tree: exp.Expr) -> RelationColumn | None:
    column = tree.unnest()
    if not isinstance(column, exp.Column) or len(column.parts) != 2:
        return None
    return next((base_column(source.node, column.name) for source in node.sources if source.alias == column.table), None)


def _reads(node: Select) -> dict[str, frozenset[str] | None]:
    """The columns of the one relation below each source that the source may read."""
    single = {source.alias: (source.node, next(iter(source.node.reads))) for source in node.sources if len(source.node.reads) == 1}
    return {alias: columns_read(inner, relation) for alias, (inner, relation) in single.items()}


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    if isinstance(tree, exp.Or):
        # What every alternative demands is demanded.
        other = set(_conjuncts(tree.expression))
        return [tree, *(part for part in _conjuncts(tree.this) if part in other)]
    return [tree]


def _sources(tree: exp.Expr, aliases: frozenset[str]) -> frozenset[str] | None:
    """The sources that an expression reads; None when one of its columns may be of any."""
    if tree.find(exp.Query, exp.Star, exp.Lambda):
        return None
    found = {column.parts[0].name if len(column.parts) > 1 else "" for column in tree.find_all(exp.Column)}
    return frozenset(found) if found <= aliases else None


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


def _comparisons(tree: exp.Expr) -> list[Comparison] | None:
    """The comparisons that a condition consists of; None when it is anything else."""
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low, high = exp.GTE(this=tree.this, expression=tree.args["low"]), exp.LTE(this=tree.this, expression=tree.args["high"])
        found = [_comparison(low), _comparison(high)]
        return None if None in found else [comparison for comparison in found if comparison is not None]
    one = _comparison(tree)
    return None if one is None else [one]


def _comparison(tree: exp.Expr) -> Comparison | None:
    if isinstance(tree, exp.In):
        others = [name for name, given in tree.args.items() if given and name not in {"this", "expressions"}]
        return None if others else _one_of(tree.this, tree.expressions)
    operator = _OPERATORS.get(type(tree))
    if operator is None:
        return None
    left, right = _column(tree.this), _column(tree.expression) or _constant(tree.expression)
    if operator is Operator.EQUAL and _text(tree.expression) is not None:
        return _one_of(tree.this, [tree.expression])
    return None if left is None or right is None else Comparison(left, operator, right)


def _one_of(tree: exp.Expr, values: Sequence[exp.Expr]) -> Comparison | None:
    """A column that is one of some texts, or of some whole numbers."""
    column = _column(tree)
    if column is None or not values:
        return None
    texts = [text for text in map(_text, values) if text is not None]
    if len(texts) == len(values):
        return Comparison(column, Operator.ONE_OF, frozenset(texts))
    numbers = [number for number in map(_whole_number, values) if number is not None]
    return Comparison(column, Operator.ONE_OF, frozenset(numbers)) if len(numbers) == len(values) else None


def _column(tree: exp.Expr) -> SourceColumn | None:
    tree = tree.unnest()
    return (tree.table, tree.name) if isinstance(tree, exp.Column) and len(tree.parts) == 2 else None


def _constant(tree: exp.Expr) -> int | Decimal | date | None:
    for constant in (_whole_number(tree), _decimal(tree), _day(tree)):
        if constant is not None:
            return constant
    return None


def _whole_number(tree: exp.Expr) -> int | None:
    tree = tree.unnest()
    return int(tree.this) if isinstance(tree, exp.Literal) and tree.is_int else None


def _decimal(tree: exp.Expr) -> Decimal | None:
    tree = tree.unnest()
    written = str(tree.this) if isinstance(tree, exp.Literal) and not tree.is_string else ""
    return Decimal(written) if _DECIMAL.fullmatch(written) else None


def _day(tree: exp.Expr) -> date | None:
    tree = tree.unnest()
    if not isinstance(tree, exp.Cast) or isinstance(tree, exp.TryCast) or not tree.is_type(exp.DType.DATE):
        return None
    written = tree.this.unnest()
    if not isinstance(written, exp.Literal) or not written.is_string or not _DAY.fullmatch(written.this):
        return None
    try:
        return date.fromisoformat(written.this)
    except ValueError:
        return None


def _text(tree: exp.Expr) -> str | None:
    """A text that says the same in each dialect."""
    tree = tree.unnest()
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string and _PLAIN_TEXT.fullmatch(tree.this) else None


def _columns_of(tree: exp.Expr) -> frozenset[SourceColumn]:
    """The columns that an expression reads of sources."""
    return frozenset((column.parts[0].name, column.parts[1].name) for column in tree.find_all(exp.Column))


def _item_columns(node: Select, aliases: frozenset[str]) -> tuple[frozenset[SourceColumn], ...] | None:
    """The columns that each item of a block reads; None when that is not sure."""
    if node.laterals:
        return None
    try:
        trees = [parse_expression(item.text) for item in node.items]
    except SyntaxFailure:
        return None
    if any(_sources(tree, aliases) is None for tree in trees):
        return None
    return tuple(_columns_of(tree) for tree in trees)


def _by_source(aliases: frozenset[str], columns: Iterable[frozenset[SourceColumn]]) -> Mapping[str, frozenset[str]]:
    """Columns of sources as the names of each source's columns."""
    read = frozenset().union(*columns)
    return {alias: frozenset(name for source, name in read if source == alias) for alias in aliases}
