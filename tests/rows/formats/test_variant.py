"""The binary form of VARIANT."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_pipelines.rows.formats import jsontext, variant


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "true",
        "false",
        "0",
        "-128",
        "128",
        "-32769",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "-1.5",
        "0.001",
        '""',
        '"é"',
        '"' + "x" * 63 + '"',
        '"' + "x" * 64 + '"',
        "[]",
        "[1,[2,[]]]",
        "{}",
        '{"a":null,"b":{"a":1}}',
        '{"":1}',
        "[" + ",".join(map(str, range(300))) + "]",
        "{" + ",".join(f'"k{n:03}":{n}' for n in range(300)) + "}",
        '["' + "y" * 70000 + '"]',
    ],
)
def test_json_comes_back(text: str) -> None:
    assert variant.to_json(variant.encode(jsontext.loads(text))) == text


def test_spark_reads_and_writes_the_same_form() -> None:
    # Spark's own pure Python reader of variants needs no Spark session.
    from pyspark.sql.types import VariantVal

    value = jsontext.loads('{"b":[1,2.5,"x",null,true],"a":{"c":12345678901,"é":-0.125}}')
    binary = variant.encode(value)
    assert VariantVal(binary["value"], binary["metadata"]).toPython() == {
        "a": {"c": 12345678901, "é": Decimal("-0.125")},
        "b": [1, Decimal("2.5"), "x", None, True],
    }
    theirs = VariantVal.parseJson('{"z": [1, 2.50, 1e10], "y": "text"}')
    assert jsontext.loads(variant.to_json({"value": theirs.value, "metadata": theirs.metadata})) == {
        "y": "text",
        "z": [1, Decimal("2.5"), Decimal("1e10")],
    }


def test_equal_documents_have_equal_bytes() -> None:
    assert variant.encode(jsontext.loads('{"a":1,"b":2}')) == variant.encode(jsontext.loads('{"b":2,"a":1}'))
