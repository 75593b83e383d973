"""Transfer of a result of any size from Spark to Python, in its order, some partitions at a time.

``DataFrame.toArrow`` and ``collectAsArrowToPython`` run all partitions in one job and pass their rows on as they come. So a slow
reader holds up the scheduler of the whole application, and the right order is known only at the end.
``DataFrame.toLocalIterator`` runs one partition after the other, row by row. Here a **window** of partitions runs as one job, its
rows are read as Arrow batches, and the next window begins when the reader asks for more. So the JVM holds the rows of one window,
Python those of one batch, and nothing runs while the reader is busy.

A window is read when all of its partitions are done, which takes seconds if each has millions of rows. So the first batch comes
from a job of its own, which ends with that batch. This requires that the partition returns the same rows in the same order when it
runs again: files are read, nothing is exchanged, and every expression is deterministic. Rows that are known when the query is
planned need no job at all (:mod:`.local_rows`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.internals import JavaObject, java_frame, jvm, scala_context
from airflow_pipelines.engine.spark.limited_frames import limited_by_partition
from airflow_pipelines.engine.spark.local_rows import local_rows
from airflow_pipelines.engine.spark.logical_plans import analyzed_plan
from airflow_pipelines.engine.spark.physical_plans import active_session
from airflow_pipelines.engine.spark.result_connection import ResultConnection
from airflow_pipelines.engine.spark.served_batches import batch_schema, served_batches
from airflow_pipelines.engine.spark.session_tasks import conf_for_tasks

WINDOW_BYTES: Final = 32 << 20
"""The target size of a window in bytes.

The next window has fewer partitions after a larger one, and more after a much smaller one.
"""
GROWTH: Final = 4
"""The factor by which a window grows, and the maximum number of its partitions for each core."""
_READS_FILES: Final = "FileScanRDD"
_EXCHANGES: Final = "Shuffle"


def stream_tables(frame: DataFrame, connection: ResultConnection | None = None) -> Iterator[pa.Table]:
    """Yield a DataFrame's rows in their order, in pyarrow Tables of some thousand rows.

    The rows are those of :func:`~airflow_pipelines.engine.spark.collecting.collected`. Close the generator to read no more of them.

    :param frame: the DataFrame to run
    :param connection: the connection for the rows, for callers that may abort it
    :returns: at least one table, which is empty if there are no rows; all have one schema
    :raises MemoryError: when the JVM has no memory for a window
    :raises AbortedError: when the connection was aborted
    """
    limited = limited_by_partition(frame)
    left = limited.rows
    for table in _all_rows(limited.frame, connection or ResultConnection()):
        yield table if left is None else table.slice(0, left)
        if left is not None:
            left -= table.num_rows
            if left <= 0:
                return


def _all_rows(frame: DataFrame, connection: ResultConnection) -> Iterator[pa.Table]:
    local = local_rows(frame)
    if local is not None:
        return _in_tables(local.read(connection), frame)
    return _in_windows(frame, connection)


def _in_tables(batches: Iterator[pa.RecordBatch], frame: DataFrame) -> Iterator[pa.Table]:
    is_empty = True
    for batch in batches:
        is_empty = False
        yield pa.Table.from_batches([batch])
    if is_empty:
        yield arrow_schema(frame.schema).empty_table()


def _in_windows(frame: DataFrame, connection: ResultConnection) -> Iterator[pa.Table]:
    rows = _ArrowRows(frame)
    cores = frame.sparkSession.sparkContext.defaultParallelism
    window, begin, is_empty, is_first = cores, 0, True, False
    if rows.can_be_read_again and (first := rows.first(connection)) is not None:
        is_empty, is_first = False, True
        yield pa.Table.from_batches([first])
    while begin < rows.partitions:
        end = min(begin + window, rows.partitions)
        size = 0
        for batch in rows.read(begin, end, connection):
            size += batch.nbytes
            if is_first:
                is_first = False
                continue
            is_empty = False
            yield pa.Table.from_batches([batch])
        window = _next_window(end - begin, size, cores)
        begin = end
    if is_empty:
        yield arrow_schema(frame.schema).empty_table()


def _next_window(partitions: int, size: int, cores: int) -> int:
    """Return the number of partitions to run next, given that the last ``partitions`` had ``size`` bytes together."""
    if size > WINDOW_BYTES:
        return max(1, partitions * WINDOW_BYTES // size)
    if size * GROWTH <= WINDOW_BYTES:
        return min(partitions * GROWTH, cores * GROWTH)
    return partitions


class _ArrowRows:
    """A planned frame as an RDD of serialized record batches."""

    def __init__(self, frame: DataFrame) -> None:
        context = frame.sparkSession.sparkContext
        self._frame = frame
        self._java = _classes(context)
        self._context = scala_context(context)
        self._schema = batch_schema(frame)
        with active_session(frame.sparkSession), conf_for_tasks(frame.sparkSession):
            self._rdd = java_frame(frame).toArrowBatchRdd()
            self.partitions: int = self._rdd.getNumPartitions()

    @property
    def can_be_read_again(self) -> bool:
        """True if reading a partition takes long enough to begin with its first rows, and returns the same rows each time."""
        lineage = str(self._rdd.toDebugString())
        return _READS_FILES in lineage and _EXCHANGES not in lineage and analyzed_plan(self._frame).deterministic

    def first(self, connection: ResultConnection) -> pa.RecordBatch | None:
        """Return the first batch of the first partition, or None if that has no rows.

        :param connection: the connection for the rows
        """
        connection.check()
        numbers = self._java.hash_set()
        numbers.add(0)
        # A Scala set is also the predicate of its elements.
        only_first = self._java.converters.asScala(numbers).toSet()
        with conf_for_tasks(self._frame.sparkSession):
            partition = self._java.pruned.create(self._rdd, only_first)
            contents = list(partition.toJavaRDD().take(1))
        connection.check()
        return pa.ipc.read_record_batch(pa.py_buffer(bytes(contents[0])), self._schema) if contents else None

    def read(self, begin: int, end: int, connection: ResultConnection) -> Iterator[pa.RecordBatch]:
        """Run partitions as one job, and yield their rows.

        :param begin: the first partition
        :param end: the partition after the last
        :param connection: the connection for the rows
        """
        connection.check()
        partitions = self._java.array_list()
        for partition in range(begin, end):
            partitions.append(partition)
        with conf_for_tasks(self._frame.sparkSession):
            served = self._java.python.runJob(self._context, self._rdd.toJavaRDD(), partitions)
        yield from served_batches(served, self._frame, self._schema, connection)


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM, looked up once: each part of a name costs a call."""

    converters: JavaObject
    pruned: JavaObject
    python: JavaObject
    hash_set: JavaObject
    array_list: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    java = jvm(context)
    spark = java.org.apache.spark
    return _Classes(
        converters=java.scala.jdk.javaapi.CollectionConverters,
        pruned=spark.rdd.PartitionPruningRDD,
        python=java.PythonRDD,
        hash_set=java.java.util.HashSet,
        array_list=java.java.util.ArrayList,
    )
