"""The nodes of a plan.

A plan is a list of stages. Each stage computes one relation (the view, or an internal relation of it) from relations that come
before it. Expressions are kept as Spark SQL text; nodes know nothing of batches or sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from airflow_pipelines.program.names import quote

ColumnTypes = tuple[tuple[str, str], ...]
"""Names and Spark DDL types of columns, in order."""


class Version(Enum):
    """Which contents of a relation a text reads, as seen from one step."""

    DELTA = "delta"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Scan:
    """A relation as it is."""

    relation: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of a FROM clause."""

    alias: str
    node: Linear


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a SELECT list: its name and its expression's text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """A comparison in a WHERE that is all a block has to do with one of its sources, a marker.

    When the marker moves, only rows whose ``text`` (over the other sources) lies between its old and its new value gain or lose.
    ``column``: the relation and column that ``text`` is, or None when it is an expression.
    """

    source: int
    text: str
    column: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """Filter, project, inner or cross join and unnesting in one block. A row's weight is the product of its sources' weights.

    ``laterals``: ``LATERAL VIEW`` clauses after the sources, in order; each may read the sources and the clauses before it.
    ``crossings``: for sources that are markers, what their moves can touch.
    """

    sources: tuple[Source, ...]
    items: tuple[Item, ...]
    where: str | None = None
    laterals: tuple[str, ...] = ()
    crossings: tuple[Crossing, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the result's columns."""
        return tuple(item.name for item in self.items)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The sum of its parts, column by column; ``types`` are what Spark makes of the parts' types together."""

    parts: tuple[Linear, ...]
    types: ColumnTypes

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the result's columns."""
        return tuple(name for name, _ in self.types)


Linear = Scan | Select | UnionAll
"""Nodes whose delta follows from their sources' deltas without a state of their own."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A number per group that adds up over deltas: its column, Spark type, and SQL text over the input's columns and weight.

    ``once``: the same where every weight is 1, if that is less work: to multiply decimals by it costs more than all the rest.
    """

    name: str
    type: str
    text: str
    once: str | None = None


def merging(column: str) -> str:
    """The aggregate function that joins two values of a state's column: MAX or MIN for accumulators so named, else SUM.

    Extremes are only kept of inputs that never lose a row; a NULL is no value yet.
    """
    return {"max": "MAX", "min": "MIN"}.get(column[-3:], "SUM") if column.startswith("__a") else "SUM"


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call: the name its value has in HAVING and SELECT, the text over the input's columns, and its type.

    ``value`` is its text over accumulators when the call is linear, else None.
    """

    name: str
    text: str
    type: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY: ``keys`` are named expressions over ``input``'s columns; ``items`` and ``having`` read keys and calls by name.

    Without keys there is exactly one group, which exists over an empty input too.
    """

    input: Select
    keys: tuple[Item, ...]
    key_types: tuple[str, ...]
    calls: tuple[Call, ...]
    accumulators: tuple[Accumulator, ...]
    items: tuple[Item, ...]
    having: str | None = None
    input_types: tuple[str, ...] = ()
    """Types of ``input``'s columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the result's columns."""
        return tuple(item.name for item in self.items)

    @property
    def is_linear(self) -> bool:
        """Whether every call follows from accumulators, so that the input's contents are never read."""
        return all(call.value is not None for call in self.calls)


@dataclass(frozen=True, slots=True)
class KeyedSource:
    """One relation that the query of a :class:`Keyed` node reads.

    ``alias``: the name by which the query reads it. ``keys``: texts over the node's columns (by their bare names) that give a row's
    key; none when a row may matter to every key.
    """

    alias: str
    node: Linear
    keys: tuple[str, ...]


class Shape(Enum):
    """What a :class:`Keyed` node is for."""

    JOIN = "join"
    SUBQUERY = "subquery"
    WINDOW = "window"
    TOP = "top"


@dataclass(frozen=True, slots=True)
class Keyed:
    """Any query whose answer falls apart by key: what it gives for a key depends only on the rows that have that key.

    The touched keys are those of the rows in the keyed sources' deltas, compared with ``<=>``. A change of a source without keys
    touches all keys. With no ``key_types`` at all there is one key, so that every change recomputes the whole answer.

    ``query``: Spark SQL over the sources by their aliases, each a relation of plain rows without weights. Its columns are
    ``columns``, taken by position.

    ``remembered``: texts over ``columns`` that give the key of a row of the answer, where the answer for the same rows may come out
    differently in its last digits. Then what it was is kept instead of being asked for again.
    """

    sources: tuple[KeyedSource, ...]
    query: str
    columns: tuple[str, ...]
    key_types: tuple[str, ...]
    shape: Shape
    remembered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopK:
    """The first rows per key of a source that never loses a row, with their places.

    A row behind the first ones stays behind them whatever comes, so that the known first rows and the new rows decide.

    ``keys``: texts over the source's columns by their bare names that give a row's key, of the types ``key_types``. ``rank``: the
    window function that gives a row's place, over the same columns; partitioned by more than ``keys`` perhaps. ``most``: the last
    place that is taken. ``place``: the name of the place's column, the last one of the result.
    """

    source: Linear
    keys: tuple[str, ...]
    key_types: tuple[str, ...]
    rank: str
    most: int
    place: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the result's columns."""
        return (*self.source.columns, self.place)


