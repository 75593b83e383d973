"""What tasks of a cluster do, and the order in which what they did comes."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from airflow_pipelines.connectors.transports.kafka.cluster_blocks import (
    BlockReading,
    ClusterBlock,
    FetchedRecord,
    OtherCodeError,
    code,
)
from airflow_pipelines.connectors.transports.kafka.records import RecordReader
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.messages import message_parser
from tests.connectors.relations import col, relation

TABLE = relation(
    col("id", "BIGINT", null=False), col("at", "TIME"), col("what", "VARIANT"), col("now", "TIMESTAMP", default="NOW()")
)
OPTIONS = JsonOptions(update_format="raw")
NOW = 1_700_000_000_000_000


def reading(**other: Any) -> BlockReading:
    usual = {
        "topic": "t",
        "schema": TABLE,
        "format": "json",
        "format_options": OPTIONS,
        "header_filter": None,
        "now": NOW,
        "code": code(),
    }
    return BlockReading(**{**usual, **other})


def batch(*values: bytes | None, first: int = 0) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"partition": 2, "offset": first + number, "key": b"k", "value": value} for number, value in enumerate(values)],
        schema=pa.schema({"partition": pa.int32(), "offset": pa.int64(), "key": pa.binary(), "value": pa.binary()}),
    )


def done(task: BlockReading, *batches: pa.RecordBatch) -> list[ClusterBlock]:
    sent = pickle.loads(cloudpickle.dumps(task))
    return [ClusterBlock.of_row(TABLE.name, row) for made in sent(batches) for row in made.to_pylist()]


def test_a_block_is_what_the_host_would_have_read() -> None:
    values = (
        b'{"id": 1, "at": "01:02:03.000004", "what": {"a": [1.50, null]}}',
        None,
        b"{bad",
        b'{"id": null}',
        b'{"id": 2}{"id": 3}',
    )
    first, second = done(reading(), batch(*values, first=7), batch(), batch(b"", first=20))
    parser = message_parser(TABLE, JsonParser(TABLE, OPTIONS, lambda: NOW))
    records = [FetchedRecord("t", 2, 7 + number, b"k", value, ()) for number, value in enumerate(values)]
    expected = RecordReader(parser, None, None).read(records)
    assert (first.partition, first.first, first.last, first.fetched_bytes) == (2, 7, 11, sum(len(value or b"") for value in values))
    assert first.rows == expected
    assert first.rows.changes is not None
    assert expected.changes is not None
    assert first.rows.changes.rows.schema.equals(expected.changes.rows.schema, check_metadata=True)
    assert first.rows.changes.rows["now"].to_pylist() == expected.changes.rows["now"].to_pylist()
    assert [error.offset for error in first.rows.errors] == [8, 9, 10]
    assert "topic t, partition 2, offset 9: " in first.rows.errors[1].message
    assert second.rows.changes is None
    assert (second.first, second.last, second.rows.num_errors) == (20, 20, 1)


def test_other_code_reads_nothing() -> None:
    with pytest.raises(OtherCodeError, match="is not the host's release"):
        done(reading(code="another"), batch(b'{"id": 1}'))
