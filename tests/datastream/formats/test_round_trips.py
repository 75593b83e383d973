"""Rows that are written to a file are read as they were: every type, None, and values at the limits, in every format."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream.common import Instant, Row, SerializationError, Types
from airflow_pipelines.datastream.connectors.file_formats import BulkWriterFactory, FileFormat
from airflow_pipelines.datastream.formats.avro import AvroBulkWriters, AvroInputFormat, AvroSchema
from airflow_pipelines.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from airflow_pipelines.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from airflow_pipelines.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from tests.tiers import examples

EXAMPLES = examples("FORMAT_EXAMPLES", 200)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
BASIC: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "text": (Types.STRING(), TEXTS),
    "byte": (Types.BYTE(), st.integers(-(2**7), 2**7 - 1)),
    "short": (Types.SHORT(), st.integers(-(2**15), 2**15 - 1)),
    "int": (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    "long": (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    "double": (Types.DOUBLE(), st.floats(allow_nan=False)),
    "float": (Types.FLOAT(), st.floats(allow_nan=False, width=32)),
    "truth": (Types.BOOLEAN(), st.booleans()),
    "decimal": (Types.BIG_DEC(), st.decimals(-(10**15), 10**15, places=18)),
    "large": (Types.BIG_INT(), st.integers(-(10**38) + 1, 10**38 - 1)),
    "date": (Types.SQL_DATE(), st.dates()),
    "local": (Types.SQL_TIMESTAMP(), TIMES),
    "instant": (Types.INSTANT(), TIMES.map(lambda each: Instant.of_datetime(each.replace(tzinfo=dt.UTC)))),
}
TIME = {"time": (Types.SQL_TIME(), st.times())}
TEXT_LISTS = {"list": (Types.LIST(Types.LONG()), st.lists(st.integers(-9, 9), min_size=1, max_size=3))}
NESTED: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "list": (Types.LIST(Types.STRING()), st.lists(st.none() | TEXTS, max_size=3)),
    "map": (Types.MAP(Types.STRING(), Types.LONG()), st.dictionaries(TEXTS, st.none() | st.integers(-9, 9), max_size=3)),
    "row": (
        Types.ROW_NAMED(["Inner", "at"], [Types.LONG(), Types.INSTANT()]),
        st.builds(lambda number, at: Row(Inner=number, at=at), st.integers(-9, 9), st.none() | BASIC["instant"][1]),
    ),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=4)),
}


def written(factory: BulkWriterFactory, elements: list[Any]) -> bytes:
    stream = io.BytesIO()
    stream.close = lambda: None  # type: ignore[method-assign] (the sink closes its file itself)
    writer = factory.create(stream)
    for element in elements:
        writer.add_element(element)
    writer.finish()
    return stream.getvalue()


def read(file_format: FileFormat, data: bytes, path: str = "file") -> list[Any]:
    return list(file_format.records(path, io.BytesIO(data)))


def rows_of(fields: dict[str, tuple[Any, st.SearchStrategy[Any]]]) -> st.SearchStrategy[list[Row]]:
    values = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in fields.items()})
    return st.lists(values.map(lambda each: Row.of([each[name] for name in fields], list(fields))), max_size=4)


def type_of(fields: dict[str, tuple[Any, Any]]) -> Any:
    return Types.ROW_NAMED(list(fields), [type_info for type_info, _ in fields.values()])


IN_PARQUET = BASIC | TIME | NESTED
IN_ORC = {name: each for name, each in (BASIC | NESTED).items() if name not in ("local", "instant", "row")}
IN_CSV = BASIC | TIME | TEXT_LISTS


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows_of(IN_PARQUET), st.booleans())
def test_parquet(rows: list[Row], utc: bool) -> None:
    row_type = type_of(IN_PARQUET)
    data = written(ParquetBulkWriters.for_row_type(row_type, utc_timestamp=utc), rows)
    assert read(ParquetColumnarRowInputFormat(row_type, batch_size=2), data) == rows


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows_of(IN_ORC))
def test_orc(rows: list[Row]) -> None:
    row_type = type_of(IN_ORC)
    assert read(OrcColumnarRowInputFormat(row_type), written(OrcBulkWriters.for_row_type(row_type), rows)) == rows


MODERN = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(MODERN, MODERN), max_size=3))
def test_times_in_orc(times: list[Any]) -> None:
    row_type = Types.ROW_NAMED(["local", "instant"], [Types.SQL_TIMESTAMP(), Types.INSTANT()])
    rows = [Row(local=local, instant=Instant.of_datetime(at.replace(tzinfo=dt.UTC))) for local, at in times]
    assert read(OrcColumnarRowInputFormat(row_type), written(OrcBulkWriters.for_row_type(row_type), rows)) == rows


DIALECTS = {
    "usual": lambda builder: builder,
    "semicolons, a header": lambda builder: builder.set_column_separator(";").set_use_header().set_strict_headers(),
    "by name": lambda builder: builder.set_use_header().set_reorder_columns(),
    "null, comments, tabs": lambda builder: builder.set_null_value("N/A").set_allow_comments().set_column_separator("\t"),
    "escapes, other quotes": lambda builder: builder.set_escape_char("\\").set_quote_char("'").set_line_separator("\r\n"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=rows_of(IN_CSV))
def test_csv(rows: list[Row], dialect: str) -> None:
    builder = CsvSchema.builder()
    for name, (type_info, _) in IN_CSV.items():
        builder.add_column(name, type_info)
    schema = DIALECTS[dialect](builder).build()
    if schema.dialect.null_literal is None:
        rows = [Row(**{**row.as_dict(), "text": row.text or ""}) for row in rows]  # None and "" are one text
    data = written(CsvBulkWriters.for_schema(schema), rows)
    assert read(CsvReaderFormat.for_schema(schema), data) == rows


AVRO = AvroSchema.parse_string(
    """{"type": "record", "name": "Sale", "fields": [
      {"name": "fruit", "type": ["null", "string"]},
      {"name": "number", "type": "long"},
      {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
      {"name": "tags", "type": {"type": "array", "items": "string"}},
      {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}}]}"""
)
RECORDS = st.fixed_dictionaries(
    {
        "fruit": st.none() | TEXTS,
        "number": BASIC["long"][1],
        "at": MODERN.map(lambda at: at.replace(tzinfo=dt.UTC)),
        "tags": st.lists(TEXTS, max_size=3),
        "price": st.decimals(-(10**9), 10**9, places=2),
    }
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(RECORDS, max_size=4), st.booleans())
def test_avro(records: list[dict[str, Any]], as_rows: bool) -> None:
    elements = [Row(**record) for record in records] if as_rows else records
    assert read(AvroInputFormat("", AVRO), written(AvroBulkWriters.for_generic_record(AVRO), elements)) == records


@pytest.mark.parametrize(
    ("factory", "element", "says"),
    [
        (ParquetBulkWriters.for_row_type(type_of({"n": BASIC["long"]})), ("a",), r"\('a',\) cannot be written.*field 'n'"),
        (OrcBulkWriters.for_row_type(type_of({"n": BASIC["decimal"]})), (Decimal(10) ** 30,), "field 'n' of type decimal"),
        (CsvBulkWriters.for_schema(CsvSchema.builder().add_number_column("n").build()), (2**64,), "field 'n'.*64 bits"),
        (AvroBulkWriters.for_generic_record(AVRO), {"fruit": 1}, "cannot be written as Avro"),
        (AvroBulkWriters.for_generic_record(AVRO), 1, "give a dict, or a Row with names"),
    ],
)
def test_an_element_that_does_not_fit_is_named(factory: BulkWriterFactory, element: Any, says: str) -> None:
    with pytest.raises(SerializationError, match=says):
        written(factory, [element])


def test_a_line_that_would_be_a_comment_is_quoted() -> None:
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").set_allow_comments()
    data = written(CsvBulkWriters.for_schema(schema.build()), [("# one", "x")])
    assert data == b'"# one","x"\n'
    with pytest.raises(SerializationError, match="makes it a comment"):
        written(CsvBulkWriters.for_schema(schema.disable_quote_char().build()), [("#", "x")])


def test_what_has_no_form_is_refused_when_the_program_is_built() -> None:
    with pytest.raises(TypeError, match="ORC has no type for times of day, and the field 'time'"):
        OrcBulkWriters.for_row_type(type_of(TIME))
    with pytest.raises(TypeError, match="A file has no form for"):
        ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["any"], [Types.PICKLED_BYTE_ARRAY()]))
    with pytest.raises(TypeError, match="CSV has no form for"):
        CsvSchema.builder().add_column("map", NESTED["map"][0])


def test_files_of_other_programs(tmp_path: Path) -> None:
    """Files of pyarrow: other widths, dictionaries, nanoseconds, zones, columns that are missing, too many or in another case."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    at = dt.datetime(2024, 1, 1, 12, 30, tzinfo=dt.UTC)
    table = pa.table(
        {
            "N": pa.array([1, None], pa.int16()),
            "fruit": pa.array(["pears", None]).dictionary_encode(),
            "at": pa.array([at, None], pa.timestamp("ns", "Europe/Berlin")),
            "local": pa.array([at.replace(tzinfo=None), None], pa.timestamp("ms")),
            "more": pa.array([1, 2]),
        }
    )
    path = tmp_path / "other.parquet"
    pq.write_table(table, path)
    row_type = Types.ROW_NAMED(
        ["n", "fruit", "at", "local", "none"],
        [Types.LONG(), Types.STRING(), Types.SQL_TIMESTAMP(), Types.INSTANT(), Types.DOUBLE()],
    )
    [first, second] = read(ParquetColumnarRowInputFormat(row_type, is_case_sensitive=False), path.read_bytes())
    assert first == Row(n=1, fruit="pears", at=at.replace(tzinfo=None), local=Instant.of_datetime(at), none=None)
    assert list(second) == [None] * 5
    assert [row.n for row in read(ParquetColumnarRowInputFormat(row_type), path.read_bytes())] == [None, None]
    wrong = Types.ROW_NAMED(["fruit"], [Types.LONG()])
    with pytest.raises(ValueError, match=r"'sales.parquet' cannot be read: the value 'pears' of column 'fruit' does not fit"):
        read(ParquetColumnarRowInputFormat(wrong), path.read_bytes(), "sales.parquet")


@pytest.mark.parametrize(
    ("file_format", "says"),
    [
        (ParquetColumnarRowInputFormat(type_of(TIME)), "The Parquet file 'x' cannot be read"),
        (OrcColumnarRowInputFormat(type_of(TIME)), "The ORC file 'x' cannot be read"),
        (AvroInputFormat("", AVRO), "The Avro file 'x' cannot be read"),
    ],
)
@pytest.mark.parametrize("data", [b"", b"PAR1 and more", bytes(range(256)) * 4])
def test_a_file_that_is_none_is_named(file_format: FileFormat, says: str, data: bytes) -> None:
    with pytest.raises(ValueError, match=says):
        read(file_format, data, "x")
