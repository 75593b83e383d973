"""VARIANT values are written as Spark's builder writes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.connectors.formats import jsontext, variant
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.variant_binary import assembled, canonical, decimal, double, integer, string, taken_apart

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
            assert canonical(theirs) == canonical(ours) == ours, value
            if not _has_decimal(value):
                assert theirs == ours, value

    check()


def test_taking_apart_and_assembling_changes_nothing() -> None:
    value = {"value": b"", "metadata": b""}
    value = assembled({"b": [string(b"x"), {"z": b"\x00", "c": b"\x00"}], "a": b"\x04"})
    assert assembled(taken_apart(value)) == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"\x10\x01\x00\x00\x00\x00\x00\x00\x00"[:1] + b"\x01\x00", integer(1)),
        (double(-0.0), double(0.0)),
        (decimal(Decimal("1.50")), decimal(Decimal("1.5"))),
        (b"\x20\x02" + (150).to_bytes(4, "little"), decimal(Decimal("1.5"))),
        (b"\x40\x01\x00\x00\x00x", string(b"x")),
        (double(float("nan")), double(-float("nan"))),
    ],
    ids=["a wide integer", "a zero's sign", "zeros at the end", "zeros at the end as written by others", "a long string", "NaN"],
)
def test_what_no_function_can_tell_apart_is_one_value(one: bytes, other: bytes) -> None:
    assert canonical(assembled({"k": one})) == canonical(assembled({"k": other})) == assembled({"k": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (integer(1), decimal(Decimal(1))),
        (integer(1), double(1.0)),
        (double(1.5), double(1.5, 14)),
        (string(b"2020-01-01"), b"\x2c" + (18262).to_bytes(4, "little")),
    ],
    ids=["integer, decimal", "integer, double", "double, float", "string, date"],
)
def test_values_of_different_types_stay_different(one: bytes, other: bytes) -> None:
    assert canonical(assembled([one])) != canonical(assembled([other]))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _has_decimal(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_decimal, value.values()))
    if isinstance(value, list):
        return any(map(_has_decimal, value))
    return isinstance(value, Decimal)
