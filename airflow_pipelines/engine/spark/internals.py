"""The private parts of PySpark in one place: the Java objects behind a session, a context and a DataFrame.

Only the modules of this folder use these functions; no other module reads a private attribute of PySpark or imports py4j (the
linters check both). docs/spark-internals.md lists every private part that is used, and what happens when Spark changes it.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

JavaObject: TypeAlias = Any
"""An object of the JVM. Its methods are looked up when they are called, so the type does not list them."""


def jvm(context: SparkContext) -> JavaObject:
    """Return the root of the JVM's packages: ``jvm(context).java.util.ArrayList`` is a class."""
    within: Any = context
    return within._jvm


def end_jvm(limit_s: float) -> None:
    """End the JVM of this process, whose context has been stopped, and wait for it.

    :param limit_s: the maximum time to wait in seconds
    :raises subprocess.TimeoutExpired: if it has not ended by then
    """
    within: Any = SparkContext
    gateway = within._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(limit_s)


def scala_context(context: SparkContext) -> JavaObject:
    """Return Spark's own SparkContext.

    :raises AttributeError: if the context was stopped from Python
    """
    within: Any = context
    return within._jsc.sc()


def was_closed(context: SparkContext) -> bool:
    """Return True if Python has released a context, so that there is no Java object behind it."""
    within: Any = context
    return within._jsc is None


def java_session(session: SparkSession) -> JavaObject:
    """Return Spark's own SparkSession."""
    within: Any = session
    return within._jsparkSession


def java_frame(frame: DataFrame) -> JavaObject:
    """Return Spark's own Dataset."""
    within: Any = frame
    return within._jdf


def query_execution(frame: DataFrame) -> JavaObject:
    """Return the stages of planning of a DataFrame: analyzed, optimized and executed plan."""
    return java_frame(frame).queryExecution()


def frame_of(session: SparkSession, dataset: JavaObject) -> DataFrame:
    """Return the DataFrame of a Java Dataset."""
    return DataFrame(cast(Any, dataset), session)


def empty_rows(context: SparkContext) -> JavaObject:
    """Return a JavaRDD without rows."""
    within: Any = context
    return within._jsc.emptyRDD()


def singleton(package: JavaObject, name: str) -> JavaObject:
    """Return a Scala object, such as ``None`` of the package ``scala``."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
