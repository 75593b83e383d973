"""Parquet files of stream programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.composite_types import RowTypeInfo
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.file_formats import BulkFormat, BulkWriter, BulkWriterFactory
from airflow_pipelines.datastream.formats.arrow_rows import BatchWriter, RowsOfColumns, arrow_schema
from airflow_pipelines.rows.formats.parquet import open_parquet

__all__ = ["ParquetBulkWriters", "ParquetColumnarRowInputFormat"]

_USE = "use Types.ROW_NAMED([names], [types])"


@dataclass(frozen=True)
class ParquetColumnarRowInputFormat(BulkFormat):
    """The format of Parquet files that are read as rows. Only the columns of the rows are read; one that a file lacks is None.

    :param row_type: the type of the rows
    :param hadoop_config: accepted without effect: file systems are those of ``fsspec``
    :param batch_size: the number of rows to read at a time
    :param is_utc_timestamp: accepted without effect: a timestamp in a file is a point in time in UTC, or has no time zone
    :param is_case_sensitive: False to find a column also by its name in another case

    >>> import tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
    >>> from airflow_pipelines.datastream.common import Types
    >>> from airflow_pipelines.datastream.connectors import FileSink, FileSource
    >>> from airflow_pipelines.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
    >>> sale = Types.ROW_NAMED(["fruit", "price"], [Types.STRING(), Types.DOUBLE()])
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = FileSink.for_bulk_format(folder, ParquetBulkWriters.for_row_type(sale)).build()
    ...     end = env.from_collection([("pears", 2.5)]).sink_to(sink)
    ...     result = env.execute("sales")
    ...     source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(sale), folder).build()
    ...     list(env.from_source(source, WatermarkStrategy.no_watermarks(), "sales").execute_and_collect())
    [Row(fruit='pears', price=2.5)]
    """

    row_type: RowTypeInfo
    hadoop_config: Any = None
    batch_size: int = 2048
    is_utc_timestamp: bool = False
    is_case_sensitive: bool = True

    def __post_init__(self) -> None:
        checks.instance("row_type", self.row_type, RowTypeInfo, _USE)
        checks.integer("batch_size", self.batch_size, 1)
        arrow_schema(self.row_type)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.row_type

    def records(self, path: str, stream: IO[bytes]) -> Iterator[Any]:
        """Yield the rows of a file."""
        try:
            file = open_parquet(stream)
            rows = RowsOfColumns(self.row_type, file.schema_arrow.names, self.is_case_sensitive)
            for batch in file.iter_batches(self.batch_size, columns=rows.columns):
                yield from rows.rows(batch)
        except (pa.ArrowException, ValueError) as error:
            raise ValueError(f"The Parquet file {path!r} cannot be read: {error}") from error


class ParquetBulkWriters:
    """Factories of writers of Parquet files."""

    @staticmethod
    def for_row_type(row_type: RowTypeInfo, hadoop_config: Any = None, utc_timestamp: bool = False) -> BulkWriterFactory:
        """Return a factory of writers for rows.

        :param row_type: the type of the rows
        :param hadoop_config: accepted without effect: options of Parquet are the usual ones
        :param utc_timestamp: True to write timestamps as points in time in UTC; otherwise they have no time zone
        :returns: the factory
        :raises TypeError: if a field of the rows has no form in Parquet
        """
        del hadoop_config
        checks.instance("row_type", row_type, RowTypeInfo, _USE)
        arrow_schema(row_type)
        return _ParquetWriterFactory(row_type, checks.boolean("utc_timestamp", utc_timestamp))


@dataclass(frozen=True)
class _ParquetWriterFactory(BulkWriterFactory):
    row_type: RowTypeInfo
    utc_timestamp: bool

    def create(self, stream: IO[bytes]) -> BulkWriter:
        schema = self._file_schema()
        writer = pq.ParquetWriter(stream, schema)
        return BatchWriter(self.row_type, lambda batch: writer.write_batch(batch.cast(schema)), writer.close)

    def _file_schema(self) -> pa.Schema:
        schema = arrow_schema(self.row_type)
        if not self.utc_timestamp:
            return schema
        return pa.schema([field.with_type(pa.timestamp("us", "UTC")) if _is_local(field.type) else field for field in schema])


def _is_local(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None
