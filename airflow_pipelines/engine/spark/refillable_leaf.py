"""Leaves of Spark plans whose rows can be replaced, so that a query that was planned once can be run over other rows.

Spark creates the rows of ``createDataFrame(pyarrow.Table)`` from byte arrays with Arrow record batches, one per partition, and
reads the arrays again whenever it sends a task to an executor. A refillable leaf keeps a reference to its array and writes another
record batch into it between two runs. Spark does not promise that it never copies the array; :mod:`.rerun_probe` tests that.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.arrow_frames import relaxed
from airflow_pipelines.engine.spark.internals import JavaObject, jvm
from airflow_pipelines.engine.spark.physical_plans import one_partition, record_batch_rows
from airflow_pipelines.engine.spark.sessions import SESSION_CONF, sibling

_LEAST_BYTES = 16 << 10
_ROOM = 2
"""The capacity of a leaf as a multiple of the bytes of its first rows ..."""
_AMPLE = 1 << 20
"""... and the number of bytes of first rows above which it is only a quarter more."""
_SENT = 256 << 10
"""The maximum number of bytes that are sent to the JVM; it reads more from a file."""
_PIECE = 4 << 20
_READING_CONF: Mapping[str, str] = {
    **SESSION_CONF,
    # Spark copies rows with fewer bytes than this into the plan.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}


class LeafRows(Protocol):
    """Rows in memory that a leaf can hold."""

    @property
    def number(self) -> int:
        """The number that identifies the rows within the process."""

    @property
    def schema(self) -> StructType:
        """The Spark types of the columns."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    @property
    def table(self) -> pa.Table | None:
        """The rows; None when they are only in files."""

    @property
    def memory_bytes(self) -> int:
        """The size of the rows in bytes."""


class RefillableLeaf:
    """A leaf of the plans of one session. It has a copy of the rows that were last put into it."""

    def __init__(self, session: SparkSession, reading: SparkSession, batch: LeafRows) -> None:
        """Create a leaf with room for more rows than it gets.

        :param session: the session whose plans read the leaf
        :param reading: a session of :data:`_READING_CONF`
        :param batch: the first rows, a batch in memory
        """
        self.capacity = _capacity(len(_record(batch.table)))
        self._java = java = _java(session.sparkContext)
        self._buffer = java.buffers.allocate(self.capacity)
        self._holds: int | None = None
        # Before Spark gets the buffer: it may read rows out of it at any time, and zeros are no record batch.
        self.fill(batch)
        # Python would get a copy of the array, so Java itself takes the array out of the buffer.
        arrays = java.collections.singletonList(self._buffer).stream().map(java.array_of).toList()
        columns, rows = record_batch_rows(reading, arrays, relaxed(batch.schema).json())
        self.frame = one_partition(session, columns, rows)

    def fill(self, batch: LeafRows) -> bool:
        """Replace the rows.

        :param batch: a batch in memory
        :returns: True if they were replaced; False, with nothing changed, if the leaf has no room for the batch
        """
        if self._holds == batch.number:
            return True
        record = _record(batch.table)
        if len(record) > self.capacity:
            return False
        self._holds = None
        if len(record) <= _SENT or not self._read_from_file(record):
            self._buffer.put(0, record)
        self._holds = batch.number
        return True

    def _read_from_file(self, record: bytes) -> bool:
        """Make the JVM read many bytes from a file. As an argument of a call they would be text, which takes ten times as long.

        :param record: the bytes
        :returns: True if it has read them; False if there is no room for a file
        """
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="airflow-pipelines-leaf-"))
                file.write(record)
                file.flush()
            except OSError:
                return False
            channel = self._java.files(file.name).getChannel()
            stack.callback(self._buffer.clear)
            stack.callback(channel.close)
            for start in range(0, len(record), _PIECE):
                # Java reads into memory of its own first, which it keeps for as long as the thread lives.
                self._buffer.limit(min(start + _PIECE, len(record))).position(start)
                while self._buffer.hasRemaining():
                    if channel.read(self._buffer) < 0:
                        raise EOFError(f"a file of {len(record)} bytes ended before them")
        return True


class LeafFactory:
    """A factory of leaves for the plans of one session. Any thread may use it: it changes nothing that others use."""

    def __init__(self, session: SparkSession, reading: SparkSession | None = None) -> None:
        """Create a factory of leaves for a session.

        :param session: the session whose plans read the leaves
        :param reading: a session of :data:`_READING_CONF`; None to create one
        """
        self.session = session
        # Only leaves need the setting. Setting and restoring it in ``session`` would affect queries of other threads.
        self._reading = reading or sibling(session, _READING_CONF)

    def of(self, session: SparkSession) -> LeafFactory:
        """Return a factory of leaves for another session of the same application."""
        return LeafFactory(session, self._reading)

    def leaf(self, batch: LeafRows) -> RefillableLeaf:
        """Return a leaf with the rows of a batch in memory."""
        return RefillableLeaf(self.session, self._reading, batch)


def _capacity(size: int) -> int:
    """Return the capacity of a leaf in bytes, given the size of its first rows."""
    return size + size // 4 if size > _AMPLE else max(_LEAST_BYTES, 1 << (_ROOM * size).bit_length())


def _record(table: pa.Table) -> bytes:
    """Return the rows of a pyarrow Table as one Arrow record batch, an encapsulated message."""
    batches = table.combine_chunks().to_batches()
    batch = (
        batches[0]
        if batches
        else pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)
    )
    return bytes(batch.serialize())


@dataclass(frozen=True, slots=True)
class _Java:
    """Classes of the JVM, and ``ByteBuffer::array`` as a java.util.function.Function."""

    buffers: JavaObject
    files: JavaObject
    collections: JavaObject
    array_of: JavaObject


@functools.lru_cache(maxsize=4)
def _java(context: SparkContext) -> _Java:
    java = jvm(context).java
    invoke, named = java.lang.invoke, java.lang.Class.forName
    array = invoke.MethodHandles.publicLookup().findVirtual(
        named("java.nio.ByteBuffer"), "array", invoke.MethodType.methodType(named("[B"))
    )
    function = invoke.MethodHandleProxies.asInterfaceInstance(named("java.util.function.Function"), array)
    return _Java(java.nio.ByteBuffer, java.io.FileInputStream, java.util.Collections, function)
