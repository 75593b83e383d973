"""Values of results in the types that readers know."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
from pyspark.sql.types import DecimalType, LongType, StructField, StructType

from airflow_pipelines.engine.spark.schemas import TYPE_HINT
from airflow_pipelines.host.queries.result_values import (
    has_map_without_text_keys,
    with_timestamps_as_text,
    with_unsigned_integers,
    with_variants_as_json,
)
from airflow_pipelines.rows.formats.variant import encode

_MARKED = pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"})
VARIANT = pa.struct([pa.field("value", pa.binary(), nullable=False), _MARKED])


def test_variants_are_texts_wherever_they_are() -> None:
    one, null = encode({"a": [1, "x"]}), encode(None)
    table = pa.table(
        {
            "v": pa.array([one, null, None], VARIANT),
            "l": pa.array([[one, None], [], None], pa.list_(VARIANT)),
            "m": pa.array([[("k", one)], None, [("k", None)]], pa.map_(pa.string(), VARIANT)),
            "s": pa.array([{"v": one}, {"v": None}, None], pa.struct([("v", VARIANT)])),
            "n": [1, 2, 3],
        }
    )
    text = '{"a":[1,"x"]}'
    for given in (table, table.slice(1)):
        assert with_variants_as_json(given).to_pydict() == {
            "v": [text, "null", None][-given.num_rows :],
            "l": [[text, None], [], None][-given.num_rows :],
            "m": [[("k", text)], None, [("k", None)]][-given.num_rows :],
            "s": [{"v": text}, {"v": None}, None][-given.num_rows :],
            "n": [1, 2, 3][-given.num_rows :],
        }


def test_timestamps_are_texts_with_the_digits_that_they_have() -> None:
    moments = [dt.datetime(2026, 1, 2, 3, 4, 5, part) for part in (0, 120_000, 1_000, 7)]
    written = ["2026-01-02T03:04:05", "2026-01-02T03:04:05.120", "2026-01-02T03:04:05.001", "2026-01-02T03:04:05.000007"]
    zoned = pa.list_(pa.timestamp("us", "UTC"))
    table = pa.table({"t": pa.array([*moments, None], pa.timestamp("us")), "z": pa.array([moments, [], None, [None], []], zoned)})
    shown = with_timestamps_as_text(table).to_pydict()
    assert shown["t"] == [*written, None]
    assert shown["z"] == [[f"{text}Z" for text in written], [], None, [None], []]


def test_unsigned_integers_have_their_types() -> None:
    hint = {TYPE_HINT: "UBIGINT"}
    fields = [
        StructField("u", DecimalType(20, 0), metadata=hint),
        StructField("u", LongType(), metadata=hint),
        StructField("n", LongType()),
    ]
    most = 2**64 - 1
    table = pa.Table.from_arrays([pa.array([most], pa.decimal128(20, 0)), pa.array([1]), pa.array([2])], names=["u", "u", "n"])
    shown = with_unsigned_integers(table, StructType(fields))
    # Where an expression has changed the type, the hint holds no longer.
    assert [str(field.type) for field in shown.schema] == ["uint64", "int64", "int64"]
    assert shown.column(0).to_pylist() == [most]


def test_maps_without_text_keys_are_found_within_values() -> None:
    bad = pa.map_(pa.int32(), pa.string())
    for kind in (bad, pa.list_(bad), pa.struct([("m", bad)]), pa.map_(pa.string(), bad)):
        assert has_map_without_text_keys(pa.schema([("c", kind)]))
    assert not has_map_without_text_keys(pa.schema([("c", pa.map_(pa.string(), pa.int32()))]))
