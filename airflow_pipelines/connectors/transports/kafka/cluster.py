"""Reading of large backlogs by a cluster: Spark fetches the records between offsets, and its tasks turn them into rows."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from uuid import uuid4

from pyspark.sql import SparkSession

from airflow_pipelines.connectors.base import Lag
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.kafka.cluster_blocks import BLOCK_TYPE, BlockReading, ClusterBlock, code
from airflow_pipelines.connectors.transports.kafka.cluster_ranges import Range, ResultPart, chosen_ranges, parts_of
from airflow_pipelines.connectors.transports.kafka.options import KafkaInputOptions
from airflow_pipelines.engine.errors import mask_secrets
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.failures import spark_cause
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs
from airflow_pipelines.engine.spark.sessions import LARGE_CONF, sibling
from airflow_pipelines.rows.formats.messages import MessageParser
from airflow_pipelines.systems.kafka.java_properties import NoJavaPropertyError, java_properties

logger = logging.getLogger(__name__)

LARGE_BACKLOG: Final = 500_000
"""The number of records up to which reading here is faster than starting tasks."""
_CORES: Final = 4
"""The minimum number of cores; with fewer, moving records to the tasks and back takes longer than reading here."""
_JOB_RECORDS: Final = 1_000_000
"""The maximum number of records that a Spark job reads."""
_JOB_BYTES: Final = 128 << 20
"""The approximate maximum size of a job's values in bytes, since the rows of a job come to this process at once."""
_BLOCK_RECORDS: Final = 20_000
_BLOCK_BYTES: Final = 16 << 20
"""The approximate number of bytes that a task processes at a time."""
_JOB_S: Final = 300.0
"""The maximum time of a job in seconds, with the start of executors.

Without it, a job for which the cluster has no room would wait forever.
"""
_ANSWER_MS: Final = 10_000
"""The time, in milliseconds, that a task, or Spark's planning, waits for a broker."""
_PATIENCE: Final[Mapping[str, str]] = {
    "kafkaConsumer.pollTimeoutMs": str(_ANSWER_MS),
    "fetchOffset.numRetries": "1",
    "kafka.request.timeout.ms": str(_ANSWER_MS),
    "kafka.default.api.timeout.ms": str(2 * _ANSWER_MS),
}

_CONF: Final[Mapping[str, str]] = {
    **LARGE_CONF,
    "spark.sql.execution.arrow.maxBytesPerBatch": str(_BLOCK_BYTES),
    # Plans show the options of their sources, which may be secret.
    "spark.sql.redaction.options.regex": "(?i)url|jaas|password|secret|truststore",
}


