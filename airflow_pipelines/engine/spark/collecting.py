"""Collection of all rows of a result from Spark as an Arrow table, for a request with a limit of bytes."""

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
    """Return a DataFrame's rows as a pyarrow Table, in the types of batches.

    ``DataFrame.toArrow`` does nearly the same. It ends with a cast that fails for a NULL VARIANT and for intervals of months, and
    it waits forever when the JVM has no memory for the result.

    :param frame: the DataFrame to run
    :returns: the rows of the frame
    :raises MemoryError: when the JVM has no memory for the result
    """
    return FrameCollector(ResultConnection()).collected(frame)


class FrameCollector:
    """The collector of the frames of one request.

    :param connection: the connection for the rows
    :param limit_bytes: the maximum number of bytes of Arrow data of all frames of the request together; None for no limit
    """

    def __init__(self, connection: ResultConnection, limit_bytes: int | None = None) -> None:
        self._connection = connection
        self._limit_bytes = limit_bytes
        self._size = 0

    def collected(self, frame: DataFrame) -> pa.Table:
        """Return a frame's rows as a pyarrow Table, in the types of batches.

        :param frame: the DataFrame to run
        :returns: the rows of the frame
        :raises MemoryError: when the JVM has no memory for the result
        :raises ResultTooLargeError: when the limit of bytes is exceeded
        :raises AbortedError: when the connection was aborted
        """
        # Plan the frame here, where a lack of memory raises a clear error, and not in the thread that serves the result.
        local = local_rows(frame)
        if local is not None:
            batches = [self._count_bytes(batch) for batch in local.read(self._connection)]
            return pa.Table.from_batches(batches) if batches else arrow_schema(frame.schema).empty_table()
        port, secret, server = java_frame(frame).collectAsArrowToPython()
        with self._connection.open(port, secret) as source:
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
                batches.append(self._count_bytes(part))
        except ResultTooLargeError:
            raise
        except Exception:
            self._connection.check()
            check_served(server, frame)
            raise
        with unwrap_spark_exception():
            server.getResult()
        return [batches[at] for at in order]

    def _count_bytes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._size += batch.nbytes
        if self._limit_bytes is not None and self._size > self._limit_bytes:
            raise ResultTooLargeError
        return batch