@dataclass(frozen=True, slots=True)
class Full:
    """A query that is recomputed over its relations' contents; the stored output is subtracted. ``reason``: why it is so.

    ``needs``: relations without any row of which the query gives none, so that it is not evaluated then; often not known.
    """

    query: str
    reads: tuple[str, ...]
    reason: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recursive:
    """The least contents of ``relation`` that are what ``query`` gives for them.

    ``query``: Spark SQL over the other relations it reads (``inputs``) and ``relation`` itself, by their names. ``columns``: of
    ``relation``. ``body``: the same as a linear node, which has a :class:`Scan` of ``relation``, or None when there is none.
    ``distinct``: whether the contents are a set; else rows count as often as they are derived, each from a row of ``relation`` or
    from none. ``result``: a query over ``relation`` for the stage's own rows, or None when the stage's relation is ``relation``.
    """

    relation: str
    columns: ColumnTypes
    query: str
    inputs: tuple[str, ...]
    body: Linear | None
    distinct: bool = True
    result: str | None = None


Node = Select | UnionAll | Aggregate | Keyed | TopK | Full | Recursive


@dataclass(frozen=True, slots=True)
class Stage:
    """One relation computed by one node."""

    relation: str
    columns: ColumnTypes
    node: Node

    @property
    def strategy(self) -> str:
        """How the stage is computed, in one or two words."""
        match self.node:
            case Full():
                return "full"
            case Aggregate():
                return "accumulators" if self.node.is_linear else "touched groups"
            case Keyed():
                return f"{self.node.shape.value} by {'touched keys' if self.node.key_types else 'recomputing'}"
            case TopK():
                return "top-k by new rows"
            case UnionAll():
                return "union"
            case Recursive():
                return "recursion" if self.node.body is not None else "recursion by recomputing"
            case _:
                return "join" if len(self.node.sources) > 1 else "linear"

    @property
    def reads(self) -> frozenset[str]:
        """The relations whose deltas the stage follows."""
        return reads(self.node)

    @property
    def rereads(self) -> frozenset[str]:
        """The relations whose contents the stage reads besides their deltas, so that their traces must be kept."""
        return rereads(self.node)

    @property
    def starts_with_rows(self) -> bool:
        """Whether the result may have rows while all inputs are empty."""
        if isinstance(self.node, Full):
            return not self.node.needs
        if isinstance(self.node, Keyed) and not self.node.key_types:
            return True
        if isinstance(self.node, Recursive):
            return self.node.body is None
        return isinstance(self.node, Aggregate) and not self.node.keys

    @property
    def keeps_state(self) -> bool:
        """Whether the stage keeps something of its own besides its relation's contents."""
        if isinstance(self.node, Recursive):
            return self.node.body is not None and self.node.distinct
        return isinstance(self.node, Aggregate)

    @property
    def keeps_contents(self) -> bool:
        """Whether the stage needs its relation's contents to find out how they change."""
        if isinstance(self.node, Keyed):
            return not self.node.key_types or bool(self.node.remembered)
        return isinstance(self.node, Full | Recursive | TopK)


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """How a view is maintained. ``stages`` come in order, the last one is the view; ``full`` is the strategy that always works.

    ``reason`` says why the view has no incremental strategy, or is None when it has one. ``after`` are stages on top of either
    strategy, for a view that does not show all that its query gives: then the last of them is the view.
    """

    view: str
    query: str
    columns: ColumnTypes
    stages: tuple[Stage, ...]
    full: Stage
    reason: str | None = None
    after: tuple[Stage, ...] = ()


def renamed(node: Node | Scan, names: Sequence[str]) -> Node:
    """The same node with other column names."""
    match node:
        case Scan():
            columns = zip(names, node.columns, strict=True)
            return Select((Source("s", node),), tuple(Item(name, f"`s`.{quote(column)}") for name, column in columns))
        case UnionAll():
            return replace(node, types=tuple((name, kind) for name, (_, kind) in zip(names, node.types, strict=True)))
        case Select() | Aggregate():
            return replace(node, items=tuple(Item(name, item.text) for name, item in zip(names, node.items, strict=True)))
        case Keyed():
            return replace(node, columns=tuple(names))
        case Full() | Recursive() | TopK():
            return node


def reads(node: Node | Linear) -> frozenset[str]:
    """The relations that a node reads."""
    match node:
        case Scan():
            return frozenset({node.relation})
        case Select():
            return frozenset().union(*(reads(source.node) for source in node.sources))
        case UnionAll():
            return frozenset().union(*(reads(part) for part in node.parts))
        case Aggregate():
            return reads(node.input)
        case Keyed():
            return frozenset().union(*(reads(source.node) for source in node.sources))
        case TopK():
            return reads(node.source)
        case Full():
            return frozenset(node.reads)
        case Recursive():
            return frozenset(node.inputs)


def rereads(node: Node | Linear) -> frozenset[str]:
    """The relations whose contents, not only whose deltas, a node's delta is made of."""
    match node:
        case Scan():
            return frozenset()
        case Select():
            return reads(node) if len(node.sources) > 1 else rereads(node.sources[0].node)
        case UnionAll():
            return frozenset().union(*(rereads(part) for part in node.parts))
        case Aggregate():
            return rereads(node.input) if node.is_linear else reads(node)
        case Keyed():
            return reads(node)
        case TopK():
            return rereads(node.source)
        case Full():
            return frozenset(node.reads)
        case Recursive():
            return frozenset(node.inputs)
