"""What the engine has to know about a kind of stage: the operator protocol.

There is one operator class for each kind of node, in one file, and :mod:`airflow_pipelines.engine.operators.registry` says which.
Nothing else asks for the kind of a node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from typing import ClassVar, Generic, TypeVar

from airflow_pipelines.engine.batch import weighted
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.result import Outcome, stage_schema
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.stage import Stage

N = TypeVar("N", bound=Node)


class Operator(ABC, Generic[N]):
    """Evaluates one stage, step by step.

    No step changes a variable of an operator: all that it remembers is in its states, so that a checkpoint has it.
    """

    depends_on_order: ClassVar[bool] = False
    """Whether the result depends on the order in which rows arrive, and not only on which ones. The deltas that such an operator
    reads have a sequence column, and the steps of a journal are never merged for it."""
    may_be_evaluated_again: ClassVar[bool] = True
    """Whether a failed evaluation may be repeated over some of its rows, to find the one that it fails for. An operator that calls
    what has effects elsewhere says no."""

    has_timers: ClassVar[bool] = False
    """Whether :meth:`timer` may give an instant, so that time matters besides what the operator reads."""

    def __init__(self, stage: Stage, node: N) -> None:
        """An operator for one stage.

        :param stage: what it computes
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
        """Of an operator that depends on order, the relations whose rows it needs in the order of their arrival."""
        return self.reads

    @property
    def strategy(self) -> str:
        """How the stage is evaluated, in one or two words."""
        return self.node.strategy

    @property
    def starts_with_rows(self) -> bool:
        """Whether the result may have rows while all that is read is empty."""
        return self.node.starts_with_rows

    @property
    def keeps_contents(self) -> bool:
        """Whether the contents of the stage's relation before a step are needed to evaluate it."""
        return self.node.keeps_contents

    def state_schemas(self) -> Mapping[str, StateSchema]:
        """The schemas of the operator's states, by name; none by default."""
        return {}

    def empty_states(self) -> dict[str, Trace]:
        """The states before the first evaluation."""
        return {name: schema.empty() for name, schema in self.states.items()}

    def timer(self, states: Mapping[str, Trace]) -> int | None:
        """The next instant at which the operator has something to do without any input; None, the default, for none.

        :param states: the operator's states as they are now; none before its first evaluation
        :returns: microseconds since the epoch
        """
        del states
        return None

    def is_due(self, changed: Set[str], clock: int | None, states: Mapping[str, Trace]) -> bool:
        """Whether the operator has something to do in a step.

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
        """What the stage's relation and its states gain and lose in a step.

        :param context: the step's versions of the relations, and the means to run queries
        :param kept: what the stage keeps, as it was before the step
        """

    def in_query_terms(self, expression: str) -> str:
        """A failing expression with the names that the user's query has, instead of those that the plan has made.

        :param expression: Spark SQL, as Spark shows it in an error
        """
        return expression

    def _empty_contents(self) -> Trace:
        return Trace(weighted(stage_schema(self.stage)))
