"""The code that Spark tasks run on fetched records; it reads them in the same way as the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pydantic import BaseModel

from airflow_pipelines.connectors.parsers import new_parser
from airflow_pipelines.connectors.registry import find_format
from airflow_pipelines.connectors.transports.kafka.headers import HeaderCondition, Headers
from airflow_pipelines.connectors.transports.kafka.records import Malformed, RecordReader, RecordRows
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.messages import message_parser
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.schema import RelationSchema

_PACKAGE: Final = Path(__file__).parents[3]
_NO_TIMESTAMP: Final = (0, -1)

BLOCK_TYPE: Final = (
    "partition INT, first BIGINT, last BIGINT, fetched_bytes BIGINT, rows BINARY, truncates BOOLEAN, records BIGINT, "
    "size_bytes BIGINT, errors ARRAY<STRUCT<offset: BIGINT, message: STRING>>, num_errors BIGINT"
)
"""The type of a block as a Spark row.

The rows of the table are one value, in Arrow's form, so that they come back in their own types.
"""
_BLOCK_SCHEMA: Final = pa.schema(
    {
        "partition": pa.int32(),
        "first": pa.int64(),
        "last": pa.int64(),
        "fetched_bytes": pa.int64(),
        "rows": pa.binary(),
        "truncates": pa.bool_(),
        "records": pa.int64(),
        "size_bytes": pa.int64(),
        "errors": pa.list_(pa.struct({"offset": pa.int64(), "message": pa.string()})),
        "num_errors": pa.int64(),
    }
)


class OtherCodeError(RuntimeError):
    """The error for a machine of the cluster that would read records with other code."""


@cache
def code() -> str:
    """Return a hash of this package on this machine, and of the library that makes columns."""
    digest = sha256(pa.__version__.encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@dataclass(slots=True)
class FetchedRecord:
    """A record that Spark has fetched; see :class:`~airflow_pipelines.systems.kafka.records.Record`.

    It is not frozen: making a frozen one takes as long as reading a small record.
    """

    _topic: str
    _partition: int
    _offset: int
    _key: bytes | None
    _value: bytes | None
    _headers: Headers

    def topic(self) -> str:
        """Return the name of its topic."""
        return self._topic

    def partition(self) -> int:
        """Return the number of its partition."""
        return self._partition

    def offset(self) -> int:
        """Return its offset in the partition."""
        return self._offset

    def key(self) -> bytes | None:
        """Return its key, or None without one."""
        return self._key

    def value(self) -> bytes | None:
        """Return its value, or None for a tombstone."""
        return self._value

    def headers(self) -> Headers:
        """Return its headers."""
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        """Return no time, since nothing that is read on a cluster needs it."""
        return _NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class ClusterBlock:
    """Consecutive records of one partition, as rows.

    :param partition: the number of the partition
    :param first: the offset of the first record
    :param last: the offset of the last record
    :param fetched_bytes: the size of the values of all records, also of those that are not wanted
    :param rows: the rows of the records
    """

    partition: int
    first: int
    last: int
    fetched_bytes: int
    rows: RecordRows

    @classmethod
    def of_row(cls, table: str, row: Mapping[str, Any]) -> ClusterBlock:
        """Return the block of a row of :data:`BLOCK_TYPE`.

        :param table: the name of the table that it is for
        :param row: the values of the row by name
        """
        changes = None
        if row["rows"] is not None:
            with pa.ipc.open_stream(row["rows"]) as stream:
                changes = TableChanges(table, stream.read_all(), truncates=row["truncates"])
        errors = tuple(Malformed(error["offset"], error["message"]) for error in row["errors"])
        rows = RecordRows(changes, row["records"], row["size_bytes"], errors, row["num_errors"])
        return cls(row["partition"], row["first"], row["last"], row["fetched_bytes"], rows)

    def to_batch(self) -> pa.RecordBatch:
        """Return the block as a row of :data:`BLOCK_TYPE`."""
        rows = self.rows
        row = {
            "partition": self.partition,
            "first": self.first,
            "last": self.last,
            "fetched_bytes": self.fetched_bytes,
            "rows": None if rows.changes is None else _as_stream(rows.changes.rows),
            "truncates": rows.changes is not None and rows.changes.truncates,
            "records": rows.records,
            "size_bytes": rows.size_bytes,
            "errors": [{"offset": error.offset, "message": error.message} for error in rows.errors],
            "num_errors": rows.num_errors,
        }
        return pa.RecordBatch.from_pylist([row], schema=_BLOCK_SCHEMA)


def _as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True)
class BlockReading:
    """The way in which tasks read records. It is sent to them as bytes, and contains no secrets.

    :param topic: the name of the topic
    :param schema: the schema of the table that the rows are for
    :param format: the name of the format
    :param format_options: the options of the format
    :param header_filter: see ``KafkaInputOptions``
    :param now: the time that DEFAULTs have, in microseconds since the epoch
    :param code: the hash of the package of the host, see :func:`code`
    """

    topic: str
    schema: RelationSchema
    format: str
    format_options: BaseModel
    header_filter: HeaderCondition | None
    now: int
    code: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the records of a task, and yield a block for each batch.

        :param batches: the records in the order of their partition
        :raises OtherCodeError: when this machine has another release of this package
        """
        if code() != self.code:
            raise OtherCodeError(
                f"the package airflow-pipelines in {_PACKAGE.parent} of a machine, or its pyarrow, is not the host's release"
            )
        reader = self._reader()
        for batch in batches:
            if batch.num_rows:
                yield self._block(reader, batch).to_batch()

    def _reader(self) -> RecordReader:
        definition = find_format(self.format)
        if definition is None:
            raise OtherCodeError(f"a machine of the cluster does not know format {self.format!r}")
        parser = new_parser(definition, self.schema, self.format_options, f"kafka_input {self.topic}", lambda: self.now)
        return RecordReader(message_parser(self.schema, parser), self.header_filter, None)

    def _block(self, reader: RecordReader, batch: pa.RecordBatch) -> ClusterBlock:
        columns = {name: python_values(batch.column(name)) for name in batch.schema.names}
        topic, values = self.topic, columns["value"]
        headers = map(_headers, columns["headers"]) if "headers" in columns else repeat(())
        fields = zip(columns["partition"], columns["offset"], columns["key"], values, headers, strict=False)
        records = [FetchedRecord(topic, *field) for field in fields]
        size = sum(map(len, filter(None, values)))
        first, last = records[0], records[-1]
        return ClusterBlock(first.partition(), first.offset(), last.offset(), size, reader.read(records))


def _headers(given: list[dict[str, Any]] | None) -> Headers:
    return [(each["key"], each["value"]) for each in given or ()]
