"""The Parquet format."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.parquet import parquet_parser
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import GRADES, NESTED, col, relation, rows


def parse(table: pa.Table, schema: Any = GRADES, **written: Any) -> Parsed:
    sink = io.BytesIO()
    pq.write_table(table, sink, **written)
    return parquet_parser(schema).parse(sink.getvalue())


def test_columns_match_by_name_and_are_cast() -> None:
    table = pa.table(
        {
            "other": ["?"],
            "class_date": [dt.date(2025, 1, 2)],
            "GRADE": pa.array([5], pa.int8()),
            "student_id": pa.array([1], pa.int16()),
        }
    )
    assert rows(parse(table)) == [
        {"student_id": 1, "class": None, "grade": Decimal("5.00"), "class_date": dt.date(2025, 1, 2), OP: 1}
    ]


def test_bad_rows_are_named_and_the_rest_is_loaded() -> None:
    table = pa.table({"student_id": [1, None, 3, 4], "grade": pa.array(["1", "1", "9999", "2.345"], pa.string())})
    parsed = parse(table)
    assert [(row["student_id"], row["grade"]) for row in rows(parsed)] == [(1, Decimal("1.00")), (4, Decimal("2.35"))]
    assert [error.message.split(":")[0] for error in parsed.errors] == ["row 1", "row 2"]


def test_a_missing_column_that_must_be_there() -> None:
    parsed = parse(pa.table({"class": ["a", "b"]}))
    assert (parsed.records, parsed.num_errors) == (0, 2)
    assert "'student_id' is missing and NOT NULL" in parsed.errors[0].message


def test_wrong_types_and_numbers_that_are_none() -> None:
    parsed = parse(pa.table({"i": pa.array(["5", "x"]), "f": [1.0, math.nan]}), relation(col("i", "INTEGER"), col("f", "DOUBLE")))
    assert parsed.records == 0
    assert "is not an integer" in parsed.errors[0].message
    parsed = parse(pa.table({"i": [1, 2], "f": [1.0, math.nan]}), relation(col("i", "INTEGER"), col("f", "INTEGER")))
    assert [(row["i"], row["f"]) for row in rows(parsed)] == [(1, 1)]
    assert "is not an integer" in parsed.errors[0].message


@pytest.mark.parametrize("by_row", [False, True])
def test_nan_and_infinities_are_values(by_row: bool) -> None:
    odd = [1.5, math.nan, math.inf, -math.inf, None]
    # A text of limited length has each row looked at by itself.
    schema = relation(
        col("s", "VARCHAR", precision=9) if by_row else col("s", "VARCHAR"),
        col("f", "DOUBLE"),
        col("r", "REAL"),
        col("l", "ARRAY", component=ColumnType("DOUBLE")),
    )
    lists = pa.array([[value] for value in odd], pa.list_(pa.float64()))
    parsed = parse(pa.table({"s": ["x"] * 5, "f": odd, "r": pa.array(odd, pa.float32()), "l": lists}), schema)
    assert parsed.errors == ()
    for name in "fr":
        assert [str(row[name]) for row in rows(parsed)] == ["1.5", "nan", "inf", "-inf", "None"]
    assert [str(row["l"]) for row in rows(parsed)] == ["[1.5]", "[nan]", "[inf]", "[-inf]", "[None]"]


def test_a_bad_row_of_a_table_with_a_key_is_named_by_it() -> None:
    schema = RelationSchema("t", (col("id", "BIGINT", null=False), col("d", "DECIMAL", precision=5, scale=2)), ("id",))
    parsed = parse(pa.table({"id": [7, 8], "d": [1.0, math.nan]}), schema)
    assert parsed.errors[-1].message.startswith("row 1 (id = 8): column 'd'")


def test_nanoseconds_zones_dictionaries_and_nested_columns() -> None:
    schema = relation(col("ts", "TIMESTAMP"), col("s", "VARCHAR"))
    moment = pa.array([1_735_786_800_000_000_001], pa.timestamp("ns", "Europe/Rome"))
    (row,) = rows(parse(pa.table({"ts": moment, "s": pa.array(["x"]).dictionary_encode()}), schema))
    assert (row["ts"], row["s"]) == (dt.datetime(2025, 1, 2, 3, 0), "x")
    nested = pa.table(
        {
            "bin": [b"\x01"],
            "arr": pa.array([[1, None]], pa.list_(pa.int64())),
            "m": pa.array([[(1, Decimal("2.5"))]], pa.map_(pa.int32(), pa.decimal128(10, 1))),
            "st": [{"x": dt.date(2025, 1, 2), "y": ["a"]}],
        }
    )
    (row,) = rows(parse(nested, NESTED))
    assert (row["bin"], row["arr"], row["m"], row["st"]["y"]) == (b"\x01", [1, None], [(1, Decimal("2.50"))], ["a"])


def test_timestamps_as_spark_writes_them_have_all_years() -> None:
    moments = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(2025, 1, 2, 3, 4, 5, 6)]
    table = pa.table({"ts": pa.array(moments, pa.timestamp("us"))})
    parsed = parse(table, relation(col("ts", "TIMESTAMP")), use_deprecated_int96_timestamps=True)
    assert [row["ts"] for row in rows(parsed)] == moments


def test_not_a_parquet_file() -> None:
    parsed = parquet_parser(GRADES).parse(b"PAR1 nonsense")
    assert parsed.num_errors == 1
    assert "not a Parquet file" in parsed.errors[0].message


def test_intervals_are_durations_or_text() -> None:
    schema = relation(col("s", "INTERVAL_DAY_TO_SECOND"), col("h", "INTERVAL_HOUR"), col("y", "INTERVAL_YEAR_TO_MONTH"))
    table = pa.table(
        {"s": pa.array([1, None], pa.duration("ms")), "h": pa.array([7200, 60], pa.duration("s")), "y": pa.array(["-P1Y", "P1M"])}
    )
    parsed = parse(table, schema)
    assert rows(parsed) == [{"s": dt.timedelta(milliseconds=1), "h": dt.timedelta(hours=2), "y": -12, OP: 1}]
    assert "'h': PT1M is not a whole number of HOURS" in parsed.errors[0].message
