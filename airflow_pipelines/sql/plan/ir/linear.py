"""Linear nodes: their delta follows from their sources' deltas without a state of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from airflow_pipelines.sql.plan.ir.description import DERIVED, formerly
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.join_graph import JoinGraph
from airflow_pipelines.sql.plan.ir.node import ColumnTypes


@dataclass(frozen=True, slots=True)
class Scan:
    """A relation, unchanged."""

    relation: str
    columns: tuple[str, ...]

    strategy: ClassVar[str] = "linear"
    starts_with_rows: ClassVar[bool] = False
    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = True

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset({self.relation})

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset()

    def renamed(self, names: Sequence[str], /) -> Select:
        """See :class:`Node`."""
        columns = zip(names, self.columns, strict=True)
        return Select((Source("s", self),), tuple(Item(name, Expression.column("s", column)) for name, column in columns))


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of a FROM clause."""

    alias: str
    node: Linear


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a SELECT list: its name and its expression."""

    name: str
    text: Expression


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """A comparison in a WHERE with a marker, if the block uses the marker in no other way.

    When the marker moves, only rows whose ``text`` (over the other sources) lies between its old and its new value are inserted or
    retracted.

    :param column: the relation and column that ``text`` is, or None if it is an expression
    """

    layout_name: ClassVar[str] = "Crossing"

    source: int
    text: Expression
    column: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A block of filter, projection, inner or cross join and unnesting. A row's weight is the product of its sources' weights.

    :param laterals: the ``LATERAL VIEW`` clauses after the sources, in order; each may read the sources and the clauses before it
    :param temporal_filters: the temporal filters of sources that are markers
    """

    sources: tuple[Source, ...]
    items: tuple[Item, ...]
    where: WhereClause | None = None
    laterals: tuple[LateralView, ...] = ()
    temporal_filters: tuple[TemporalFilter, ...] = field(default=(), metadata=formerly("crossings"))
    join_graph: JoinGraph = field(default_factory=JoinGraph, compare=False, repr=False, metadata=DERIVED)
    """The join graph, derived by a pass over finished stages. Without it, an operator knows no equality to look rows up by."""
    # Compared, because a block that is equal otherwise may read other rows.
    where_holds: bool = field(default=False, metadata=DERIVED)
    """True if ``where`` is true for all rows, because the rows that violate it are not kept for this block. No layout has it."""

    starts_with_rows: ClassVar[bool] = False
    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = True

    @property
    def filter(self) -> WhereClause | None:
        """The condition that drops rows."""
        return None if self.where_holds else self.where

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(item.name for item in self.items)

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset().union(*(source.node.reads for source in self.sources))

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`. A join reads the contents of each side for the delta of the other."""
        return self.reads if len(self.sources) > 1 else self.sources[0].node.rereads

    @property
    def strategy(self) -> str:
        """See :class:`Node`."""
        return "join" if len(self.sources) > 1 else "linear"

    def renamed(self, names: Sequence[str], /) -> Select:
        """See :class:`Node`."""
        return replace(self, items=tuple(Item(name, item.text) for name, item in zip(names, self.items, strict=True)))


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The sum of its parts, column by column; ``types`` are Spark's common types of the parts' columns."""

    parts: tuple[Linear, ...]
    types: ColumnTypes

    strategy: ClassVar[str] = "union"
    starts_with_rows: ClassVar[bool] = False
    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(name for name, _ in self.types)

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset().union(*(part.reads for part in self.parts))

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset().union(*(part.rereads for part in self.parts))

    def renamed(self, names: Sequence[str], /) -> UnionAll:
        """See :class:`Node`."""
        return replace(self, types=tuple((name, kind) for name, (_, kind) in zip(names, self.types, strict=True)))


Linear = Scan | Select | UnionAll
"""The linear nodes, which nest in each other without limit."""
