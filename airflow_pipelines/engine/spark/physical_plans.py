"""Spark's physical plans, as far as needed to run one plan several times.

Spark plans a query for one run. A plan of one task without exchanges can run again: it is an RDD over its leaves, which reads them
in every run. Exchanged or broadcast rows are kept, and the next run would read the old ones.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from airflow_pipelines.engine.spark.arrow_frames import record_batch_dataset
from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_session, jvm, query_execution, singleton

_EXECUTION = "org.apache.spark.sql.execution"
_RERUNNABLE = frozenset(
    f"{_EXECUTION}.{name}"
    for name in (
        "CoalesceExec",
        "CollectLimitExec",
        "ExpandExec",
        "FilterExec",
        "GenerateExec",
        "InputAdapter",
        "LocalTableScanExec",
        "OneRowRelationExec",
        "ProjectExec",
        "RDDScanExec",
        "RangeExec",
        "SortExec",
        "TakeOrderedAndProjectExec",
        "UnionExec",
        "WholeStageCodegenExec",
        "aggregate.HashAggregateExec",
        "aggregate.MergingSessionsExec",
        "aggregate.ObjectHashAggregateExec",
        "aggregate.SortAggregateExec",
        "aggregate.UpdatingSessionsExec",
        "joins.CartesianProductExec",
        "joins.ShuffledHashJoinExec",
        "joins.SortMergeJoinExec",
        "python.ArrowEvalPythonExec",
        "python.BatchEvalPythonExec",
        "window.WindowExec",
        "window.WindowGroupLimitExec",
    )
)
"""The physical nodes that read their children in every run and keep nothing from the previous run."""
_PYTHON = f"{_EXECUTION}.python."
"""The prefix of nodes whose rows come from a Python process, which only an executor starts and ends."""
_SQUARE = (f"{_EXECUTION}.joins.", f"{_EXECUTION}.window.")
"""The prefixes of nodes whose work may grow with the square of their rows."""
_GATHERING = frozenset(f"{_EXECUTION}.{name}" for name in ("CollectLimitExec", "TakeOrderedAndProjectExec"))
"""The rerunnable nodes that exchange the rows of several partitions themselves, and keep the exchanged rows."""
_EXCHANGE = f"{_EXECUTION}.exchange.ShuffleExchangeExec"


@dataclass(frozen=True, slots=True)
class RerunnablePlan:
    """A physical plan that reads its leaves again in every run.

    :param rows: its rows, an RDD of one partition
    :param columns: its attributes, a Scala Seq
    :param needs_executor: True if it needs processes that only an executor has
    :param may_square: True if its work may grow with the square of the rows that it reads
    """

    rows: JavaObject
    columns: JavaObject
    needs_executor: bool
    may_square: bool


def rerunnable(frame: DataFrame) -> RerunnablePlan | None:
    """Return the plan of a query, if it reads its leaves again in every run.

    :param frame: a query whose leaves all have one partition
    :returns: the plan; None if it is not certain that it reads them again
    """
    session, execution = frame.sparkSession, query_execution(frame)
    analyzed = execution.analyzed()
    if analyzed.containsPattern(_classes(session).current_like):
        # Spark embeds the time of planning in the plan.
        return None
    with active_session(session):
        plan = _remove_exchanges(session, execution.executedPlan())
    # A subquery keeps its result, and a nondeterministic expression may keep any state.
    nodes = list(_nodes(plan))
    if plan.subqueriesAll().nonEmpty() or not plan.deterministic() or not all(map(_reads_again, nodes)):
        return None
    rows = plan.execute()
    if rows.getNumPartitions() != 1:
        return None
    names = [_class_of(node) for node in nodes]
    return RerunnablePlan(
        rows,
        analyzed.output(),
        needs_executor=any(name.startswith(_PYTHON) for name in names),
        may_square=any(name.startswith(_SQUARE) for name in names),
    )


def as_frame(frame: DataFrame, plan: RerunnablePlan) -> DataFrame | None:
    """Return a plan as a DataFrame that can be run many times, each time as a job.

    :param frame: the query of the plan
    :returns: the DataFrame; None if its columns would not be those of the query
    """
    leaf = one_partition(frame.sparkSession, plan.columns, plan.rows)
    return leaf if leaf.schema == frame.schema else None


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    """Yield a plan's nodes, each before its children."""
    yield plan
    children = plan.children()
    for at in range(children.length()):
        yield from _nodes(children.apply(at))


