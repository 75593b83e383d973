from __future__ import annotations

import pytest

from airflow_pipelines.program.column_types import ColumnType, decimal, from_spark_json


@pytest.mark.parametrize(
    ("kind", "ddl", "text"),
    [
        (ColumnType("INTEGER"), "INT", "INTEGER"),
        (ColumnType("REAL"), "FLOAT", "REAL"),
        (ColumnType("TIMESTAMP"), "TIMESTAMP_NTZ", "TIMESTAMP"),
        (ColumnType("TIMESTAMP_TZ"), "TIMESTAMP", "TIMESTAMP_TZ"),
        (ColumnType("TIME"), "TIME(6)", "TIME"),
        (decimal(), "DECIMAL(38,0)", "DECIMAL(38,0)"),
        (ColumnType("VARCHAR", precision=3), "STRING", "VARCHAR(3)"),
        (ColumnType("ARRAY", component=ColumnType("UUID")), "ARRAY<STRING>", "UUID ARRAY"),
        (ColumnType("MAP", key=ColumnType("DATE", False), value=ColumnType("VARIANT")), "MAP<DATE,VARIANT>", "MAP<DATE, VARIANT>"),
        (
            ColumnType("STRUCT", fields=(("a`b", ColumnType("INTEGER", False)), ("c", ColumnType("VARBINARY")))),
            "STRUCT<`a``b`: INT NOT NULL,`c`: BINARY>",
            "ROW(a`b INTEGER, c VARBINARY)",
        ),
        (ColumnType("INTERVAL_DAY_TO_SECOND"), "INTERVAL DAY TO SECOND", "INTERVAL DAY TO SECOND"),
    ],
)
def test_texts(kind: ColumnType, ddl: str, text: str) -> None:
    assert kind.spark_ddl() == ddl
    assert str(kind) == text


@pytest.mark.parametrize(
    "kind",
    [
        decimal(5, 2, nullable=False),
        ColumnType("TIME"),
        ColumnType("TIMESTAMP_TZ"),
        ColumnType("INTERVAL_YEAR_TO_MONTH"),
        ColumnType("NULL"),
        ColumnType("ARRAY", component=ColumnType("STRUCT", False, fields=(("x", ColumnType("BIGINT", False)),))),
        ColumnType("MAP", key=ColumnType("VARCHAR", False), value=ColumnType("ARRAY", component=ColumnType("VARIANT"))),
    ],
)
def test_spark_json_comes_back(kind: ColumnType) -> None:
    assert from_spark_json(kind.spark_json(), kind.nullable) == kind


def test_types_of_spark_that_have_no_place_here() -> None:
    assert from_spark_json("string collate UTF8_LCASE").name == "VARCHAR"
    assert from_spark_json("varchar(3)").precision == 3
    for kind in ("calendarinterval", {"type": "udt"}):
        with pytest.raises(ValueError, match="cannot be a column's type"):
            from_spark_json(kind)


def test_wire_has_always_the_same_keys() -> None:
    wire = ColumnType("STRUCT", fields=(("A", ColumnType("ARRAY", component=decimal(3, 1))),)).to_wire()
    keys = {"type", "nullable", "precision", "scale", "component", "fields", "key", "value"}
    inner = wire["fields"][0]
    assert set(wire) == set(inner["columntype"]) == set(inner["columntype"]["component"]) == keys
    assert inner["case_sensitive"] is True
    assert inner["columntype"]["component"]["scale"] == 1
