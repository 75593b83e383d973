"""The first rows per key of a source that never loses a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_pipelines.sql.plan.ir.description import DERIVED
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.ranking import Ranking


@dataclass(frozen=True, slots=True)
class AppendOnlyTopK:
    """The first rows per key of a source that never loses a row, with their ranks.

    A row behind the first ones stays behind them whatever is added. So the result depends only on the known first rows and the new
    rows.

    :param keys: texts over the source's columns by their bare names that give a row's key, of the types ``key_types``
    :param rank: the window function that gives a row's rank, over the same columns; it may be partitioned by more than ``keys``
    :param most: the greatest rank in the result
    :param place: the name of the rank's column, the last one of the result
    """

    layout_name: ClassVar[str] = "TopK"

    source: Linear
    keys: tuple[Expression, ...]
    key_types: tuple[str, ...]
    rank: Expression
    most: int
    place: str
    key_columns: tuple[str | None, ...] = field(default=(), compare=False, repr=False, metadata=DERIVED)
    """The column that each key is, None for an expression; derived by a pass over finished stages."""
    ranking: Ranking | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The parsed form of ``rank``, None if it reads an expression; derived by a pass over finished stages."""

    strategy: ClassVar[str] = "top-k by new rows"
    starts_with_rows: ClassVar[bool] = False
    keeps_contents: ClassVar[bool] = True
    append_only: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return (*self.source.columns, self.place)

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.source.reads

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.source.rereads

    def renamed(self, _: Sequence[str], /) -> AppendOnlyTopK:
        """See :class:`Node`. The columns are the source's."""
        return self
