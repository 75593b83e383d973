"""The engine's Spark sessions: several over one SparkContext, each tuned for operators of one size."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.function_registry import remove_other_functions
from airflow_pipelines.engine.spark.value_bytes import register_value_bytes

RECURSION_LEVELS = "spark.sql.cteRecursionLevelLimit"
"""The setting for the number of rounds after which a recursion fails; -1 for none."""

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
_FAILING_RULES = f"{_OPTIMIZER}.PushProjectionThroughUnion,{_OPTIMIZER}.CombineUnions"
"""The optimizer rules that fail in Spark 4.2 for an EXISTS in the SELECT list of a query over a UNION ALL.

The contents of a relation are read by such a query. The rules look for the columns of the subquery among those of the union.
Another rule prunes unused columns.
"""

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
    # These limits end endless recursions. Spark's own, 100 levels and a million rows, are less than some hierarchies have.
    RECURSION_LEVELS: "1000",
    "spark.sql.cteRecursionRowLimit": "100000000",
    # Otherwise Spark may write a VARIANT to Parquet in typed pieces, which only Spark can read.
    "spark.sql.variant.writeShredding.enabled": "false",
    # Otherwise the rows beside a Python function's arguments are copied into columns, which Spark 4.2 cannot do with a TIME.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # Spark's parser caches every form of statement that it has seen, and a host parses new ones for months. The cache is emptied
    # when it has this many percent of the driver's memory.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "5",
    _EXCLUDED_RULES: _FAILING_RULES,
    # Spark 4.2 still hides the TIME type behind this switch.
    "spark.sql.timeType.enabled": "true",
}
"""The settings of every session, so that a query means the same in all of them."""

APPLICATION_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Run the steps of several pipelines side by side, and before ad-hoc queries.
    "spark.scheduler.mode": "FAIR",
    # A task that runs out of memory fails alone. By default it ends its JVM, which in local mode runs all pipelines.
    "spark.executor.killOnFatalError.depth": "0",
    # Spark keeps what its web page would show in memory even without a page: a thousand plans as text, by default.
    "spark.sql.ui.retainedExecutions": "20",
    # Each query's plan is formatted for that page. In the default form this takes a tenth of a small query's time.
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}
"""The settings of the application, which its caller may override."""

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
    # A query over a few rows is interpreted in less time than it is compiled to Java.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""The settings for operators whose inputs are all small."""

COMPILED_CONF: Mapping[str, str] = {
    **SMALL_CONF,
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""The settings for operators whose inputs fit into one task, but have so many rows that compiling the query pays off."""

NARROW_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    # Small inputs are broadcast by hint. Planning again between the stages of such a job costs more than it can save.
    "spark.sql.adaptive.enabled": "false",
}
"""The settings for operators with small deltas over large contents: deltas are broadcast, and the contents are read once."""

LARGE_CONF: Mapping[str, str] = {**SESSION_CONF, "spark.sql.adaptive.enabled": "true"}
"""The settings for operators with a large delta: Spark's own choices, adaptive execution on."""

QUERY_CONF: Mapping[str, str] = {**LARGE_CONF, "spark.sql.files.maxPartitionBytes": "32m"}
"""The settings for ad-hoc requests over large contents.

Results come to Python by partitions, and the driver holds the rows of a few of them.
"""

IN_TASKS_CONF: Mapping[str, str] = {
    _EXCLUDED_RULES: f"{_FAILING_RULES},{_OPTIMIZER}.ConstantFolding,{_OPTIMIZER}.ConvertToLocalRelation",
}
"""The settings for queries whose constants may be huge: constants are evaluated in tasks, not during planning."""

SCHEDULER_POOLS = Path(__file__).with_name("scheduler.xml")


@dataclass(frozen=True, slots=True)
class SparkSessions:
    """The Spark sessions of one application. Temporary views of one are not visible in the others.

    :param small: the session with :data:`SMALL_CONF`
    :param compiled: the session with :data:`COMPILED_CONF`
    :param narrow: the session with :data:`NARROW_CONF`
    :param large: the session with :data:`LARGE_CONF`
    """

    small: SparkSession
    compiled: SparkSession
    narrow: SparkSession
    large: SparkSession

    @classmethod
    def of(cls, spark: SparkSession) -> SparkSessions:
        """Create new sessions of the application of ``spark``, which itself is not changed."""
        # PySpark logs every failed analysis with its Java stack on stderr; the caller gets the same error as an exception.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        partitions = {"spark.sql.shuffle.partitions": _shuffle_partitions(spark)}
        sessions = cls(
            small=sibling(spark, SMALL_CONF),
            compiled=sibling(spark, COMPILED_CONF),
            narrow=sibling(spark, {**NARROW_CONF, **partitions}),
            large=sibling(spark, {**LARGE_CONF, **partitions}),
        )
        for session in sessions.each:
            register_value_bytes(session)
        return sessions

    @property
    def each(self) -> tuple[SparkSession, ...]:
        """All sessions."""
        return self.small, self.compiled, self.narrow, self.large


def _shuffle_partitions(spark: SparkSession) -> str:
    """Return the application's own setting, else twice its cores, because Spark's default of 200 is for clusters."""
    context = spark.sparkContext
    return context.getConf().get("spark.sql.shuffle.partitions") or str(2 * context.defaultParallelism)


def sibling(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Create a session of the same application, with its own settings and temporary views, and with the allowed functions only.

    :param spark: any session of the application
    :param conf: the settings of the new session; others have the application's values
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
    """Start the Spark application of this process, or return it if it runs already.

    :param master: Spark master URL; None leaves it to spark-submit and the Spark defaults
    :param app_name: the application's name
    :param conf: settings on top of :data:`APPLICATION_CONF`, which they override
    """
    # Python functions run in processes of their own, which Spark would start with the python3 that is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    pools = {"spark.scheduler.allocation.file": SCHEDULER_POOLS.as_uri()} if SCHEDULER_POOLS.is_file() else {}
    for key, value in {**APPLICATION_CONF, **pools, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
