"""DataFrames over an executed plan: reading one again runs only what comes after the last exchange.

Spark executes a DataFrame anew for each action. Here the exchanges of one run serve all actions, so that a result can be examined
before it is decided where its rows go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_frame, java_session, query_execution
from airflow_pipelines.engine.spark.physical_plans import active_session
from airflow_pipelines.engine.spark.session_tasks import conf_for_tasks

_EXCHANGES: Final = frozenset({"ShuffleQueryStageExec", "BroadcastQueryStageExec"})
"""The plan nodes that represent exchanges which have run."""


@dataclass(frozen=True, slots=True)
class ExecutedFrame:
    """A DataFrame whose exchanges have run.

    :param frame: the rows
    :param partitions: the number of tasks that compute them
    :param exchanged: the number of rows that these tasks read from the exchanges; None if the tasks also read anything else
    """

    frame: DataFrame
    partitions: int
    exchanged: int | None


def execute_exchanges(frame: DataFrame) -> ExecutedFrame:
    """Run the exchanges of a frame now and once, and return its rows as a frame.

    :param frame: the frame to run, in a session that plans adaptively
    """
    session, execution = frame.sparkSession, query_execution(frame)
    with active_session(session), conf_for_tasks(session):
        rows = execution.toRdd()
        partitions = int(rows.getNumPartitions())
    java = java_session(session).internalCreateDataFrame(rows, java_frame(frame).schema(), False)
    return ExecutedFrame(frame_of(session, java), partitions, _count_exchanged(execution.executedPlan()))


def _count_exchanged(plan: JavaObject) -> int | None:
    """Return the number of rows of the exchanges below an executed adaptive plan, or None if there are other leaves."""
    rows = 0
    for leaf in _leaves(plan):
        if _class_of(leaf) not in _EXCHANGES:
            return None
        count = leaf.getRuntimeStatistics().rowCount()
        if count.isEmpty():
            return None
        rows += int(str(count.get()))
    return rows


def _leaves(plan: JavaObject) -> Iterator[JavaObject]:
    match _class_of(plan):
        case "AdaptiveSparkPlanExec":
            yield from _leaves(plan.executedPlan())
        case "ResultQueryStageExec":
            yield from _leaves(plan.plan())
        case name if name in _EXCHANGES or plan.children().isEmpty():
            yield plan
        case _:
            children = plan.children()
            for at in range(children.length()):
                yield from _leaves(children.apply(at))


def _class_of(plan: JavaObject) -> str:
    return str(plan.getClass().getSimpleName())
