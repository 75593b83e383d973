"""A plan: stages in an order in which each comes after what it reads."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_pipelines.sql.plan.ir.node import ColumnTypes, Node


@dataclass(frozen=True, slots=True)
class Stage:
    """One relation (a view, or an internal relation of it) computed by one node."""

    relation: str
    columns: ColumnTypes
    node: Node

    @property
    def strategy(self) -> str:
        """How the stage is evaluated, in one or two words."""
        return self.node.strategy

    @property
    def reads(self) -> frozenset[str]:
        """The relations whose deltas the stage follows."""
        return self.node.reads

    @property
    def rereads(self) -> frozenset[str]:
        """The relations whose contents the stage reads besides their deltas, so that their traces must be kept."""
        return self.node.rereads


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """How a view is maintained.

    :param stages: in the order of evaluation; the last one is the view
    :param full: the strategy that always works
    :param reason: why the view has no incremental strategy, or None when it has one
    :param after: stages on top of either strategy, for a view that does not show all that its query gives: then the last of them is
        the view
    """

    view: str
    query: str
    columns: ColumnTypes
    stages: tuple[Stage, ...]
    full: Stage
    reason: str | None = None
    after: tuple[Stage, ...] = ()
