"""The Spark sessions of the engine: siblings over one SparkContext, tuned for the three sizes of an operator's work."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_pipelines.engine.functions.value_bytes import register_value_bytes
from airflow_pipelines.engine.spark.function_registry import remove_other_functions

RECURSION_LEVELS = "spark.sql.cteRecursionLevelLimit"
"""The setting that says after how many rounds a recursion without an end is given up; -1 for never."""

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
    # Spark's default, INT96, is read back as nanoseconds, which do not reach all the years that a timestamp may have.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark's own limits, 100 levels and a million rows, are less than some hierarchies have; they are there to end endless ones.
    RECURSION_LEVELS: "1000",
    "spark.sql.cteRecursionRowLimit": "100000000",
    # Otherwise a VARIANT may be written to Parquet in typed pieces, which only Spark itself puts together again.
    "spark.sql.variant.writeShredding.enabled": "false",
    # Spark's parser remembers every form of statement that it has seen, and a host reads new ones for months. At this many percent
    # of the driver's memory it forgets them.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "5",
    # Spark 4.2 still hides the TIME type behind this switch.
    "spark.sql.timeType.enabled": "true",
}
"""What every session of ours sets, so that a query means the same whoever runs it."""

APPLICATION_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # The steps of several pipelines side by side, and before ad-hoc queries.
    "spark.scheduler.mode": "FAIR",
    # A task that runs out of memory fails; by default it would take its JVM along, which in local mode runs all pipelines.
    "spark.executor.killOnFatalError.depth": "0",
    # What Spark's web page would show is kept in memory even where there is no page: a thousand plans as text, by default.
    "spark.sql.ui.retainedExecutions": "20",
    # Each query's plan is written as text for that page; in the default form this takes a tenth of a small query's time.
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
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
    # A plan without exchanges can be run again, and one of one task needs none: see engine/spark/physical_plans.py.
    "spark.sql.exchange.reuse": "false",
    # Each step's query is a new one, over a few rows: to interpret it takes less time than to compile it to Java first.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For operators whose inputs are all small."""

NARROW_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    # What is small is broadcast by hint; re-planning between the stages of such a job costs more than it can save.
    "spark.sql.adaptive.enabled": "false",
}
"""For operators with small deltas over large contents: the contents are streamed past the deltas once."""

LARGE_CONF: Mapping[str, str] = {**SESSION_CONF, "spark.sql.adaptive.enabled": "true"}
"""For operators with a large delta: Spark's own choices, adaptive execution on."""

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
IN_TASKS_CONF: Mapping[str, str] = {
    "spark.sql.optimizer.excludedRules": f"{_OPTIMIZER}.ConstantFolding,{_OPTIMIZER}.ConvertToLocalRelation"
}
"""For queries whose constants may be huge: also what does not depend on any row is computed in tasks, not while planning."""

SCHEDULER_POOLS = Path(__file__).with_name("scheduler.xml")


@dataclass(frozen=True, slots=True)
class SparkSessions:
    """Three sessions of one application. Temporary views of one are not visible in the others."""

    small: SparkSession
    narrow: SparkSession
    large: SparkSession

    @classmethod
    def of(cls, spark: SparkSession) -> SparkSessions:
        """New sessions beside ``spark``, whose own settings and views stay as they are."""
        # PySpark logs every failed analysis with its Java stack on stderr; callers get the same error as an exception.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        partitions = {"spark.sql.shuffle.partitions": _shuffle_partitions(spark)}
        sessions = cls(
            small=sibling(spark, SMALL_CONF),
            narrow=sibling(spark, {**NARROW_CONF, **partitions}),
            large=sibling(spark, {**LARGE_CONF, **partitions}),
        )
        for session in (sessions.small, sessions.narrow, sessions.large):
            register_value_bytes(session)
        return sessions


def _shuffle_partitions(spark: SparkSession) -> str:
    """What the application was started with, else twice its cores: Spark's own default of 200 is made for clusters."""
    context = spark.sparkContext
    return context.getConf().get("spark.sql.shuffle.partitions") or str(2 * context.defaultParallelism)


def sibling(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """A new session of the same application with settings and temporary views of its own, and allowed functions only.

    :param spark: any session of the application
    :param conf: settings of the new session; what is not named has the application's value
    """
    session = spark.newSession()
    for key, value in conf.items():
        session.conf.set(key, value)
    started_with = spark.sparkContext.getConf().get(RECURSION_LEVELS)
    if started_with is not None:
        session.conf.set(RECURSION_LEVELS, started_with)
    remove_other_functions(session)
    return session


def build_spark(master: str | None, app_name: str, conf: Mapping[str, str]) -> SparkSession:
    """Start the Spark application of this process, or find it when it runs already.

    :param master: Spark master URL; None leaves it to spark-submit and the Spark defaults
    :param app_name: the application's name
    :param conf: settings on top of :data:`APPLICATION_CONF`, which they override
    """
    # Python functions run in processes beside this one; Spark would start them with whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    pools = {"spark.scheduler.allocation.file": SCHEDULER_POOLS.as_uri()} if SCHEDULER_POOLS.is_file() else {}
    for key, value in {**APPLICATION_CONF, **pools, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
