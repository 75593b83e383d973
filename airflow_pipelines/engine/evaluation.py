"""The evaluation of one step's operators: it collects their outcomes, and finds the row that makes one of them fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.compaction import without_cancelled
from airflow_pipelines.engine.errors import FailingRow, StepError
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import Outcome
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.failing_row import find_failing_row
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.failures import step_error
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.step_stats import OperatorStats
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.trace import Trace

Accept = Callable[[str, RelationVersions, Context], Mapping[str, RelationVersions]]


@dataclass(slots=True)
class Evaluation:
    """The evaluation of one step, while it is in progress.

    ``relations`` and ``states`` have all their entries before the first operator is evaluated: threads read them while others
    replace entries.

    :param context: the context of the operators; it has ``relations``
    :param relations: the versions of all relations
    :param states: the states of all operators, by relation and name
    :param accept: the function that applies a relation's delta to the step, and returns the relations that change with it
    :param stats: the statistics of the operators that had work to do, by relation
    :param begun: the relations whose evaluation has begun
    """

    context: Context
    relations: dict[str, RelationVersions]
    states: dict[str, Mapping[str, Trace]]
    accept: Accept
    stats: dict[str, OperatorStats] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    @property
    def progress(self) -> tuple[int, int]:
        """The number of operators that have been evaluated, and of those that are being evaluated."""
        done = len(self.stats)
        return done, max(0, len(self.begun) - done)

    def find_changed_inputs(self, operator: Operator[Any]) -> frozenset[str]:
        """Return the inputs of an operator that the step has changed so far."""
        return frozenset(name for name in operator.reads if self.relations[name].changed)

    def evaluate(self, operator: Operator[Any], view: str, kept: Kept) -> None:
        """Evaluate one operator, and record its delta and what its states gain.

        :param operator: the operator; all that it reads has been evaluated
        :param view: the view that it belongs to
        :param kept: its states and contents before the step
        :raises StepError: when it cannot be evaluated
        """
        started = time.monotonic()
        self.begun.add(operator.relation)
        outcome, delta = self._compute_outcome(operator, view, kept)
        # The rows of every operator are counted here, and go to files if there is no room for them.
        delta = self.context.spill_if_large(delta)
        gained = {name: self.context.spill_if_large(batch) for name, batch in outcome.states.items()}
        before = self.relations[operator.relation]
        versions = replace(before, delta=(delta,) if delta.rows else ())
        self.relations.update(self.accept(operator.relation, versions, self.context))
        if operator.states:
            states = operator.empty_states() if kept.states is None else kept.states
            self.states[operator.relation] = _add_gains(states, gained)
        rows_in = sum(batch.rows for name in operator.reads for batch in self.relations[name].delta)
        duration = round((time.monotonic() - started) * 1000, 3)
        self.stats[operator.relation] = OperatorStats(
            view,
            operator.relation,
            outcome.strategy or operator.strategy,
            rows_in,
            delta.rows + outcome.unobserved,
            duration,
            outcome.reason,
        )

    def is_quiet(self, before: Mapping[str, Mapping[str, Trace]]) -> bool:
        """Return True if no kept contents and no state have changed. A state that did not exist before is a change.

        :param before: the states before the step
        """
        if any(self.relations[relation].changed for relation in self.stats):
            return False
        return len(self.states) == len(before) and all(before.get(relation) is state for relation, state in self.states.items())

    def stats_of(self, operators: Iterable[Operator[Any]]) -> tuple[OperatorStats, ...]:
        """Return the statistics of those of the operators that had work to do, in order."""
        return tuple(self.stats[operator.relation] for operator in operators if operator.relation in self.stats)

    def _compute_outcome(self, operator: Operator[Any], view: str, kept: Kept) -> tuple[Outcome, Batch]:
        """Evaluate an operator, and return its outcome and its delta without rows that cancel out."""
        try:
            outcome = operator.evaluate(self.context, kept)
            return outcome, outcome.delta if outcome.consolidated else without_cancelled(outcome.delta, self.context)
        except (StepError, StorageError):
            raise
        except Exception as error:
            failed = step_error(view, error)
            if failed.expression is not None:
                failed.expression = operator.in_query_terms(failed.expression)
            if operator.may_be_evaluated_again:
                failed.failing_row = self._find_failing_row(operator, kept, failed)
            raise failed from error

    def _find_failing_row(self, operator: Operator[Any], kept: Kept, failed: StepError) -> FailingRow | None:
        """Find a row that makes an operator fail."""
        if "cancel" in failed.message.lower():
            return None

        def again(context: Context) -> StepError | None:
            try:
                operator.evaluate(context, kept)
            except Exception as error:  # noqa: BLE001  whatever it is, it is compared with what the step failed with
                return step_error(failed.view, error)
            return None

        return find_failing_row(operator.reads, self.context, failed, again)


def _add_gains(states: Mapping[str, Trace], gained: Mapping[str, Batch]) -> Mapping[str, Trace]:
    """Return the states with what they gain; the same object if they gain nothing."""
    if not any(batch.rows for batch in gained.values()):
        return states
    return {name: trace.append(gained[name]) if name in gained else trace for name, trace in states.items()}


@dataclass(frozen=True, slots=True)
class EvaluationAnew:
    """The evaluation of views from the stored rows of their inputs, while it is in progress.

    :param evaluation: the evaluation
    :param rows: the number of stored rows that each operator reads, by its relation
    """

    evaluation: Evaluation
    rows: Mapping[str, int]

    @property
    def progress(self) -> tuple[int, int]:
        """The number of rows read so far, and their total. Rows that several operators read count for each.

        Rows that several operators read count for each.
        """
        done = sum(rows for relation, rows in self.rows.items() if relation in self.evaluation.stats)
        return done, sum(self.rows.values())
