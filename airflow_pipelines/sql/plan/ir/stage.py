"""A plan: stages in topological order, each after the relations that it reads."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.ir.node import ColumnTypes, Node


@dataclass(frozen=True, slots=True)
class Stage:
    """One relation (a view, or an internal relation of it) computed by one node."""

    relation: str
    columns: ColumnTypes
    node: Node

    @property
    def strategy(self) -> str:
        """The evaluation strategy of the stage, in one or two words."""
        return self.node.strategy

    @property
    def reason(self) -> Reason | None:
        """The reason why the stage is recomputed when a relation that it reads changes; None if it follows all deltas.

        A node that may be recomputed has it in an attribute of this name.
        """
        return getattr(self.node, "reason", None)

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
    """The plan by which a view is maintained.

    :param stages: the stages in the order of evaluation; the last one is the view
    :param full: the strategy that always works
    :param after: stages on top of either strategy, for a view that does not show all rows of its query: then the last of them is
     the view
    """

    view: str
    query: str
    columns: ColumnTypes
    stages: tuple[Stage, ...]
    full: Stage
    after: tuple[Stage, ...] = ()

    @property
    def recomputed(self) -> tuple[Stage, ...]:
        """The stages that are recomputed when a relation that they read changes."""
        return tuple(stage for stage in self.stages if stage.reason is not None)

    @property
    def reason(self) -> str | None:
        """The reasons why parts of the view are recomputed; None if none is."""
        return "; ".join(dict.fromkeys(str(stage.reason) for stage in self.recomputed)) or None
