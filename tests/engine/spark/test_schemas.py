from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from airflow_pipelines.engine.spark.schemas import column_from_spark_json, hinted_schema_json, spark_schema
from airflow_pipelines.rows.schema import Column, RelationSchema, arrow_type
from airflow_pipelines.rows.spark_types import from_spark_json
from airflow_pipelines.rows.types import ColumnType, decimal

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

ALL = RelationSchema(
    "all_types",
    tuple(
        Column(f"c{index}", kind)
        for index, kind in enumerate(
            [
                ColumnType("BOOLEAN"),
                ColumnType("TINYINT"),
                ColumnType("SMALLINT"),
                ColumnType("INTEGER"),
                ColumnType("BIGINT", nullable=False),
                ColumnType("REAL"),
                ColumnType("DOUBLE"),
                decimal(5, 2),
                ColumnType("VARCHAR"),
                ColumnType("VARCHAR", precision=7),
                ColumnType("CHAR", precision=3),
                ColumnType("UUID"),
                ColumnType("BINARY", precision=4),
                ColumnType("VARBINARY"),
                ColumnType("DATE"),
                ColumnType("TIME"),
                ColumnType("TIMESTAMP"),
                ColumnType("TIMESTAMP_TZ"),
                ColumnType("VARIANT"),
                ColumnType("ARRAY", component=ColumnType("INTEGER", nullable=False)),
                ColumnType("MAP", key=ColumnType("VARCHAR", nullable=False), value=ColumnType("BIGINT")),
                ColumnType("STRUCT", fields=(("a", ColumnType("INTEGER", nullable=False)), ("B", ColumnType("VARCHAR")))),
            ]
        )
    ),
)
VALUES = [
    True,
    1,
    2,
    3,
    4,
    0.5,
    1.5,
    Decimal("1.25"),
    "text",
    "short",
    "abc",
    str(uuid.UUID(int=7)),
    b"1234",
    b"bytes",
    datetime.date(2026, 1, 2),
    datetime.time(1, 2, 3, 4),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
    # {"a": 1} in Spark's binary form. PySpark 4.2 cannot hand a NULL of this type to Arrow.
    {"value": b"\x02\x01\x00\x00\x02\x0c\x01", "metadata": b"\x01\x01\x00\x01a"},
    [1, 2],
    [("k", 1)],
    {"a": 1, "B": "b"},
]


def test_every_type_survives_arrow_spark_and_parquet(sessions: SparkSessions, tmp_path: object) -> None:
    table = pa.table(
        [pa.array([value, value], field.type) for value, field in zip(VALUES, ALL.arrow, strict=True)], schema=ALL.arrow
    )
    frame = sessions.small.createDataFrame(table, spark_schema(ALL))
    frame.write.parquet(f"{tmp_path}/rows")
    back = sessions.small.read.schema(spark_schema(ALL)).parquet(f"{tmp_path}/rows").toArrow()
    assert back.select(list(ALL.column_names)).cast(ALL.arrow).equals(table)


def test_columns_come_back_from_spark(sessions: SparkSessions) -> None:
    from pyspark.sql.types import StructType

    hinted = StructType.fromJson(hinted_schema_json(ALL))
    assert tuple(column_from_spark_json(field.jsonValue()) for field in hinted.fields) == ALL.columns
    plain = [column_from_spark_json(field.jsonValue()).type.name for field in spark_schema(ALL).fields]
    assert plain[9:14] == ["VARCHAR", "VARCHAR", "VARCHAR", "VARBINARY", "VARBINARY"]


def test_hint_of_a_changed_type_is_dropped() -> None:
    from pyspark.sql.types import IntegerType, StructField

    field = StructField("x", IntegerType(), True, {"airflow_pipelines.type": "UUID"})
    assert column_from_spark_json(field.jsonValue()).type == ColumnType("INTEGER")


def test_intervals_have_arrow_forms() -> None:
    assert arrow_type(from_spark_json("interval year to month")) == pa.int32()
    assert arrow_type(from_spark_json("interval day to second")) == pa.duration("us")


def test_unknown_column_is_a_key_error() -> None:
    assert ALL.column("c4").type.nullable is False
    with pytest.raises(KeyError):
        ALL.column("nope")
