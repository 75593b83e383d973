"""Nexmark on Spark Structured Streaming, where it can express the query.

It reads the same batches of Parquet files, one batch per trigger, and writes to Spark's noop sink. State is kept by its default
state store, in as many partitions as our engine uses; the time runs from the start of the query to its end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import TimestampNTZType

from airflow_pipelines.engine.spark.sessions import LARGE_CONF, SparkSessions, sibling
from benchmarks.measure import timed
from benchmarks.nexmark.queries import QUERIES, Query
from benchmarks.nexmark.streams import Stream

NOT_EXPRESSIBLE: Mapping[str, str] = {
    "q4": "an aggregate without a time window over another aggregate",
    "q5": "an aggregate over the windows of another one",
    "q6": "a window function over an aggregate",
    "q9": "a ranking over a join",
    "q15": "distinct aggregates",
    "q16": "distinct aggregates",
    "q19": "a ranking",
}
"""Queries that Structured Streaming refuses, and what it refuses in them."""

_LAST_BID = """
    SELECT auction, bidder, last.price, last.channel, last.url, last.date_time, last.extra
    FROM (SELECT auction, bidder, MAX(STRUCT(date_time, price, channel, url, extra)) AS last FROM bid GROUP BY auction, bidder)
"""
_REWRITTEN: Mapping[str, str] = {"q18": _LAST_BID}
"""Queries that it takes only in other words."""
_UPDATING = frozenset({"q17", "q18"})
"""Queries without a time window, whose groups are given again whenever they change; the others give final rows only."""


@dataclass(frozen=True)
class StructuredRun:
    """What one query took."""

    query: str
    events: int
    seconds: float

    @property
    def events_per_s(self) -> float:
        """Events of the whole stream per second."""
        return self.events / self.seconds


def run_structured(query: Query, sessions: SparkSessions, stream: Stream, size: int) -> StructuredRun:
    """Run a query that is not in :data:`NOT_EXPRESSIBLE` over the whole stream, ``size`` events per trigger."""
    conf = {**LARGE_CONF, "spark.sql.shuffle.partitions": sessions.large.conf.get("spark.sql.shuffle.partitions") or "4"}
    session = sibling(sessions.large, conf)
    for name in query.reads:
        _register(session, name, stream, size)
    with tempfile.TemporaryDirectory(prefix="pipelines-nexmark-") as folder, timed() as watch:
        frame = session.sql(_REWRITTEN.get(query.name, query.text))
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True)
        running = writer.outputMode("update" if query.name in _UPDATING else "append").start()
        running.awaitTermination()
    return StructuredRun(query.name, stream.events, watch.seconds)


def expressible() -> tuple[Query, ...]:
    """Return the queries that Structured Streaming can run."""
    return tuple(query for query in QUERIES if query.name not in NOT_EXPRESSIBLE)


def _register(session: SparkSession, name: str, stream: Stream, size: int) -> None:
    if name == "side_input":
        session.read.parquet(str(stream.side_input())).createOrReplaceTempView(name)
        return
    first = stream.batches(size)[0] / f"{name}.parquet"
    schema = session.read.parquet(str(first)).schema
    pattern = str(first.parent.parent / "*" / first.name)
    frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(pattern)
    # A watermark takes timestamps with a time zone only, and the session's is UTC.
    for field in schema.fields:
        if isinstance(field.dataType, TimestampNTZType):
            frame = frame.withColumn(field.name, frame[field.name].cast("timestamp"))
    frame.withWatermark("date_time", "4 seconds").createOrReplaceTempView(name)
