"""The join graph of a block: which conditions of its WHERE read which sources, and which columns they make equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from airflow_pipelines.sql.plan.expression_trees import parse_condition, parse_expression
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure

_PLAIN_TESTS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is)


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct ``texts[0] = texts[1]`` each side of which reads one source, ``aliases[0]`` and ``aliases[1]``."""

    aliases: tuple[str, str]
    texts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition of the WHERE: its text and the sources it reads.

    ``plain``: it compares one column with literals, so that it may be asked early, of rows that another condition would keep out.
    """

    text: str
    aliases: frozenset[str]
    plain: bool


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """A block's conditions, as far as it is sure which sources they read.

    ``columns``: which columns of each source the whole block reads; None when that is not sure.
    """

    equalities: tuple[Equality, ...]
    conjuncts: tuple[Conjunct, ...]
    columns: Mapping[str, frozenset[str]] | None


@lru_cache(maxsize=1024)
def join_graph(node: Select) -> JoinGraph:
    """Read a block's conditions; what cannot be read is left out."""
    aliases = frozenset(source.alias for source in node.sources)
    equalities, conjuncts = [], []
    try:
        where = parse_condition(node.where) if node.where else None
    except SyntaxFailure:
        return JoinGraph((), (), None)
    for part in _conjuncts(where) if where is not None else ():
        read = _sources(part, aliases)
        if read is None:
            continue
        text = part.sql(dialect=DIALECT)
        conjuncts.append(Conjunct(text, read, _is_plain(part)))
        if isinstance(part, exp.EQ):
            one, other = _sources(part.this, aliases), _sources(part.expression, aliases)
            if one is not None and other is not None and len(one) == len(other) == 1 and one != other:
                texts = (part.this.sql(dialect=DIALECT), part.expression.sql(dialect=DIALECT))
                equalities.append(Equality((next(iter(one)), next(iter(other))), texts))
    return JoinGraph(tuple(equalities), tuple(conjuncts), _columns(node, aliases, where))


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


def _columns(node: Select, aliases: frozenset[str], where: exp.Expr | None) -> Mapping[str, frozenset[str]] | None:
    if node.laterals:
        return None
    try:
        trees = [*(parse_expression(item.text) for item in node.items), *([where] if where is not None else [])]
    except SyntaxFailure:
        return None
    found: dict[str, set[str]] = {alias: set() for alias in aliases}
    for tree in trees:
        if tree.find(exp.Query, exp.Star, exp.Lambda):
            return None
        for column in tree.find_all(exp.Column):
            if len(column.parts) < 2 or column.parts[0].name not in aliases:
                return None
            found[column.parts[0].name].add(column.parts[1].name)
    return {alias: frozenset(names) for alias, names in found.items()}
