"""Leaves of Spark plans whose rows can be replaced, so that a query that was planned once can be run over other rows.

Spark makes the rows of ``createDataFrame(pyarrow.Table)`` out of byte arrays with Arrow record batches, one per partition, and
reads the arrays again whenever a task is sent to an executor. A slot keeps hold of its array and writes another record batch into
it between two runs. What Spark does not promise is that it never copies the array; :func:`can_refill` looks whether it does.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.arrow import collected, relaxed
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.plans import from_record_batches

_LEAST_BYTES = 16 << 10
_ROOM = 2
"""A slot has so many times the bytes of its first rows."""


class Slot:
    """A leaf of plans of one session, with a copy of the rows that were last put into it."""

    def __init__(self, session: SparkSession, batch: Batch) -> None:
        """A slot with the rows of a batch in memory, and with room for some more.

        :param session: the session the plans of which read the slot; the caller keeps others from using it meanwhile
        """
        self.capacity = max(_LEAST_BYTES, 1 << (_ROOM * len(_record(batch.table))).bit_length())
        java = _java(session.sparkContext)
        self._buffer = java.buffers.allocate(self.capacity)
        self._holds: int | None = None
        # An array would come to Python as a copy; so Java takes it out of the buffer by itself.
        arrays = java.collections.singletonList(self._buffer).stream().map(java.array_of).toList()
        self.frame = from_record_batches(session, arrays, relaxed(batch.schema).json())
        self.fill(batch)

    def fill(self, batch: Batch) -> bool:
        """Replace the rows by those of a batch in memory. False, and nothing done, when these are too many for the slot."""
        if self._holds == batch.number:
            return True
        record = _record(batch.table)
        if len(record) > self.capacity:
            return False
        self._holds = None
        self._buffer.put(0, record)
        self._holds = batch.number
        return True


def _record(table: Any) -> bytes:
    """The rows of a pyarrow Table as one Arrow record batch, an encapsulated message."""
    batches = table.combine_chunks().to_batches()
    batch = (
        batches[0]
        if batches
        else pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)
    )
    return bytes(batch.serialize())


@functools.lru_cache(maxsize=4)
def can_refill(session: SparkSession) -> bool:
    """Whether a query over a slot sees what was put into the slot after the query was planned."""
    schema = StructType([StructField("v", LongType())])
    try:
        slot = Slot(session, Batch(schema, 0, pa.table({"v": pa.array([], pa.int64())})))
        for value in (1, 2):
            slot.fill(Batch(schema, 1, pa.table({"v": [value]})))
            if collected(slot.frame)["v"].to_pylist() != [value]:
                return False
    except (Py4JError, TypeError):
        # Another Spark than those whose inner parts this module knows.
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Java:
    """Classes of the JVM, and ``ByteBuffer::array`` as a java.util.function.Function."""

    buffers: Any
    collections: Any
    array_of: Any


@functools.lru_cache(maxsize=4)
def _java(context: SparkContext) -> _Java:
    within: Any = context
    java = within._jvm.java
    invoke, named = java.lang.invoke, java.lang.Class.forName
    array = invoke.MethodHandles.publicLookup().findVirtual(
        named("java.nio.ByteBuffer"), "array", invoke.MethodType.methodType(named("[B"))
    )
    function = invoke.MethodHandleProxies.asInterfaceInstance(named("java.util.function.Function"), array)
    return _Java(java.nio.ByteBuffer, java.util.Collections, function)
