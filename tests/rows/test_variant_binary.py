"""VARIANT values are written as Spark's builder writes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.formats import jsontext, variant
from airflow_pipelines.rows.variant_binary import (
    decode_variant,
    encode_decimal,
    encode_float,
    encode_integer,
    encode_text,
    encode_variant,
    to_canonical_form,
)

KEYS = st.sampled_from(["", "a", "b", "z", "é", "A", "\U0001f600", "\uffee", "a" * 300])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from(["", "x", "ä", "s" * 63, "s" * 64, "s" * 300]),
    st.decimals(-1000, 1000, places=3, allow_nan=False),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12)


@pytest.mark.core
def test_spark_rebuilds_what_is_written_here_to_the_same_bytes(sessions: SparkSessions) -> None:
    @settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(VALUES, min_size=60, max_size=60))
    def check(values: list[Any]) -> None:
        many: list[Any] = [*values, {f"k{at}": at for at in range(300)}, list(range(300)), {"a": ["x" * 70_000]}]
        texts = ", ".join("(" + _literal(jsontext.dumps(value)) + ")" for value in many)
        query = f"SELECT VARIANT_GET(PARSE_JSON(j), '$', 'variant') AS v FROM VALUES {texts} AS t(j)"
        found = collected(sessions.small.sql(query))["v"].to_pylist()
        for value, theirs in zip(many, found, strict=True):
            ours = variant.encode(jsontext.loads(jsontext.dumps(value)))
            assert to_canonical_form(theirs) == to_canonical_form(ours) == ours, value
            if not _has_decimal(value):
                assert theirs == ours, value

    check()


def test_taking_apart_and_assembling_changes_nothing() -> None:
    value = {"value": b"", "metadata": b""}
    value = encode_variant({"b": [encode_text(b"x"), {"z": b"\x00", "c": b"\x00"}], "a": b"\x04"})
    assert encode_variant(decode_variant(value)) == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"\x10\x01\x00\x00\x00\x00\x00\x00\x00"[:1] + b"\x01\x00", encode_integer(1)),
        (encode_float(-0.0), encode_float(0.0)),
        (encode_decimal(Decimal("1.50")), encode_decimal(Decimal("1.5"))),
        (b"\x20\x02" + (150).to_bytes(4, "little"), encode_decimal(Decimal("1.5"))),
        (b"\x40\x01\x00\x00\x00x", encode_text(b"x")),
        (encode_float(float("nan")), encode_float(-float("nan"))),
    ],
    ids=["a wide integer", "a zero's sign", "zeros at the end", "zeros at the end as written by others", "a long string", "NaN"],
)
def test_what_no_function_can_tell_apart_is_one_value(one: bytes, other: bytes) -> None:
    assert (
        to_canonical_form(encode_variant({"k": one}))
        == to_canonical_form(encode_variant({"k": other}))
        == encode_variant({"k": other})
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (encode_integer(1), encode_decimal(Decimal(1))),
        (encode_integer(1), encode_float(1.0)),
        (encode_float(1.5), encode_float(1.5, 14)),
        (encode_text(b"2020-01-01"), b"\x2c" + (18262).to_bytes(4, "little")),
    ],
    ids=["integer, decimal", "integer, double", "double, float", "string, date"],
)
def test_values_of_different_types_stay_different(one: bytes, other: bytes) -> None:
    assert to_canonical_form(encode_variant([one])) != to_canonical_form(encode_variant([other]))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _has_decimal(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_decimal, value.values()))
    if isinstance(value, list):
        return any(map(_has_decimal, value))
    return isinstance(value, Decimal)
