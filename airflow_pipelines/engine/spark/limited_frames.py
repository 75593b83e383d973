"""Results that end after a given number of rows, for readers that read one partition after the other and can stop.

For a LIMIT Spark reads the first rows of every partition, and exchanges them, before it returns one. If the query asks for no
order, any rows will do. So each partition may end on its own, and the reader stops when the partitions so far have enough rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_session, jvm, query_execution, singleton

_SORT: Final = re.compile(r"^[\s:+|-]*Sort\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Limited:
    """A frame to read, and the number of its rows after which to stop; None for all."""

    frame: DataFrame
    rows: int | None = None


def limited_by_partition(frame: DataFrame) -> Limited:
    """Return a frame whose partitions each end after the rows of a LIMIT, for a query that ends with one and asks for no order.

    :param frame: any query
    :returns: the limited frame; the frame itself for any other query
    """
    plan = query_execution(frame).analyzed()
    above = []
    while plan.nodeName() == "Project":
        above.append(plan)
        plan = plan.child()
    if plan.nodeName() != "GlobalLimit" or not str(plan.limitExpr()).isdigit():
        return Limited(frame)
    local = plan.child()
    if local.nodeName() != "LocalLimit" or _SORT.search(str(local.child().toString())):
        return Limited(frame)
    java, rows = jvm(frame.sparkSession.sparkContext), int(str(plan.limitExpr()))
    for node in reversed(above):
        children = java.java.util.ArrayList()
        children.add(local)
        local = node.withNewChildren(java.org.apache.spark.api.python.PythonUtils.toSeq(children))
    return Limited(_frame(frame, java, local), rows)


def first_of_each_partition(frame: DataFrame, rows: int) -> DataFrame:
    """Return a frame whose partitions each end after a number of rows.

    :param frame: any query
    :param rows: the maximum number of rows of each partition
    """
    java = jvm(frame.sparkSession.sparkContext)
    limit = java.org.apache.spark.sql.catalyst.plans.logical.LocalLimit
    number = singleton(java.org.apache.spark.sql.catalyst.expressions, "Literal").apply(rows)
    return _frame(frame, java, limit(number, query_execution(frame).analyzed()))


def _frame(frame: DataFrame, java: JavaObject, plan: JavaObject) -> DataFrame:
    session = frame.sparkSession
    return frame_of(session, java.org.apache.spark.sql.classic.Dataset.ofRows(java_session(session), plan))
