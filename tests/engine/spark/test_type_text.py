"""Types as DDL are read by the parser as the types that they are."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, MapType, StringType, StructField, StructType
from sqlglot import exp

from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.sql.syntax.dialect import DIALECT


@pytest.mark.parametrize("name", ["a", "A1", "a b", "x-y", "1", "select", "not", "end", "ä", "a`b", "a:b>", "", "key"])
def test_whatever_a_field_is_called(name: str) -> None:
    inner = StructType([StructField(name, DoubleType()), StructField("other", MapType(StringType(), IntegerType()))])
    text = type_text(ArrayType(inner))
    read = exp.DataType.build(text, dialect=DIALECT).expressions[0]
    assert [part.name for part in read.expressions] == [name, "other"]


def test_plain_names_stay_plain() -> None:
    assert (
        type_text(StructType([StructField("start", IntegerType()), StructField("X", StringType())])) == "struct<start:int,X:string>"
    )
