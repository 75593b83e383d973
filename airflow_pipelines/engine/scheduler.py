"""One step's evaluation: every stage after those it reads, and those that need nothing of each other at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from pyspark import SparkContext

from airflow_pipelines.engine.batch import weighted
from airflow_pipelines.engine.compaction import without_cancelled
from airflow_pipelines.engine.errors import Culprit, StepError
from airflow_pipelines.engine.failing_row import find_culprit, named
from airflow_pipelines.engine.operators.accumulate import evaluate_accumulators
from airflow_pipelines.engine.operators.affected_keys import evaluate_keyed
from airflow_pipelines.engine.operators.append_only_top_k import evaluate_top_k
from airflow_pipelines.engine.operators.context import Context, RelationVersions
from airflow_pipelines.engine.operators.full import evaluate_full
from airflow_pipelines.engine.operators.linear import evaluate_linear
from airflow_pipelines.engine.operators.recompute_groups import evaluate_touched
from airflow_pipelines.engine.operators.recursive import evaluate_recursive
from airflow_pipelines.engine.operators.result import Outcome, stage_schema
from airflow_pipelines.engine.spark.failures import step_error
from airflow_pipelines.engine.spark.jobs import ThreadProperties
from airflow_pipelines.engine.stages import empty_state
from airflow_pipelines.engine.step_stats import OperatorFigures
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Select, UnionAll
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import Stage

Accept = Callable[[str, RelationVersions, Context], Mapping[str, RelationVersions]]


@dataclass(slots=True)
class Round:
    """The evaluation of one step while it goes on.

    ``relations`` and ``states`` have an entry for all that there is before the first stage is evaluated: threads read them while
    others replace entries. ``accept``: what the step takes of a relation's delta, and the relations that change with it.
    ``figures``: of the stages that had something to do, by relation.
    """

    context: Context
    relations: dict[str, RelationVersions]
    states: dict[str, Trace]
    accept: Accept
    figures: dict[str, OperatorFigures] = field(default_factory=dict)

    def evaluate(self, stage: Stage, view: str, stored: Trace | None, *, fresh_state: bool) -> None:
        """Evaluate one stage and note its delta and what its state gains.

        :param view: the view that the stage belongs to
        :param stored: the stage's contents before the step, where they are kept
        :param fresh_state: leave what the state has out of account
        :raises StepError: when Spark cannot evaluate it
        """
        started = time.monotonic()
        state = None if fresh_state else self.states.get(stage.relation)
        try:
            outcome = _evaluated(stage, self.context, state, stored)
            delta = outcome.delta if outcome.consolidated else without_cancelled(outcome.delta, self.context)
        except (StepError, StorageError):
            raise
        except Exception as error:
            failed = step_error(view, error)
            failed.expression = named(failed.expression, stage.node)
            failed.culprit = self._culprit(stage, state, stored, failed)
            raise failed from error
        before = self.relations[stage.relation]
        versions = replace(before, delta=(delta,) if delta.rows else ())
        self.relations.update(self.accept(stage.relation, versions, self.context))
        if outcome.state is not None:
            known = state if state is not None else empty_state(stage)
            self.states[stage.relation] = known.append(outcome.state)
        rows_in = sum(batch.rows for name in stage.reads for batch in self.relations[name].delta)
        duration = round((time.monotonic() - started) * 1000, 3)
        self.figures[stage.relation] = OperatorFigures(
            view, outcome.strategy or stage.strategy, rows_in, delta.rows + outcome.unobserved, duration
        )

    def _culprit(self, stage: Stage, state: Trace | None, stored: Trace | None, failed: StepError) -> Culprit | None:
        """A row that a stage's failure comes from."""
        if "cancel" in failed.message.lower():
            return None

        def again(context: Context) -> StepError | None:
            try:
                _evaluated(stage, context, state, stored)
            except Exception as error:  # noqa: BLE001  whatever it is, it is compared with what the step failed with
                return step_error(failed.view, error)
            return None

        return find_culprit(stage.reads, self.context, failed, again)


class Workers:
    """Threads that evaluate stages for one circuit; they start when two stages first have something to do at the same time."""

    def __init__(self, context: SparkContext) -> None:
        """Work for an application with as many threads as it has cores, within reason."""
        self._context = context
        self._threads = max(2, min(8, context.defaultParallelism))
        self._pool: ThreadPoolExecutor | None = None

    def run(self, stages: Sequence[Stage], due: Callable[[Stage], bool], evaluate: Callable[[Stage], None]) -> None:
        """Call ``evaluate`` for every stage for which ``due`` holds when all that it reads is evaluated.

        When one fails, no other is begun, and the error of the first one in ``stages`` is raised after those under way have ended.
        """
        waiting: dict[str, Stage] = {stage.relation: stage for stage in stages}
        running: dict[Future[None], str] = {}
        failed: dict[str, BaseException] = {}
        properties: ThreadProperties | None = None
        while waiting or running:
            ready = [] if failed else _ready(waiting, set(running.values()), due)
            if failed:
                waiting.clear()
            if len(ready) == 1 and not running:
                evaluate(waiting.pop(ready[0]))
                continue
            for name in ready:
                # With the job group among them, by which a step under way is cancelled.
                properties = properties or ThreadProperties.of_this_thread(self._context)
                running[self._started().submit(self._with, properties, evaluate, waiting.pop(name))] = name
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                name, error = running.pop(future), future.exception()
                if error is not None:
                    failed[name] = error
        for stage in stages:
            if stage.relation in failed:
                raise failed[stage.relation]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="stage")
        return self._pool

    @staticmethod
    def _with(properties: ThreadProperties, evaluate: Callable[[Stage], None], stage: Stage) -> None:
        properties.apply()
        evaluate(stage)


def _ready(waiting: dict[str, Stage], running: set[str], due: Callable[[Stage], bool]) -> list[str]:
    """The stages all that they read of is evaluated; those that are not due leave ``waiting``."""
    ready: list[str] = []
    for name, stage in list(waiting.items()):
        # Stages come after what they read, so that one pass finds all.
        if any(read != name and (read in waiting or read in running) for read in stage.reads):
            continue
        if due(stage):
            ready.append(name)
        else:
            del waiting[name]
    return ready


def _evaluated(stage: Stage, context: Context, state: Trace | None, stored: Trace | None) -> Outcome:
    """The outcome of one stage; ``stored`` are its contents before the step where they are kept."""
    match stage.node:
        case Full():
            return evaluate_full(stage, stage.node, context, stored or Trace(weighted(stage_schema(stage))))
        case AffectedKeys():
            return evaluate_keyed(stage, stage.node, context, stored)
        case Aggregate():
            if stage.node.is_linear:
                return evaluate_accumulators(stage, stage.node, context, state)
            return evaluate_touched(stage, stage.node, context, state)
        case AppendOnlyTopK():
            return evaluate_top_k(stage, stage.node, context, stored or Trace(weighted(stage_schema(stage))))
        case Recursive():
            return evaluate_recursive(stage, stage.node, context, state, stored or Trace(weighted(stage_schema(stage))))
        case Select() | UnionAll():
            return evaluate_linear(stage, stage.node, context)
        case _:
            raise TypeError(f"no operator for a {type(stage.node).__name__}")