def _reads_again(node: JavaObject) -> bool:
    """Return True if a physical node evaluates its children's current rows in every run."""
    name = _class_of(node)
    if name in _GATHERING and node.children().head().execute().getNumPartitions() > 1:
        return False
    return name in _RERUNNABLE


def _class_of(node: JavaObject) -> str:
    return str(node.getClass().getName())


def replan(frame: DataFrame) -> DataFrame:
    """Return the same query, already parsed and analysed, to be planned again."""
    return _frame(frame.sparkSession, query_execution(frame).analyzed())


def shown_plan(frame: DataFrame) -> str:
    """Return the physical plan of a query, node by node, as Spark shows it.

    :param frame: the query, which is planned now if it was not before
    """
    return str(query_execution(frame).executedPlan().toString())


def one_partition(session: SparkSession, columns: JavaObject, rdd: JavaObject) -> DataFrame:
    """Return a DataFrame of the rows of an RDD of one partition.

    The plan states that it has one partition and is small, which Spark cannot find out.

    :param columns: the attributes of a plan, a Scala Seq
    :param rdd: an RDD of internal rows
    """
    java, none = _classes(session), _classes(session).none
    leaf = java.rdd_leaf(columns, rdd, java.single_partition, java.nil, False, none, java_session(session), java.one_row, none)
    return _frame(session, leaf)


def record_batch_rows(session: SparkSession, arrays: JavaObject, schema: str) -> tuple[JavaObject, JavaObject]:
    """Return the rows of Arrow record batches, for :func:`one_partition`.

    :param session: a session in which Spark copies no rows into plans, however few
    :param arrays: a java.util.List of byte arrays, which Spark keeps as they are
    :param schema: the columns as JSON
    :returns: the attributes as a Scala Seq, and an RDD of internal rows with a partition for each batch
    """
    rows = record_batch_dataset(session, arrays, schema).queryExecution().analyzed()
    return rows.output(), rows.rdd()


def _remove_exchanges(session: SparkSession, plan: JavaObject) -> JavaObject:
    """Return a physical plan without exchanges of rows that are in one partition already.

    Spark does not know that they are after a join.
    """
    children = plan.children()
    old = [children.apply(at) for at in range(children.length())]
    new = [_remove_exchanges(session, child) for child in old]
    if _class_of(plan) == _EXCHANGE and new[0].outputPartitioning().numPartitions() == 1:
        return new[0]
    if all(one is other for one, other in zip(old, new, strict=True)):
        return plan
    java = _classes(session)
    changed = java.array_list()
    for child in new:
        changed.add(child)
    return plan.withNewChildren(java.converters.asScala(changed).toSeq())


@contextmanager
def active_session(session: SparkSession) -> Iterator[None]:
    """Make a session the thread's active one within the block, because a physical plan belongs to its thread's active session."""
    sessions = _classes(session).sessions
    before = sessions.getActiveSession()
    sessions.setActiveSession(java_session(session))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _frame(session: SparkSession, plan: JavaObject) -> DataFrame:
    """Return the DataFrame of a logical plan."""
    return frame_of(session, _classes(session).datasets.ofRows(java_session(session), plan))


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes and objects of the JVM, looked up once: each part of a name costs a call."""

    converters: JavaObject
    array_list: JavaObject
    datasets: JavaObject
    sessions: JavaObject
    rdd_leaf: JavaObject
    none: JavaObject
    nil: JavaObject
    single_partition: JavaObject
    one_row: JavaObject
    current_like: JavaObject


@functools.lru_cache(maxsize=8)
def _classes(session: SparkSession) -> _Classes:
    java = jvm(session.sparkContext)
    sql = java.org.apache.spark.sql
    return _Classes(
        converters=java.scala.jdk.javaapi.CollectionConverters,
        array_list=java.java.util.ArrayList,
        datasets=singleton(sql.classic, "Dataset"),
        sessions=sql.classic.SparkSession,
        rdd_leaf=sql.execution.LogicalRDD,
        none=singleton(java.scala, "None"),
        nil=singleton(java.scala.collection.immutable, "Nil"),
        single_partition=singleton(sql.catalyst.plans.physical, "SinglePartition"),
        one_row=java.scala.Some(sql.catalyst.plans.logical.OneRowRelation().computeStats()),
        current_like=sql.catalyst.trees.TreePattern.CURRENT_LIKE(),
    )
