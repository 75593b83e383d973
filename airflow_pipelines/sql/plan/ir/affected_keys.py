"""Queries that are decomposable by key: outer, semi and anti joins, subqueries, window functions, first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.ir.description import DERIVED
from airflow_pipelines.sql.plan.ir.expression import Expression, QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.lookup import Lookup
from airflow_pipelines.sql.plan.ir.session_totals import SessionTotals


@dataclass(frozen=True, slots=True)
class KeyedSource:
    """One relation that the query of an :class:`AffectedKeys` node reads.

    :param alias: the name by which the query reads it
    :param keys: texts over the node's columns (by their bare names) that give a row's key; empty if a row may affect every key
    """

    alias: str
    node: Linear
    keys: tuple[Expression, ...]
    lookup: Lookup | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The lookup of the rows with some keys, derived by a pass over finished stages."""


class Shape(Enum):
    """The kind of query that an :class:`AffectedKeys` node evaluates."""

    JOIN = "join"
    SUBQUERY = "subquery"
    WINDOW = "window"
    TOP = "top"


@dataclass(frozen=True, slots=True)
class AffectedKeys:
    """A query that is decomposable by key: its result for a key depends only on the rows that have that key.

    The affected keys are those of the rows in the keyed sources' deltas, compared with ``<=>``. A change of a source without keys
    affects all keys. With no ``key_types`` at all there is one key, so that every change recomputes the whole answer.

    :param query: Spark SQL over the sources by their aliases, each a relation of plain rows without weights. Its columns are
     ``columns``, taken by position.
    :param remembered: texts over ``columns`` that give the key of a row of the answer. They are set if the answer for the same rows
     may differ in its last digits; then the former answer is read from storage instead of being computed again.
    """

    layout_name: ClassVar[str] = "Keyed"

    sources: tuple[KeyedSource, ...]
    query: QueryExpression
    columns: tuple[str, ...]
    key_types: tuple[str, ...]
    shape: Shape
    remembered: tuple[Expression, ...] = ()

    append_only: ClassVar[bool] = False
    remembered_lookup: Lookup | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The lookup of the stored answers of some keys, derived by a pass over finished stages."""
    reason: Reason | None = field(default=None, compare=False, metadata=DERIVED)
    """The reason why changes affect all keys, if those of some source do."""
    session_totals: SessionTotals | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The equivalent of the query, if it only groups the rows of its one source by session."""

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset().union(*(source.node.reads for source in self.sources))

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.reads

    @property
    def strategy(self) -> str:
        """See :class:`Node`."""
        return f"{self.shape.value} by {'touched keys' if self.key_types else 'recomputing'}"

    @property
    def starts_with_rows(self) -> bool:
        """See :class:`Node`."""
        return not self.key_types

    @property
    def keeps_contents(self) -> bool:
        """See :class:`Node`."""
        # If a row may affect all keys, the result is compared with the stored one instead of being computed before and after.
        every = self.shape is Shape.JOIN and not all(source.keys for source in self.sources)
        return not self.key_types or bool(self.remembered) or every

    def renamed(self, names: Sequence[str], /) -> AffectedKeys:
        """See :class:`Node`."""
        return replace(self, columns=tuple(names))
