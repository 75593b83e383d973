"""Evaluates the operators of one step, collects what they give, and finds the row that one of them fails for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.compaction import without_cancelled
from airflow_pipelines.engine.errors import FailingRow, StepError
from airflow_pipelines.engine.failing_row import find_failing_row
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.relation_versions import RelationVersions
from airflow_pipelines.engine.operators.result import Outcome
from airflow_pipelines.engine.spark.failures import step_error
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.step_stats import OperatorStats
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.trace import Trace

Accept = Callable[[str, RelationVersions, Context], Mapping[str, RelationVersions]]


@dataclass(slots=True)
class Evaluation:
    """The evaluation of one step while it goes on.

    ``relations`` and ``states`` have an entry for all that there is before the first operator is evaluated: threads read them while
    others replace entries.

    :param context: what operators work with; it has ``relations``
    :param relations: the versions of all relations
    :param states: the states of all operators, by relation and name
    :param accept: what the step takes of a relation's delta, and the relations that change with it
    :param stats: of the operators that had something to do, by relation
    :param begun: the relations whose operators are, or were, evaluated
    """

    context: Context
    relations: dict[str, RelationVersions]
    states: dict[str, Mapping[str, Trace]]
    accept: Accept
    stats: dict[str, OperatorStats] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    @property
    def progress(self) -> tuple[int, int]:
        """How many operators have been evaluated, and how many are being evaluated."""
        done = len(self.stats)
        return done, max(0, len(self.begun) - done)

    def changed(self, operator: Operator[Any]) -> frozenset[str]:
        """The relations that an operator reads and that the step changes, as far as they are evaluated."""
        return frozenset(name for name in operator.reads if self.relations[name].changed)

    def evaluate(self, operator: Operator[Any], view: str, kept: Kept) -> None:
        """Evaluate one operator and note its delta and what its states gain.

        :param operator: it comes after all that it reads
        :param view: the view that it belongs to
        :param kept: what it keeps, as it was before the step
        :raises StepError: when it cannot be evaluated
        """
        started = time.monotonic()
        self.begun.add(operator.relation)
        outcome, delta = self._outcome(operator, view, kept)
        # Whatever an operator gives, its rows are counted, and go to files where there is no room for them.
        delta = self.context.spill_if_large(delta)
        gained = {name: self.context.spill_if_large(batch) for name, batch in outcome.states.items()}
        before = self.relations[operator.relation]
        versions = replace(before, delta=(delta,) if delta.rows else ())
        self.relations.update(self.accept(operator.relation, versions, self.context))
        if operator.states:
            states = operator.empty_states() if kept.states is None else kept.states
            self.states[operator.relation] = _with(states, gained)
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
        """Whether nothing that is kept has changed. A state that was not there before is a change.

        :param before: the states before the step
        """
        if any(self.relations[relation].changed for relation in self.stats):
            return False
        return len(self.states) == len(before) and all(before.get(relation) is state for relation, state in self.states.items())

    def stats_of(self, operators: Iterable[Operator[Any]]) -> tuple[OperatorStats, ...]:
        """The statistics of the operators that had something to do, in order."""
        return tuple(self.stats[operator.relation] for operator in operators if operator.relation in self.stats)

    def _outcome(self, operator: Operator[Any], view: str, kept: Kept) -> tuple[Outcome, Batch]:
        """What an operator gives, and its delta without rows that cancel out."""
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
                failed.failing_row = self._failing_row(operator, kept, failed)
            raise failed from error

    def _failing_row(self, operator: Operator[Any], kept: Kept, failed: StepError) -> FailingRow | None:
        """A row that an operator's failure comes from."""
        if "cancel" in failed.message.lower():
            return None

        def again(context: Context) -> StepError | None:
            try:
                operator.evaluate(context, kept)
            except Exception as error:  # noqa: BLE001  whatever it is, it is compared with what the step failed with
                return step_error(failed.view, error)
            return None

        return find_failing_row(operator.reads, self.context, failed, again)


def _with(states: Mapping[str, Trace], gained: Mapping[str, Batch]) -> Mapping[str, Trace]:
    """States with what they gain; the same object when that is nothing."""
    if not any(batch.rows for batch in gained.values()):
        return states
    return {name: trace.append(gained[name]) if name in gained else trace for name, trace in states.items()}


@dataclass(frozen=True, slots=True)
class EvaluationAnew:
    """The evaluation of views from the stored rows of what they read, while it goes on.

    :param evaluation: the evaluation
    :param rows: the number of stored rows that each operator reads, by its relation
    """

    evaluation: Evaluation
    rows: Mapping[str, int]

    @property
    def progress(self) -> tuple[int, int]:
        """How many of the rows have been read, and how many there are. Rows that several operators read count for each."""
        done = sum(rows for relation, rows in self.rows.items() if relation in self.evaluation.stats)
        return done, sum(self.rows.values())
