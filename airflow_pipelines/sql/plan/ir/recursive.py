"""Recursion: the least fixed point of a relation's query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.ir.description import DERIVED
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.node import ColumnTypes


@dataclass(frozen=True, slots=True)
class Recursive:
    """The least fixed point of ``query``: the smallest contents of ``relation`` for which ``query`` returns these contents.

    :param columns: the columns of ``relation``
    :param query: Spark SQL over the other relations it reads (``inputs``) and ``relation`` itself, by their names
    :param body: the query as a linear node, which has a :class:`Scan` of ``relation``, or None if there is no such node
    :param distinct: True if the contents are a set; else rows count as often as they are derived, each from a row of ``relation``
     or from none
    :param result: a query over ``relation`` for the stage's own rows, or None if the stage's relation is ``relation``
    """

    relation: str
    columns: ColumnTypes
    query: str
    inputs: tuple[str, ...]
    body: Linear | None
    distinct: bool = True
    result: str | None = None
    reason: Reason | None = field(default=None, compare=False, metadata=DERIVED)
    """The reason why there is no ``body``."""

    keeps_contents: ClassVar[bool] = True
    append_only: ClassVar[bool] = False

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return frozenset(self.inputs)

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.reads

    @property
    def strategy(self) -> str:
        """See :class:`Node`."""
        return "recursion" if self.body is not None else "recursion by recomputing"

    @property
    def starts_with_rows(self) -> bool:
        """See :class:`Node`."""
        return self.body is None

    def renamed(self, _: Sequence[str], /) -> Recursive:
        """See :class:`Node`. The columns are part of the recursion."""
        return self
