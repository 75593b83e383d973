"""Record batches in bytes."""

from __future__ import annotations

import struct

import pyarrow as pa

from airflow_pipelines.engine.spark.batch_bytes import batches_of


def test_numbers_of_each_batch_are_where_arrow_wants_them() -> None:
    made = [pa.record_batch({"k": pa.array(range(count), pa.int64())}) for count in (1, 2, 3)]
    messages = [batch.serialize().to_pybytes() for batch in made]
    # Four bytes for the length move what follows away from multiples of eight.
    content = b"".join(struct.pack(">i", len(message)) + message for message in messages)
    found = list(batches_of(content, made[0].schema))
    assert [batch.to_pydict() for batch in found] == [batch.to_pydict() for batch in made]
    buffers = [buffer for batch in found for buffer in batch.column(0).buffers() if buffer is not None]
    assert [buffer.address % 8 for buffer in buffers] == [0, 0, 0]
