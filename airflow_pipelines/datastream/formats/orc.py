"""ORC files of stream programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.composite_types import RowTypeInfo
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.file_formats import BulkFormat, BulkWriter, BulkWriterFactory
from airflow_pipelines.datastream.formats.arrow_rows import BatchWriter, RowsOfColumns, arrow_schema

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]

_USE = "use Types.ROW_NAMED([names], [types])"


@dataclass(frozen=True)
class OrcColumnarRowInputFormat(BulkFormat):
    """The format of ORC files that are read as rows. Only the columns of the rows are read; one that a file lacks is None.

    :param row_type: the type of the rows
    :param is_case_sensitive: False to find a column also by its name in another case

    >>> import tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
    >>> from airflow_pipelines.datastream.common import Types
    >>> from airflow_pipelines.datastream.connectors import FileSink, FileSource
    >>> from airflow_pipelines.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
    >>> sale = Types.ROW_NAMED(["fruit", "price"], [Types.STRING(), Types.DOUBLE()])
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = FileSink.for_bulk_format(folder, OrcBulkWriters.for_row_type(sale)).build()
    ...     end = env.from_collection([("pears", 2.5)]).sink_to(sink)
    ...     result = env.execute("sales")
    ...     source = FileSource.for_bulk_file_format(OrcColumnarRowInputFormat(sale), folder).build()
    ...     list(env.from_source(source, WatermarkStrategy.no_watermarks(), "sales").execute_and_collect())
    [Row(fruit='pears', price=2.5)]
    """

    row_type: RowTypeInfo
    is_case_sensitive: bool = True

    def __post_init__(self) -> None:
        checks.instance("row_type", self.row_type, RowTypeInfo, _USE)
        arrow_schema(self.row_type)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.row_type

    def records(self, path: str, stream: IO[bytes]) -> Iterator[Any]:
        """Yield the rows of a file."""
        from pyarrow import orc

        try:
            file = orc.ORCFile(stream)
            rows = RowsOfColumns(self.row_type, file.schema.names, self.is_case_sensitive)
            for stripe in range(file.nstripes):
                yield from rows.rows(file.read_stripe(stripe, columns=rows.columns))
        except (pa.ArrowException, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the file system's own error; that of the format has no number
            raise ValueError(f"The ORC file {path!r} cannot be read: {error}") from error


class OrcBulkWriters:
    """Factories of writers of ORC files."""

    @staticmethod
    def for_row_type(row_type: RowTypeInfo, writer_properties: Any = None, hadoop_config: Any = None) -> BulkWriterFactory:
        """Return a factory of writers for rows.

        :param row_type: the type of the rows
        :param writer_properties: accepted without effect: options of ORC are the usual ones
        :param hadoop_config: accepted without effect, as above
        :returns: the factory
        :raises TypeError: if a field of the rows has no form in ORC
        """
        del writer_properties, hadoop_config
        checks.instance("row_type", row_type, RowTypeInfo, _USE)
        for field in arrow_schema(row_type):
            if pa.types.is_time(field.type):
                raise TypeError(f"ORC has no type for times of day, and the field {field.name!r} is one: write it as text")
        return _OrcWriterFactory(row_type)


@dataclass(frozen=True)
class _OrcWriterFactory(BulkWriterFactory):
    row_type: RowTypeInfo

    def create(self, stream: IO[bytes]) -> BulkWriter:
        from pyarrow import orc

        writer = orc.ORCWriter(stream)
        return BatchWriter(self.row_type, lambda batch: writer.write(pa.Table.from_batches([batch])), writer.close)
