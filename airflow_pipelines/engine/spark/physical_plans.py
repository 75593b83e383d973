"""Spark's inner plans, as far as the running of one plan again and again needs them.

Spark plans a query for one run. A plan of one task without exchanges can be run again, since all that it does is an RDD over its
leaves, which reads them each time; what was exchanged or broadcast is kept, and would be found again by the next run.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_EXECUTION = "org.apache.spark.sql.execution"
_RERUNNABLE = frozenset(
    f"{_EXECUTION}.{name}"
    for name in (
        "CoalesceExec",
        "CollectLimitExec",
        "ExpandExec",
        "FilterExec",
        "GenerateExec",
        "LocalTableScanExec",
        "OneRowRelationExec",
        "ProjectExec",
        "RDDScanExec",
        "RangeExec",
        "SortExec",
        "TakeOrderedAndProjectExec",
        "UnionExec",
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
"""The physical nodes that read their children in every run and remember nothing of the run before."""
_GATHERING = frozenset(f"{_EXECUTION}.{name}" for name in ("CollectLimitExec", "TakeOrderedAndProjectExec"))
"""Those of them that exchange the rows of several partitions by themselves, and would find the exchanged rows again."""
_EXCHANGE = f"{_EXECUTION}.exchange.ShuffleExchangeExec"


def rerunnable(frame: DataFrame) -> DataFrame | None:
    """The same query as a frame that reads its leaves again in every run; None when it is not sure that there is one.

    All its leaves are to have one partition.
    """
    within: Any = frame
    session, execution = frame.sparkSession, within._jdf.queryExecution()
    analyzed = execution.analyzed()
    if analyzed.containsPattern(_inner(session).current_like):
        # Spark puts the time of planning into the plan.
        return None
    with _active(session):
        plan = _without_exchanges(session, execution.executedPlan())
    # A subquery keeps what it found. An expression that is not deterministic may keep anything.
    if plan.subqueriesAll().nonEmpty() or not plan.deterministic() or not all(map(_reads_again, _nodes(plan))):
        return None
    rows = plan.execute()
    if rows.getNumPartitions() > 1:
        return None
    leaf = one_partition(session, analyzed.output(), rows)
    return leaf if leaf.schema == frame.schema else None


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for at in range(children.length()):
        yield from _nodes(children.apply(at))


def _reads_again(node: Any) -> bool:
    """Whether a physical node gives what follows from its children's rows of the moment, in every run."""
    name = _class_of(node)
    if name in _GATHERING and node.children().head().execute().getNumPartitions() > 1:
        return False
    return name in _RERUNNABLE


def _class_of(node: Any) -> str:
    return str(node.getClass().getName())


def replanned(frame: DataFrame) -> DataFrame:
    """The same query, already parsed and analysed, to be planned anew."""
    within: Any = frame
    return _frame(frame.sparkSession, within._jdf.queryExecution().analyzed())


def one_partition(session: SparkSession, columns: Any, rdd: Any) -> DataFrame:
    """The rows of an RDD of one partition, with what Spark cannot see: that nothing is gained by splitting it into more.

    :param columns: the attributes of a plan, a Scala Seq
    :param rdd: an RDD of internal rows
    """
    inner = _inner(session)
    leaf = inner.rdd_leaf(columns, rdd, inner.single, inner.nil, False, inner.none, _java(session), inner.small, inner.none)
    return _frame(session, leaf)


def record_batch_rows(session: SparkSession, arrays: Any, schema: str) -> tuple[Any, Any]:
    """The rows of Arrow record batches: their attributes, a Scala Seq, and an RDD of them with a partition for each batch.

    :param session: a session in which Spark copies no rows into plans, however few
    :param arrays: a java.util.List of byte arrays, which Spark keeps as they are
    :param schema: the columns as JSON
    """
    inner = _inner(session)
    iterator = inner.converters.asScala(arrays.iterator())
    rows = inner.python.toDataFrame(iterator, schema, _java(session)).queryExecution().analyzed()
    return rows.output(), rows.rdd()


def _without_exchanges(session: SparkSession, plan: Any) -> Any:
    """A physical plan that leaves rows where they are when they are in one partition: after a join Spark no longer knows that."""
    children = plan.children()
    old = [children.apply(at) for at in range(children.length())]
    new = [_without_exchanges(session, child) for child in old]
    if _class_of(plan) == _EXCHANGE and new[0].outputPartitioning().numPartitions() == 1:
        return new[0]
    if all(one is other for one, other in zip(old, new, strict=True)):
        return plan
    inner = _inner(session)
    changed = inner.array_list()
    for child in new:
        changed.add(child)
    return plan.withNewChildren(inner.converters.asScala(changed).toSeq())


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Physical plans belong to the session that is active in the thread that makes them."""
    sessions = _inner(session).sessions
    before = sessions.getActiveSession()
    sessions.setActiveSession(_java(session))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _frame(session: SparkSession, plan: Any) -> DataFrame:
    return DataFrame(_inner(session).datasets.ofRows(_java(session), plan), session)


@dataclass(frozen=True, slots=True)
class _Inner:
    """Classes and objects of the JVM: each part of a name that leads to one costs a call."""

    converters: Any
    python: Any
    array_list: Any
    datasets: Any
    sessions: Any
    rdd_leaf: Any
    none: Any
    nil: Any
    single: Any
    small: Any
    current_like: Any


@functools.lru_cache(maxsize=8)
def _inner(session: SparkSession) -> _Inner:
    within: Any = session
    jvm = within._jvm
    sql = jvm.org.apache.spark.sql
    return _Inner(
        converters=jvm.scala.jdk.javaapi.CollectionConverters,
        python=jvm.PythonSQLUtils,
        array_list=jvm.java.util.ArrayList,
        datasets=_singleton(sql.classic, "Dataset"),
        sessions=sql.classic.SparkSession,
        rdd_leaf=sql.execution.LogicalRDD,
        none=_singleton(jvm.scala, "None"),
        nil=_singleton(jvm.scala.collection.immutable, "Nil"),
        single=_singleton(sql.catalyst.plans.physical, "SinglePartition"),
        small=jvm.scala.Some(sql.catalyst.plans.logical.OneRowRelation().computeStats()),
        current_like=sql.catalyst.trees.TreePattern.CURRENT_LIKE(),
    )


def _singleton(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _java(session: SparkSession) -> Any:
    within: Any = session
    return within._jsparkSession
