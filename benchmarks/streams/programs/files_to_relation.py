"""Rows of CSV files, counted by key, as a relation: ``files_to_relation.py FOLDER``."""

import sys

from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment, Types, WatermarkStrategy
from airflow_pipelines.datastream.connectors import FileSource
from airflow_pipelines.datastream.formats.csv import CsvReaderFormat, CsvSchema
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    """The number of rows of a key so far."""

    def open(self, runtime_context):
        """Ask for the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):  # noqa: ARG002
        """Give the row with its number."""
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value.key, value.number, value.fruit, count


columns = CsvSchema.builder().add_number_column("key").add_number_column("number").add_string_column("fruit")
source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(columns.build()), sys.argv[1]).build()
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "files").uid("files")
counted = rows.key_by(lambda row: row.key).process(Count()).uid("count")
counted.to_relation("counted", "key BIGINT, number BIGINT, fruit VARCHAR, n BIGINT").uid("counted")
env.execute("files to relation")
