"""Blocks: the FROM and WHERE of a SELECT while they are planned, as sources, conditions and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, sql
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, QueryExpression, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Select, Source
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql
from airflow_pipelines.sql.values.total_order import has_order

_COMPARED: Final = ("bigint", "double", "timestamp")
"""The types that Spark may choose to compare values of two other types."""
ColumnRef = tuple[str, str]
"""A column: the name of its source and its own name."""


@dataclass(slots=True)
class Block:
    """An inner join of sources with conditions, which grows clause by clause.

    Columns keep the query's names; ``current_columns`` maps these to the present sources. A source can be replaced by one that
    gives the same columns under other names, for example when an outer join becomes a relation of its own.

    :param required: all columns that the query reads. Names of sources are unique over the whole query.
    """

    builder: Builder
    required: frozenset[ColumnRef]
    sources: list[Source] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    laterals: list[str] = field(default_factory=list)
    current_columns: dict[ColumnRef, ColumnRef] = field(default_factory=dict)

    @property
    def aliases(self) -> frozenset[str]:
        """The query's names of the sources added so far."""
        return frozenset(alias for alias, _ in self.current_columns)

    def add(self, alias: str, node: Linear) -> None:
        """Join one more source."""
        self.sources.append(Source(alias, node))
        self.add_columns(alias, node.columns)

    def add_columns(self, alias: str, columns: Iterable[str]) -> None:
        """Make columns of a source readable under the query's names.

        :param alias: the query's name of the source
        :param columns: the names of its columns; those that the query does not read are left out
        """
        self.current_columns |= {(alias, name): (alias, name) for name in columns if (alias, name) in self.required}

    def current(self, tree: exp.Expr) -> exp.Expr:
        """Return a copy of a tree of the query in terms of the present sources."""

        def move_column(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table:
                place = self.current_columns.get((node.table, node.name))
                if place is not None:
                    return column(place)
            return node

        return tree.copy().transform(move_column, copy=False)

    def text(self, tree: exp.Expr) -> str:
        """Return a tree of the query as Spark SQL over the present sources."""
        return sql(self.current(tree))

    def filter(self, tree: exp.Expr) -> None:
        """Keep only the rows for which a condition holds."""
        self.conditions.append(self.text(tree))

    def select(self, outputs: Sequence[tuple[str, exp.Expr]]) -> Select:
        """Return the node that computes these named expressions of the query."""
        items = tuple(Item(name, Expression(self.text(tree))) for name, tree in outputs)
        where = WhereClause(" AND ".join(f"({condition})" for condition in self.conditions)) if self.conditions else None
        return Select(tuple(self.sources), items, where, tuple(map(LateralView, self.laterals)))

    def as_node(self) -> tuple[Select, dict[ColumnRef, str]]:
        """Return the block as one node with all readable columns, and their names in it; the block does not change."""
        names = {place: f"c{at}" for at, place in enumerate(self.current_columns)}
        outputs = [(name, exp.column(place[1], table=place[0], quoted=True)) for place, name in names.items()]
        # A node without columns could not be a relation.
        return self.select(outputs or [("c0", exp.Literal.number(1))]), names

    def replace_by(self, node: Linear, names: Mapping[ColumnRef, str]) -> None:
        """Replace all sources by one source with the same rows.

        :param node: the source
        :param names: the query's columns and their names in it
        """
        alias = self.builder.name("b")
        self.sources = [Source(alias, node)]
        self.conditions, self.laterals = [], []
        self.current_columns = {place: (alias, name) for place, name in names.items()}

    def replace_by_keyed(
        self,
        pieces: Sequence[KeyedSource],
        query: QueryExpression,
        names: Mapping[ColumnRef, str],
        shape: Shape,
        reason: Reason | None = None,
    ) -> None:
        """Replace all sources by an :class:`AffectedKeys` stage.

        :param pieces: the sources that ``query`` reads by their aliases
        :param query: a query that gives the columns ``names``, in that order
        :param names: the query's columns and their names in the stage
        :param shape: the kind of the stage
        :param reason: the reason why changes of some source affect all keys
        """
        own = [key_types(self.builder, piece.node, piece.keys) if piece.keys else () for piece in pieces]
        kinds = self._key_types([kinds for kinds in own if kinds])
        keyed = tuple(
            KeyedSource(piece.alias, self.builder.rereadable(piece.node), tuple(map(cast_key, piece.keys, given, kinds)))
            for piece, given in zip(pieces, own, strict=True)
        )
        node = AffectedKeys(keyed, query, tuple(names.values()), kinds, shape, reason=reason)
        self.replace_by(self.builder.stage(node), names)

    def _key_types(self, kinds: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Return the common types in which keys are compared, given their types in each source."""
        if not kinds:
            return ()
        if len({len(kind) for kind in kinds}) > 1:
            raise NotIncremental("the sources' keys do not match")
        return tuple(common_type(self.builder, [kind[at] for kind in kinds]) for at in range(len(kinds[0])))


def column(place: ColumnRef) -> exp.Column:
    """Return the tree of a column."""
    return exp.column(place[1], table=place[0], quoted=True)


def key_types(builder: Builder, node: Linear, keys: Sequence[Expression]) -> tuple[str, ...]:
    """Return the types of key expressions over a node's columns.

    :param builder: the plan
    :param node: the node
    :param keys: the expressions over its columns
    """
    items = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
    return tuple(kind for _, kind in builder.types(f"SELECT {items} FROM ({linear_to_sql(node)})"))


def common_type(builder: Builder, kinds: Sequence[str]) -> str:
    """Return the type in which Spark compares values of several types.

    :param builder: the plan
    :param kinds: Spark types
    :raises NotIncremental: if no such type can be determined
    """
    if all(is_number(kind) for kind in kinds) and len(set(kinds)) > 1:
        casts = ", ".join(f"CAST(NULL AS {kind})" for kind in kinds)
        return builder.types(f"SELECT COALESCE({casts}) AS k")[0][1]
    return reduce(lambda one, other: one if one == other else _compared_type(builder, one, other), kinds)


def _compared_type(builder: Builder, one: str, other: str) -> str:
    """Return the type to which Spark casts both sides of an equality: explicit casts to it leave Spark's plan the same."""
    pair = builder.name("t")
    builder.analyzer.declare({pair: (("a", one), ("b", other))})
    compared = f"SELECT a = b AS e FROM {quote(pair)}"
    for kind in dict.fromkeys((one, other, *_COMPARED)):
        if builder.analyzer.same_plan(compared, f"SELECT CAST(a AS {kind}) = CAST(b AS {kind}) AS e FROM {quote(pair)}"):
            return kind
    raise NotIncremental(f"keys of the types {one} and {other} have no common key")


def cast_key(key: Expression, own: str, kind: str) -> Expression:
    """Cast a key to the type in which it is compared.

    :param key: the key
    :param own: the type of the key
    :param kind: the type to cast to
    """
    # A text that cannot be cast equals nothing: TRY_CAST groups it with NULL, and the query compares it once more. Spark itself
    # may never compare it, because of the query's other conditions, so that the cast must not fail.
    return Expression(f"{'TRY_CAST' if own == 'string' != kind else 'CAST'}({key} AS {kind})")


def is_key_type(kind: str) -> bool:
    """Return True if values of a type can be grouped and compared for equality."""
    return has_order(kind)


def is_number(kind: str) -> bool:
    """Return True if a type is numeric."""
    return spark_type(kind).is_number


def without_source(tree: exp.Expr) -> Expression:
    """Return an expression over one source's columns, without the source's name."""
    return Expression(sql(tree.copy().transform(_bare_column, copy=False)))


def _bare_column(node: exp.Expr) -> exp.Expr:
    return exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node