class ClusterReader:
    """A reader of large backlogs that uses a cluster, for as long as that works.

    Any error ends this way of reading for good: the consumer goes on at the same place, and reports what Kafka refuses.
    """

    def __init__(
        self,
        spark: SparkSession,
        properties: Mapping[str, str],
        new_reading: Callable[[], BlockReading],
        where: str,
        secrets: Sequence[str] = (),
    ) -> None:
        """Make a reader that has read nothing yet.

        :param spark: any session of the application
        :param properties: the properties of Java's client
        :param new_reading: a function that returns the way in which tasks read records
        :param where: the connector and its topic, for messages
        :param secrets: the texts that messages must not contain
        """
        self._secrets = secrets
        self._spark = spark
        self._properties = properties
        self._new_reading = new_reading
        self._where = where
        self._group = f"{where} {uuid4().hex}"
        self._session: SparkSession | None = None
        self._parts: deque[ResultPart] = deque()
        self._record_bytes: float | None = None
        self._works = True
        self._said = False

    def wants(self, lag: Lag | None) -> bool:
        """Return True if the backlog is so large that the cluster should read it. The size of records has to be known before.

        :param lag: the lag of the input, as far as it is known
        """
        is_much = lag is not None and (lag.records or 0) > LARGE_BACKLOG
        is_ready = self._works and self._record_bytes is not None and not self._parts
        return is_much and is_ready and _has_cores(self._spark)

    def saw(self, records: int, size_bytes: int) -> None:
        """Record the size of records that were read.

        :param records: the number of records
        :param size_bytes: the total size of their values
        """
        if records:
            self._record_bytes = max(size_bytes / records, 1.0)

    def fetch(self, places: Mapping[int, int], ends: Mapping[int, Range], max_records: int) -> None:
        """Read a part of the backlog, if it is large; :meth:`next_part` then returns it.

        :param places: the offset of the next record, by partition
        :param ends: the offsets of the oldest record and of the next one to be written, by partition
        :param max_records: the maximum number of records in one part
        """
        if any(not oldest <= places[partition] <= end for partition, (oldest, end) in ends.items()):
            # The consumer reports what is wrong if records are missing.
            return
        if sum(end - places[partition] for partition, (_, end) in ends.items()) <= LARGE_BACKLOG:
            return
        ranges = chosen_ranges(
            places, {partition: end for partition, (_, end) in ends.items()}, self._most(_JOB_RECORDS, _JOB_BYTES)
        )
        try:
            blocks = self._blocks(ranges, min(max_records, self._most(_BLOCK_RECORDS, _BLOCK_BYTES)))
        except Exception as error:  # noqa: BLE001  whatever keeps the cluster from it, the host can read by itself
            self._give_up(error)
            return
        self.saw(sum(end - start for start, end in ranges.values()), sum(block.fetched_bytes for block in blocks))
        self._parts.extend(parts_of(blocks, ranges))
        if not self._said:
            self._said = True
            logger.info("%s: tasks of the cluster read it while more than %d records are left", self._where, LARGE_BACKLOG)

    @property
    def has_parts(self) -> bool:
        """True if :meth:`next_part` returns anything."""
        return bool(self._parts)

    def next_part(self) -> ResultPart | None:
        """Return the next part of what was fetched, or None if there is none."""
        return self._parts.popleft() if self._parts else None

    def cancel(self) -> None:
        """Cancel the jobs of the reader, from any thread."""
        self._works = False
        try:
            cancel_jobs(self._spark.sparkContext, self._group)
        except Exception as error:  # noqa: BLE001  Spark may have ended before
            logger.debug("%s: its jobs were not cancelled: %s", self._where, spark_cause(error))

    def _most(self, records: int, size_bytes: int) -> int:
        """Return the number of records, at most ``records``, that have about ``size_bytes`` bytes, as far as is known."""
        return max(1, min(records, int(size_bytes / (self._record_bytes or 1.0))))

    def _blocks(self, ranges: Mapping[int, Range], max_records: int) -> list[ClusterBlock]:
        reading = self._new_reading()
        session = self._session = self._session or sibling(self._spark, _CONF)
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(max_records))
        context = session.sparkContext
        begin_jobs(context, self._group, self._where)
        topic = reading.topic
        options = {
            **{f"kafka.{name}": value for name, value in self._properties.items()},
            "assign": json.dumps({topic: sorted(ranges)}),
            "startingOffsets": _offsets(topic, {partition: start for partition, (start, _) in ranges.items()}),
            "endingOffsets": _offsets(topic, {partition: end for partition, (_, end) in ranges.items()}),
            "failOnDataLoss": "true",
            "includeHeaders": str(reading.header_filter is not None).lower(),
            "minPartitions": str(max(context.defaultParallelism, len(ranges))),
            **_PATIENCE,
        }
        columns = ("partition", "offset", "key", "value", *(("headers",) if reading.header_filter is not None else ()))
        records = session.read.format("kafka").options(**options).load().select(*columns)
        with self._limited_time():
            rows = collected(records.mapInArrow(reading, BLOCK_TYPE)).to_pylist()
        return [ClusterBlock.of_row(reading.schema.name, row) for row in rows]

    @contextmanager
    def _limited_time(self) -> Iterator[None]:
        """Cancel a job that takes too long.

        :raises TimeoutError: when it did
        """
        has_rung = threading.Event()

        def ring() -> None:
            has_rung.set()
            cancel_jobs(self._spark.sparkContext, self._group)

        alarm = threading.Timer(_JOB_S, ring)
        alarm.daemon = True
        alarm.start()
        try:
            yield
        except Exception as error:
            if has_rung.is_set():
                raise TimeoutError(f"it was not done within {_JOB_S:.0f} s: executors may be missing or slow") from error
            raise
        finally:
            alarm.cancel()

    def _give_up(self, error: Exception) -> None:
        if self._works:
            self._works = False
            logger.warning(
                "%s: the cluster cannot read it, so that the host goes on alone: %s. What a cluster needs says docs/kafka.md",
                self._where,
                self._without_secrets(spark_cause(error)).rstrip("."),
            )

    def _without_secrets(self, message: str) -> str:
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return mask_secrets(message)


def cluster_reader(options: KafkaInputOptions, context: InputContext) -> ClusterReader | None:
    """Return the reader of large backlogs of a connector, or None where the host reads them alone.

    :param options: the options of the connector
    :param context: the context with which it is opened
    """
    spark, where = context.spark, f"kafka_input {options.topic}"
    if spark is None or str(spark.sparkContext.master).split("[")[0] == "local":
        return None
    try:
        given = options.properties()
        properties = java_properties(given)
        reading = _reading(options, context)
    except (NoJavaPropertyError, _HostAloneError) as reason:
        logger.info("%s: the host reads it alone, without the cluster: %s", where, reason)
        return None
    # In the login configuration the password may be escaped, and so differ from the option.
    secrets = [text for text in (properties.get("sasl.jaas.config"), str(given.get("sasl.password") or "")) if text]
    return ClusterReader(spark, properties, lambda: replace(reading, now=context.now()), where, secrets)


class _HostAloneError(ValueError):
    """The error for a connector whose records tasks cannot read; its message says why."""


def _reading(options: KafkaInputOptions, context: InputContext) -> BlockReading:
    schema = context.schema
    if options.synchronize_partitions:
        raise _HostAloneError("'synchronize_partitions' needs the records of all partitions at one place")
    if schema.varying is not None or schema.described is not None:
        raise _HostAloneError("the host evaluates a DEFAULT of the table")
    if context.format is None or context.format_options is None or isinstance(context.new_parser(), MessageParser):
        raise _HostAloneError(f"format {context.format!r} is read by the host only")
    return BlockReading(options.topic, schema, context.format, context.format_options, options.header_filter, 0, code())


def _has_cores(spark: SparkSession) -> bool:
    """Return True if an application has enough cores, or gets them when it has something to do."""
    context = spark.sparkContext
    return context.defaultParallelism >= _CORES or context.getConf().get("spark.dynamicAllocation.enabled") == "true"


def _offsets(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in offsets.items()}})
