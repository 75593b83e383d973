"""Queries that are decomposable by key: outer, semi and anti joins, subqueries, window functions, first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.ir.description import DERIVED
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.lookup import Lookup
from airflow_pipelines.sql.plan.ir.session_totals import SessionTotals


@dataclass(frozen=True, slots=True)
class KeyedSource:
    """One relation that the query of an :class:`AffectedKeys` node reads.

    :param alias: the name by which the query reads it
    :param keys: texts over the node's columns (by their bare names) that give a row's key; none when a row may matter to every key
    """

    alias: str
    node: Linear
    keys: tuple[str, ...]
    lookup: Lookup | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """Derived by a pass over finished stages: how the rows with some keys are looked up."""


class Shape(Enum):
    """What an :class:`AffectedKeys` node is for."""

    JOIN = "join"
    SUBQUERY = "subquery"
    WINDOW = "window"
    TOP = "top"


@dataclass(frozen=True, slots=True)
class AffectedKeys:
    """Any query that is decomposable by key: what it gives for a key depends only on the rows that have that key.

    The affected keys are those of the rows in the keyed sources' deltas, compared with ``<=>``. A change of a source without keys
    affects all keys. With no ``key_types`` at all there is one key, so that every change recomputes the whole answer.

    :param query: Spark SQL over the sources by their aliases, each a relation of plain rows without weights. Its columns are
        ``columns``, taken by position.
    :param remembered: texts over ``columns`` that give the key of a row of the answer, where the answer for the same rows may come
        out differently in its last digits. Then the former answer is read from what is stored instead of being computed again.
    """

    layout_name: ClassVar[str] = "Keyed"

    sources: tuple[KeyedSource, ...]
    query: str
    columns: tuple[str, ...]
    key_types: tuple[str, ...]
    shape: Shape
    remembered: tuple[str, ...] = ()

    append_only: ClassVar[bool] = False
    remembered_lookup: Lookup | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """Derived by a pass over finished stages: how the stored answers of some keys are looked up."""
    reason: Reason | None = field(default=None, compare=False, metadata=DERIVED)
    """Why changes affect all keys, where those of some source do."""
    session_totals: SessionTotals | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The same as the query says, where it groups the only source's rows by session and does nothing else."""

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
        # What every row may affect is compared with what is stored, instead of being computed for before and after.
        every = self.shape is Shape.JOIN and not all(source.keys for source in self.sources)
        return not self.key_types or bool(self.remembered) or every

    def renamed(self, names: Sequence[str], /) -> AffectedKeys:
        """See :class:`Node`."""
        return replace(self, columns=tuple(names))
