"""The operator protocol: the interface through which the engine evaluates any kind of stage.

There is one operator class for each kind of node, in one file; :mod:`airflow_pipelines.engine.operators.registry` maps nodes to
operators. No other code depends on the kind of a node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from typing import ClassVar, Generic, TypeVar

from airflow_pipelines.engine.batch import weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.stage import Stage

N = TypeVar("N", bound=Node)


class Operator(ABC, Generic[N]):
    """The base class of operators, each of which evaluates one stage, step by step.

    No step changes an attribute of an operator: its memory is in its states, so that a checkpoint contains it.
    """

    depends_on_order: ClassVar[bool] = False
    """True if the result depends on the arrival order of rows, and not only on the set of rows.

    The deltas that such an operator reads have a sequence column, and steps of a journal are never merged for it.
    """
    may_be_evaluated_again: ClassVar[bool] = True
    """True if a failed evaluation may be repeated over some of its rows, to find the row that makes it fail.

    It is False for an operator whose calls have effects elsewhere.
    """

    has_timers: ClassVar[bool] = False
    """True if :meth:`timer` may return an instant, so that time matters besides the inputs."""

    def __init__(self, stage: Stage, node: N) -> None:
        """Create an operator for one stage.

        :param stage: the stage that it computes
        :param node: the stage's node
        """
        self.stage = stage
        self.node = node
        self.relation = stage.relation
        self.reads: frozenset[str] = node.reads
        """The relations whose deltas the operator follows."""
        self.rereads: frozenset[str] = node.rereads
        """The relations whose contents it reads besides their deltas."""
        self.states: Mapping[str, StateSchema] = self.state_schemas()
        """The schemas of its states, by name."""

    @property
    def ordered_reads(self) -> frozenset[str]:
        """The relations whose rows an operator that depends on order needs in arrival order."""
        return self.reads

    @property
    def strategy(self) -> str:
        """The evaluation strategy of the stage, in one or two words."""
        return self.node.strategy

    @property
    def starts_with_rows(self) -> bool:
        """True if the result may have rows while all inputs are empty."""
        return self.node.starts_with_rows

    @property
    def keeps_contents(self) -> bool:
        """True if the contents of the stage's relation before a step are needed to evaluate it."""
        return self.node.keeps_contents

    def state_schemas(self) -> Mapping[str, StateSchema]:
        """Return the schemas of the operator's states, by name; none by default."""
        return {}

    def empty_states(self) -> dict[str, Trace]:
        """Return the states before the first evaluation."""
        return {name: schema.empty() for name, schema in self.states.items()}

    def timer(self, states: Mapping[str, Trace]) -> int | None:
        """Return the next instant at which the operator has work to do without any input, or None, the default, for none.

        :param states: the operator's current states; none before its first evaluation
        :returns: microseconds since the epoch
        """
        del states
        return None

    def is_due(self, changed: Set[str], clock: int | None, states: Mapping[str, Trace]) -> bool:
        """Return True if the operator has work to do in a step.

        :param changed: the relations that the step changes
        :param clock: the time of the step, in microseconds since the epoch; None before the first tick
        :param states: the operator's states before the step
        """
        if not self.reads.isdisjoint(changed):
            return True
        timer = self.timer(states) if self.has_timers else None
        return timer is not None and clock is not None and timer <= clock

    @abstractmethod
    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate a step: return the changes of the stage's relation and of its states.

        :param context: the step's versions of the relations, and the means to run queries
        :param kept: the stage's states and contents before the step
        """

    def in_query_terms(self, expression: str) -> str:
        """Return a failing expression with the names of the user's query instead of those that the plan has made up.

        :param expression: the expression as Spark SQL, in the form that Spark shows in an error
        """
        return expression

    def _empty_contents(self) -> Trace:
        return Trace(weighted(stage_schema(self.stage)))
