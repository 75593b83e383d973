"""Which types have several representations, and the expressions that bring values into the one that is stored."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.values.canonical_form import has_several_forms, in_canonical_form


@pytest.mark.parametrize(
    "kind",
    ["float", "double", "variant", "map<string,int>", "array<double>", "struct<a:int,b:array<variant>>", "map<int,double>"],
)
def test_types_with_several_representations(kind: str) -> None:
    assert has_several_forms(kind)
    assert in_canonical_form("`x`", kind) != "`x`"


@pytest.mark.parametrize(
    "kind",
    [
        "boolean", "tinyint", "bigint", "decimal(10,2)", "string", "binary", "date", "time(6)", "timestamp", "timestamp_ntz",
        "interval day to second", "interval year to month", "array<string>", "struct<a:int,b:array<date>>",
        "struct<float:int,double:int,variant:int,map:int>",
    ],
)  # fmt: skip
def test_types_with_one_representation_are_left_alone(kind: str) -> None:
    assert not has_several_forms(kind)
    assert in_canonical_form("`x`", kind) == "`x`"


def test_parts_with_one_representation_are_not_taken_apart() -> None:
    text = in_canonical_form("`x`", "struct<a:array<string>,b:double>")
    assert "TRANSFORM(`__v0`.`a`" not in text
    assert "NANVL(`__v0`.`b`" in text


def test_the_value_is_evaluated_once() -> None:
    assert in_canonical_form("f(x)", "struct<a:double,b:double,c:map<string,float>>").count("f(x)") == 1
    assert in_canonical_form("f(x)", "map<string,double>").count("f(x)") == 1
