"""Collects all rows of a result from Spark as an Arrow table: for a request at most a limit of bytes."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowCollectSerializer

from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.internals import JavaObject, java_frame
from airflow_pipelines.engine.spark.intervals import readable
from airflow_pipelines.engine.spark.local_rows import local_rows
from airflow_pipelines.engine.spark.result_connection import ResultConnection, ResultTooLargeError, check_served


def collected(frame: DataFrame) -> pa.Table:
    """A DataFrame's rows as a pyarrow Table, in the types of batches.

    ``DataFrame.toArrow`` does nearly the same. It ends with a cast that fails for a VARIANT that is NULL and for intervals of
    months, and it waits for ever when the JVM has no memory for the result.

    :param frame: what to run
    :returns: its rows
    :raises MemoryError: when the JVM has no memory for the result
    """
    return Collector(ResultConnection()).collected(frame)


class Collector:
    """Collects the frames of one request.

    :param connection: what the rows come through
    :param limit_bytes: more bytes of Arrow data than this are too many, over all frames of the request; None: there is no limit
    """

    def __init__(self, connection: ResultConnection, limit_bytes: int | None = None) -> None:
        self._connection = connection
        self._limit_bytes = limit_bytes
        self._size = 0

    def collected(self, frame: DataFrame) -> pa.Table:
        """A frame's rows as a pyarrow Table, in the types of batches.

        :param frame: what to run
        :returns: its rows
        :raises MemoryError: when the JVM has no memory for the result
        :raises ResultTooLargeError: when there are too many bytes
        :raises AbortedError: when the connection was aborted
        """
        # It is planned here, where a lack of memory is an error with a text, and not in the thread that serves the result.
        local = local_rows(frame)
        if local is not None:
            batches = [self._counted(batch) for batch in local.read(self._connection)]
            return pa.Table.from_batches(batches) if batches else arrow_schema(frame.schema).empty_table()
        port, secret, server = java_frame(frame).collectAsArrowToPython()
        with self._connection.opened(port, secret) as source:
            batches = self._read(source, server, frame)
        if not batches:
            return arrow_schema(frame.schema).empty_table()
        return pa.Table.from_batches([readable(batch) for batch in batches])

    def _read(self, source: BinaryIO, server: JavaObject, frame: DataFrame) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        order: list[int] = []
        # PySpark does not type it.
        serializer: Any = ArrowCollectSerializer
        try:
            for part in serializer().load_stream(source):
                if isinstance(part, list):
                    order = part
                    continue
                batches.append(self._counted(part))
        except ResultTooLargeError:
            raise
        except Exception:
            self._connection.check()
            check_served(server, frame)
            raise
        with unwrap_spark_exception():
            server.getResult()
        return [batches[at] for at in order]

    def _counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._size += batch.nbytes
        if self._limit_bytes is not None and self._size > self._limit_bytes:
            raise ResultTooLargeError
        return batch
