"""Files of rows in sources and sinks of programs: positions, headers, lines that cannot be read."""

from __future__ import annotations

import gzip
import io
import logging
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.common import Row, Types
from airflow_pipelines.datastream.connectors import BucketAssigner, FileSink, FileSource, StreamFormat
from airflow_pipelines.datastream.connectors.file_formats import BulkFormat, BulkWriterFactory, FileFormat
from airflow_pipelines.datastream.formats.avro import AvroBulkWriters, AvroInputFormat, AvroSchema, GenericRecordAvroTypeInfo
from airflow_pipelines.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from airflow_pipelines.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from airflow_pipelines.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from tests.datastream.formats.test_round_trips import written

SALE = Types.ROW_NAMED(["id", "fruit"], [Types.LONG(), Types.STRING()])
SCHEMA = CsvSchema.builder().add_number_column("id").add_string_column("fruit").build()
AVRO = AvroSchema.parse_string(
    '{"type": "record", "name": "Sale", "fields": [{"name": "id", "type": "long"}, {"name": "fruit", "type": "string"}]}'
)
FORMATS: dict[str, tuple[FileFormat, BulkWriterFactory]] = {
    "csv": (CsvReaderFormat.for_schema(SCHEMA), CsvBulkWriters.for_schema(SCHEMA)),
    "parquet": (ParquetColumnarRowInputFormat(SALE, batch_size=3), ParquetBulkWriters.for_row_type(SALE)),
    "orc": (OrcColumnarRowInputFormat(SALE), OrcBulkWriters.for_row_type(SALE)),
    "avro": (AvroInputFormat("", AVRO), AvroBulkWriters.for_generic_record(AVRO)),
}


def _source(file_format: FileFormat, path: Path) -> FileSource:
    if isinstance(file_format, BulkFormat):
        return FileSource.for_bulk_file_format(file_format, str(path)).build()
    assert isinstance(file_format, StreamFormat)
    return FileSource.for_record_stream_format(file_format, str(path)).build()


def _collect(source: FileSource) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    return list(env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect())


def _text(element: Any) -> str:
    return str(element["fruit"])


@pytest.mark.parametrize("name", FORMATS)
def test_a_program_writes_files_and_another_reads_them(tmp_path: Path, name: str) -> None:
    file_format, factory = FORMATS[name]
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    sink = FileSink.for_bulk_format(str(tmp_path), factory).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    rows = env.from_collection(list(range(20))).map(lambda number: Row(id=number, fruit=f"pear {number}"), SALE)
    rows.sink_to(sink.build())
    env.execute("sales")
    assert sorted(map(_text, _collect(_source(file_format, tmp_path)))) == sorted(f"pear {number}" for number in range(20))


@pytest.mark.parametrize("name", FORMATS)
def test_a_source_goes_on_from_every_position(tmp_path: Path, name: str) -> None:
    file_format, factory = FORMATS[name]
    for file, numbers in (("a", range(7)), ("b", range(7, 10))):
        (tmp_path / file).write_bytes(written(factory, [Row(id=number, fruit=str(number)) for number in numbers]))
    source = _source(file_format, tmp_path)
    for first in range(11):
        reader = source.open((0, 1), None)
        values = reader.poll(first).values if first else []
        position = reader.position()
        reader.close()
        values += source.open((0, 1), position).poll(100).values
        assert list(map(_text, values)) == [str(number) for number in range(10)]


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_was_changed_while_it_was_half_read_is_refused(tmp_path: Path, name: str) -> None:
    file_format, factory = FORMATS[name]
    path = tmp_path / "a"
    path.write_bytes(written(factory, [Row(id=number, fruit="pears") for number in range(5)]))
    source = _source(file_format, tmp_path)
    reader = source.open((0, 1), None)
    reader.poll(3)
    position = reader.position()
    path.write_bytes(written(factory, [Row(id=number, fruit="plums") for number in range(5)]))
    with pytest.raises(ValueError, match=r"The first 3 records of the file .*are others than those that were read"):
        source.open((0, 1), position).poll(1)
    path.write_bytes(written(factory, [Row(id=0, fruit="pears")]))
    with pytest.raises(ValueError, match="has 1 records, and 3 were read before"):
        source.open((0, 1), position).poll(1)


def _read(schema: CsvSchema, text: str | bytes, path: str = "x.csv", **options: Any) -> list[Any]:
    file_format = CsvReaderFormat.for_schema(schema, **options)
    data = text if isinstance(text, bytes) else text.encode()
    return [tuple(row) for row in file_format.records(path, io.BytesIO(data))]


def _builder() -> Any:
    return CsvSchema.builder().add_number_column("id").add_string_column("fruit")


