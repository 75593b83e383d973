from __future__ import annotations

import pytest

from airflow_pipelines.rows.spark_types import from_spark_json
from airflow_pipelines.rows.types import SPARK_NAMES, ColumnType, decimal


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


FAMILIES: dict[str, set[str]] = {
    "is_boolean": {"BOOLEAN"},
    "is_integer": {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"},
    "is_signed_integer": {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"},
    "is_unsigned_integer": {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"},
    "fits_long": {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"},
    "is_decimal": {"DECIMAL"},
    "is_floating": {"REAL", "DOUBLE"},
    "is_single_precision": {"REAL"},
    "is_text": {"VARCHAR", "CHAR"},
    "is_binary": {"BINARY", "VARBINARY"},
    "is_padded": {"CHAR", "BINARY"},
    "is_uuid": {"UUID"},
    "is_date": {"DATE"},
    "is_time": {"TIME"},
    "is_timestamp": {"TIMESTAMP", "TIMESTAMP_TZ"},
    "has_time_zone": {"TIMESTAMP_TZ"},
    "is_temporal": {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_TZ"},
    "is_variant": {"VARIANT"},
    "is_null": {"NULL"},
}


@pytest.mark.parametrize("predicate", FAMILIES)
def test_families_of_types(predicate: str) -> None:
    kinds = [decimal() if name == "DECIMAL" else ColumnType(name) for name in (*SPARK_NAMES, "DECIMAL")]
    assert {kind.name for kind in kinds if getattr(kind, predicate)} == FAMILIES[predicate]


def test_types_with_parts() -> None:
    array = ColumnType("ARRAY", component=ColumnType("UUID"))
    map_ = ColumnType("MAP", key=ColumnType("DATE", False), value=array)
    row = ColumnType("STRUCT", fields=(("m", map_), ("n", ColumnType("NULL"))))
    assert [(kind.is_array, kind.is_map, kind.is_struct) for kind in (array, map_, row)] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert row.parts == (map_, ColumnType("NULL"))
    assert (row.depth, array.depth, ColumnType("UUID").depth) == (3, 1, 0)
    assert not any(kind.is_integer or kind.is_text or kind.is_interval for kind in (array, map_, row))


@pytest.mark.parametrize(
    ("name", "of_months"), [("INTERVAL_YEAR_TO_MONTH", True), ("INTERVAL_MONTH", True), ("INTERVAL_DAY_TO_SECOND", False)]
)
def test_intervals(name: str, of_months: bool) -> None:
    kind = ColumnType(name)
    assert kind.is_interval
    assert kind.is_year_month_interval is of_months


def test_bounds_of_integers() -> None:
    assert ColumnType("TINYINT").bounds == (-128, 127)
    assert ColumnType("UBIGINT").bounds == (0, 2**64 - 1)
    with pytest.raises(KeyError):
        _ = ColumnType("REAL").bounds
