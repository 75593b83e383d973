"""Values of every type, as their settings ask for them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from airflow_pipelines.connectors.transports.datagen import fake_texts
from airflow_pipelines.connectors.transports.datagen.columns import maker_of
from airflow_pipelines.connectors.transports.datagen.makers import PlanProblem
from airflow_pipelines.connectors.transports.datagen.options import FieldOptions, Strategy
from airflow_pipelines.rows.formats.variant import to_json
from airflow_pipelines.rows.schema import arrow_type
from airflow_pipelines.rows.types import ColumnType, decimal
from tests.connectors.relations import NESTED, SCALARS

VARCHAR = ColumnType("VARCHAR")


def made(kind: ColumnType | str, rows: int = 4, seed: int = 1, first: int = 0, **options: Any) -> list[Any]:
    """Values of a column; the names of options and their values are as in a program."""
    kind = ColumnType(kind) if isinstance(kind, str) else kind
    maker = maker_of(kind, FieldOptions.model_validate(options), "column 'c'", seed)
    values = maker.make(np.arange(first, first + rows, dtype=np.int64), np.random.default_rng(seed))
    values.validate(full=True)
    assert values.type == arrow_type(kind)
    return values.to_pylist()


@pytest.mark.parametrize("strategy", ["increment", "uniform", "zipf"])
@pytest.mark.parametrize("column", [*SCALARS.columns, *NESTED.columns], ids=lambda column: column.name)
def test_every_type_has_every_strategy(column: Any, strategy: str) -> None:
    found = made(column.type, 50, strategy=strategy, first=10**9)
    assert len(found) == 50
    assert None not in found


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        ("BIGINT", {}, [0, 1, 2, 3]),
        ("BIGINT", {"range": [1, 4]}, [1, 2, 3, 1]),
        ("INTEGER", {"scale": -1}, [0, -1, -2, -3]),
        ("UBIGINT", {"range": [2**64 - 2, 2**64]}, [2**64 - 2, 2**64 - 1] * 2),
        ("BOOLEAN", {}, [False, True, False, True]),
        ("DOUBLE", {"scale": 0.5}, [0.0, 0.5, 1.0, 1.5]),
        (decimal(38, 2), {}, [Decimal(n) for n in ("0.00", "1.00", "2.00", "3.00")]),
        (decimal(5, 2), {"scale": 0.25, "range": [9.5, 10]}, [Decimal(n) for n in ("9.50", "9.75", "9.50", "9.75")]),
        (decimal(5, 0), {"scale": -2}, [Decimal(n) for n in (0, -2, -4, -6)]),
        ("VARCHAR", {}, ["0", "1", "2", "3"]),
        ("VARCHAR", {"scale": 10, "range": [3, 5]}, ["000", "010", "020", "030"]),
        (ColumnType("CHAR", precision=3), {}, ["0", "1", "2", "3"]),
        ("UUID", {"range": [9, 11]}, [str(UUID(int=9)), str(UUID(int=10))] * 2),
        ("DATE", {"range": ["2024-08-28", "2024-08-30"]}, [dt.date(2024, 8, 28), dt.date(2024, 8, 29)] * 2),
        ("DATE", {"range": [10, 12]}, [dt.date(1970, 1, 11), dt.date(1970, 1, 12)] * 2),
        ("TIME", {"range": ["00:00:05", "00:00:07"], "scale": 1000}, [dt.time(0, 0, 5), dt.time(0, 0, 6)] * 2),
        (
            "TIMESTAMP",
            {"range": ["2024-08-28T00:00:00Z", "2024-08-28T00:00:02Z"], "scale": 1000},
            [at("2024-08-28 00:00:00"), at("2024-08-28 00:00:01")] * 2,
        ),
        ("TIMESTAMP_TZ", {"range": [0, 2]}, [at("1970-01-01T00:00:00Z"), at("1970-01-01T00:00:00.001Z")] * 2),
        ("VARBINARY", {}, [b"", b"\0", b"\0\1", b"\0\1\2"]),
        (ColumnType("BINARY", precision=2), {"value": {"range": [65, 70]}}, [b"\0\0", b"A\0", b"AB", b"\0\0"]),
        (ColumnType("ARRAY", component=VARCHAR), {"range": [1, 3]}, [["0"], ["0", "1"], ["0"], ["0", "1"]]),
        # Values are taken in turn, and converted as those of records are.
        ("VARCHAR", {"values": ["a", "b", None]}, ["a", "b", None, "a"]),
        (decimal(5, 2), {"values": [1, 2.5, "3.25"]}, [Decimal(n) for n in ("1.00", "2.50", "3.25", "1.00")]),
        ("DATE", {"values": ["2024-08-28", 0]}, [dt.date(2024, 8, 28), dt.date(1970, 1, 1)] * 2),
        ("TIMESTAMP", {"values": [1500]}, [at("1970-01-01 00:00:01.5")] * 4),
        (ColumnType("ARRAY", component=ColumnType("DOUBLE")), {"values": [[1.5, 2], []]}, [[1.5, 2.0], []] * 2),
    ],
    ids=str,
)
def test_values_in_order(kind: ColumnType | str, options: dict[str, Any], wanted: list[Any]) -> None:
    assert made(kind, **options) == wanted


def test_integers_begin_again_at_the_end_of_their_type() -> None:
    assert made("TINYINT", 3, first=126) == [126, 127, 0]
    assert made("TINYINT", 2, strategy="uniform", range=[100, 101], scale=3) == [44, 44]
    assert made("UTINYINT", 2, strategy="uniform", range=[100, 101], scale=3) == [44, 44]


def test_values_at_random_are_of_their_range() -> None:
    prices = made(decimal(38, 2), 200, strategy="uniform", range=[100, 10000])
    assert Decimal(100) <= min(prices) < Decimal(5000) < max(prices) < Decimal(10000)
    texts = made("VARCHAR", 200, strategy="uniform", range=[2, 5])
    assert {len(text) for text in texts} == {2, 3, 4}
    assert all(text.isalnum() for text in texts)
    assert all(len(text) <= 3 for text in made(ColumnType("VARCHAR", precision=3), 200, strategy="uniform"))
    assert {UUID(text).version for text in made("UUID", strategy="uniform")} == {4}
    counts = [made("BIGINT", 2000, strategy="zipf", range=[5, 9]).count(number) for number in range(5, 9)]
    assert counts == sorted(counts, reverse=True)
    assert min(counts) > 0


def test_nulls() -> None:
    found = made("BIGINT", 10_000, null_percentage=20)
    assert 1800 < found.count(None) < 2200
    assert [value for place, value in enumerate(found) if value not in (None, place)] == []
    assert made(ColumnType("ARRAY", component=VARCHAR), null_percentage=100) == [None] * 4
    assert made("BIGINT", null_percentage=0) == [0, 1, 2, 3]


def test_nested_values() -> None:
    inner = ColumnType("STRUCT", fields=(("n", ColumnType("BIGINT")), ("Tag", VARCHAR)))
    kind = ColumnType("ARRAY", component=inner)
    options = {"range": [2, 3], "value": {"fields": {"N": {"range": [7, 9]}, "Tag": {"values": ["x"]}}}}
    assert made(kind, 1, **options) == [[{"n": 7, "Tag": "x"}, {"n": 8, "Tag": "x"}]]
    pairs = ColumnType("MAP", key=ColumnType("VARCHAR", False), value=ColumnType("INTEGER"))
    found = made(pairs, 100, range=[3, 4], key={"strategy": "uniform", "range": [1, 2]}, value={"scale": 2})
    # A key that comes a second time is left out.
    assert all(1 <= len({key for key, _ in pair}) == len(pair) <= 3 for pair in found)
    assert max(map(len, found)) == 3
    assert all(pair[0][1] == 0 for pair in found)


@pytest.mark.rest
def test_variants() -> None:
    def texts(**options: Any) -> list[str]:
        return [to_json(value) for value in made("VARIANT", 2, **options)]

    assert texts() == ["0", "1"]
    assert texts(range=[0.5, 2.5]) == ["0.5", "1.5"]
    assert texts(values=[{"a": [1, None]}, "x"]) == ['{"a":[1,null]}', '"x"']
    assert all(text.startswith('"') for text in texts(strategy="first_name"))


@pytest.mark.parametrize("strategy", [strategy for strategy in Strategy if strategy.is_for_strings])
def test_texts_that_look_real(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_texts, "POOL", 64)
    found = made("VARCHAR", 50, strategy=strategy.value)
    assert len(set(found)) > 1


def test_texts_that_look_real_follow_the_seed_and_fit_the_type() -> None:
    found = made("VARCHAR", 50, strategy="name")
    assert found == made("VARCHAR", 50, strategy="name")
    assert found != made("VARCHAR", 50, seed=2, strategy="name")
    assert {len(text) for text in made(ColumnType("VARCHAR", precision=4), strategy="email")} == {4}


def test_how_many_words() -> None:
    assert {len(text.split()) for text in made("VARCHAR", 100, strategy="words", range=[2, 4])} == {2, 3}


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (ColumnType("BIGINT", False), {"null_percentage": 1}, "must not be NULL, but 'null_percentage' is 1"),
        (ColumnType("BIGINT", False), {"values": [None]}, "must not be NULL, but 'values' has a null"),
        ("BIGINT", {"range": [5, 5]}, r"'range' \[5, 5\] has nothing in it"),
        ("BIGINT", {"range": ["a", 5]}, "'range'"),
        ("TINYINT", {"range": [0, 300]}, r"'range' \[0, 300\] goes beyond what TINYINT can hold"),
        (decimal(3, 1), {"range": [0, 1000]}, "goes beyond what DECIMAL"),
        ("REAL", {"range": [0, 1e300]}, "goes beyond what REAL"),
        ("UINTEGER", {"scale": -1}, "cannot hold negative numbers"),
        ("TIME", {"range": [0, 10**9]}, "goes beyond a day"),
        ("DATE", {"range": ["yesterday", 5]}, "is not a date"),
        ("VARCHAR", {"range": [-1, 5], "strategy": "uniform"}, "a length cannot be -1"),
        (ColumnType("VARCHAR", precision=3), {"range": [0, 9], "strategy": "uniform"}, "lengths up to 8, but the type holds 3"),
        ("BIGINT", {"strategy": "email"}, "strategy 'email' makes strings, but the type is BIGINT"),
        ("VARCHAR", {"strategy": "email", "values": ["a"]}, "'email' cannot pick from 'values'"),
        ("VARCHAR", {"values": []}, "'values' is empty"),
        ("BIGINT", {"values": ["x"]}, "'values': .* is not an integer"),
        (ColumnType("STRUCT", fields=(("n", VARCHAR),)), {"fields": {"m": {}}}, "has no column or field 'm'; there are: n"),
        (
            ColumnType("ARRAY", component=ColumnType("TINYINT")),
            {"value": {"range": [0, 300]}},
            "column 'c', 'value': 'range'",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_made(kind: ColumnType | str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanProblem, match=message):
        made(kind, **options)