def test_headers_and_rows_that_are_left_out() -> None:
    text = "fruit, id\npears,1\nplums,2\n"
    assert _read(_builder().set_use_header().set_reorder_columns().build(), text) == [(1, "pears"), (2, "plums")]
    with pytest.raises(ValueError, match=r"line 2, cannot be read as CSV: column 'id': 'pears' is no int"):
        _read(_builder().set_use_header().build(), text)
    with pytest.raises(ValueError, match=r"has the header \['fruit', 'id'\], and the columns are \['id', 'fruit'\]"):
        _read(_builder().set_use_header().set_strict_headers().build(), text)
    with pytest.raises(ValueError, match=r"has the header \['fruit', 'number'\], and no column 'id'"):
        _read(_builder().set_use_header().set_reorder_columns().build(), "fruit,number\n")
    assert _read(_builder().set_skip_first_data_row().build(), "1,a\n2,b\n") == [(2, "b")]
    wider = "more,fruit,id\nx,pears,1\n"
    assert _read(_builder().set_use_header().set_reorder_columns().build(), wider) == [(1, "pears")]
    assert _read(_builder().set_use_header().build(), "") == []


def test_line_ends_quotes_blank_lines_marks_and_comments() -> None:
    schema = _builder().set_allow_comments().build()
    assert _read(schema, '\ufeff1,"a\nb"\r\n\r\n# none\r\n2,"say ""no"""\r3,c') == [(1, "a\nb"), (2, 'say "no"'), (3, "c")]
    assert _read(schema, gzip.compress(b"1,a\n"), "x.csv.gz") == [(1, "a")]
    assert _read(schema, "1,é\n".encode("latin-1"), charset_name="latin-1") == [(1, "é")]
    arrays = CsvSchema.builder().add_array_column("a", "|", Types.LONG()).add_array_column("b").build()
    assert _read(arrays, "1|2,x;y\n") == [([1, 2], ["x", "y"])]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,a\n2\n", "line 2, cannot be read as CSV: it has 1 fields, and there are 2 columns"),
        ("1,a\n2,b,c\n", "line 2, cannot be read as CSV: it has 3 fields"),
        ('1,a\n2,"b\n', "line 2, cannot be read as CSV: unexpected end of data"),
        ("1,a\n99999999999999999999,b\n", "line 2, cannot be read as CSV: column 'id': .*"),
        (b"1,a\n2,\xff\n", "is no text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_named_or_left_out(text: str | bytes, says: str, caplog: pytest.LogCaptureFixture) -> None:
    schema = _builder().build()
    with pytest.raises(ValueError, match=f"The file 'x.csv',? {says}"):
        _read(schema, text)
    if isinstance(text, bytes):
        return
    tolerant = CsvReaderFormat.for_schema(schema).with_ignore_parse_errors()
    with caplog.at_level(logging.WARNING, "airflow_pipelines.datastream"):
        rows = list(tolerant.records("x.csv", io.BytesIO(f"{text}3,d\n".encode() if '"' not in text else text.encode())))
    assert [row.id for row in rows] == ([1] if '"' in text else [1, 3])
    assert "The file 'x.csv' has 1 rows that cannot be read as CSV" in caplog.text


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: CsvSchema.builder().build(), "needs columns"),
        (lambda: _builder().add_string_column("id").build(), "field names that differ"),
        (lambda: _builder().set_reorder_columns().build(), "need a header"),
        (lambda: _builder().add_number_column("x", Types.STRING()), "a type of numbers such as"),
        (lambda: _builder().set_line_separator(";"), "separator must be"),
        (lambda: FileSource.for_bulk_file_format(StreamFormat(), "/x"), "bulk_format"),  # type: ignore[arg-type]
        (lambda: FileSink.for_bulk_format("/x", SCHEMA), "writer_factory"),  # type: ignore[arg-type]
        (lambda: AvroSchema.parse_string("{"), "is no JSON"),
        (lambda: AvroSchema.parse_string('{"type": "no"}'), "no schema that can be used"),
    ],
)
def test_what_cannot_work_is_refused_at_once(build: Any, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        build()


def test_avro_schemas_of_files_and_types_of_records(tmp_path: Path) -> None:
    path = tmp_path / "sale.avsc"
    path.write_text(AVRO.text)
    assert AvroSchema.parse_file(str(path)) == AVRO
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    rows = env.from_collection([Row(id=1, fruit="pears")]).map(lambda row: row, GenericRecordAvroTypeInfo(AVRO))
    assert list(rows.execute_and_collect()) == [{"id": 1, "fruit": "pears"}]
    newer = AVRO.text.replace('"type": "string"}', '"type": "string"}, {"name": "price", "type": "double", "default": 1.5}')
    data = written(AvroBulkWriters.for_generic_record(AVRO), [{"id": 1, "fruit": "pears"}])
    assert list(AvroInputFormat("", AvroSchema(newer)).records("x", io.BytesIO(data))) == [
        {"id": 1, "fruit": "pears", "price": 1.5}
    ]
