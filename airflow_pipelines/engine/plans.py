"""Spark's inner plans, as far as the running of one plan again and again needs them.

Spark plans a query for one run. A plan of one task without exchanges can be run again, since all that it does is an RDD over its
leaves, which reads them each time; what was exchanged or broadcast is kept, and would be found again by the next run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_KEEPS_ROWS = re.compile(r"Exchange|ubquery")
"""What in a physical plan keeps the rows that it has found."""


def rerunnable(frame: DataFrame) -> DataFrame | None:
    """The same query as a frame that reads its leaves again in every run; None when there is no such plan for it.

    All its leaves are to have one partition.
    """
    within: Any = frame
    execution = within._jdf.queryExecution()
    plan = execution.executedPlan()
    if _KEEPS_ROWS.search(plan.toString()) is not None:
        with _active(frame.sparkSession):
            plan = _without_exchanges(frame.sparkSession, plan)
        if _KEEPS_ROWS.search(plan.toString()) is not None:
            return None
    leaf = one_partition(frame.sparkSession, execution.analyzed().output(), plan.execute())
    return leaf if leaf.schema == frame.schema else None


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


def from_record_batches(session: SparkSession, arrays: Any, schema: str) -> DataFrame:
    """The rows of Arrow record batches: a partition each.

    :param arrays: a java.util.List of byte arrays, which Spark keeps as they are
    :param schema: the columns as JSON
    """
    inner = _inner(session)
    usual = session.conf.get(_LOCAL_RELATIONS_UP_TO)
    session.conf.set(_LOCAL_RELATIONS_UP_TO, "0")
    try:
        iterator = inner.converters.asScala(arrays.iterator())
        rows = inner.python.toDataFrame(iterator, schema, _java(session)).queryExecution().analyzed()
    finally:
        session.conf.set(_LOCAL_RELATIONS_UP_TO, str(usual))
    return one_partition(session, rows.output(), rows.rdd())


_LOCAL_RELATIONS_UP_TO = "spark.sql.execution.arrow.localRelationThreshold"
"""Spark copies the rows of fewer bytes than this into the plan."""


def _without_exchanges(session: SparkSession, plan: Any) -> Any:
    """A physical plan that leaves rows where they are when they are in one partition: after a join Spark no longer knows that."""
    children = plan.children()
    old = [children.apply(at) for at in range(children.length())]
    new = [_without_exchanges(session, child) for child in old]
    if plan.getClass().getSimpleName() == "ShuffleExchangeExec" and new[0].outputPartitioning().numPartitions() == 1:
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
    )


def _singleton(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _java(session: SparkSession) -> Any:
    within: Any = session
    return within._jsparkSession
