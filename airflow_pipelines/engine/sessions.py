"""The Spark sessions of the engine: two siblings over one SparkContext, tuned for small and for large operators."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

SESSION_CONF: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.session.timeZone": "UTC",
    # Names are folded before Spark sees them, so two names that differ in case are two names.
    "spark.sql.caseSensitive": "true",
    # Otherwise ${name} in a query would be replaced by the value of a setting, secrets included, and move all positions.
    "spark.sql.variable.substitute": "false",
    # SELECT * FROM parquet.`path` would read any file of the host's machine.
    "spark.sql.runSQLOnFiles": "false",
    # Spark 4.2 still hides the TIME type behind this switch.
    "spark.sql.timeType.enabled": "true",
}
"""What every session of ours sets, so that a query means the same whoever runs it."""

APPLICATION_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""What an application of ours starts with unless its caller says otherwise."""

SMALL_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    # With one partition everywhere an operator is one Spark job of one task: no exchange, no broadcast, no adaptive re-planning.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""For operators whose inputs are all small."""

LARGE_CONF: Mapping[str, str] = {**SESSION_CONF, "spark.sql.adaptive.enabled": "true"}
"""For operators with a large input: Spark's own choices, adaptive execution on."""


@dataclass(frozen=True, slots=True)
class SparkSessions:
    """Two sessions of one application. Temporary views of one are not visible in the other."""

    small: SparkSession
    large: SparkSession

    @classmethod
    def of(cls, spark: SparkSession) -> SparkSessions:
        """Two new sessions beside ``spark``, whose own settings and views stay as they are."""
        # PySpark logs every failed analysis with its Java stack on stderr; callers get the same error as an exception.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        return cls(small=sibling(spark, SMALL_CONF), large=sibling(spark, LARGE_CONF))


def sibling(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """A new session of the same application with settings and temporary views of its own.

    :param spark: any session of the application
    :param conf: settings of the new session; what is not named has the application's value
    """
    session = spark.newSession()
    for key, value in conf.items():
        session.conf.set(key, value)
    return session


def build_spark(master: str | None, app_name: str, conf: Mapping[str, str]) -> SparkSession:
    """Start the Spark application of this process, or find it when it runs already.

    :param master: Spark master URL; None leaves it to spark-submit and the Spark defaults
    :param app_name: the application's name
    :param conf: settings on top of :data:`APPLICATION_CONF`, which they override
    """
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    for key, value in {**APPLICATION_CONF, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
