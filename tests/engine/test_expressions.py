"""Expressions that are evaluated by Arrow have the values and the types that Spark gives them."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_pipelines.rows.expressions.evaluation import can_evaluate, evaluate
from airflow_pipelines.sql.plan.ir.expression import Expression
from tests.tiers import examples

TYPES: Final[Mapping[str, pa.DataType]] = {
    "b": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "d5": pa.decimal128(5, 2),
    "d18": pa.decimal128(18, 0),
    "d38": pa.decimal128(38, 10),
    "s": pa.string(),
    "s2": pa.string(),
    "f": pa.float64(),
    "day": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
}
TAME: Final[Mapping[str, Sequence[Any]]] = {
    "b": [True, False],
    "i8": [0, 1, -1, 7],
    "i16": [0, 1, -1, 300],
    "i32": [0, 1, -1, 7, 70_000],
    "i64": [0, 1, -1, 7, 5_000_000_000],
    "d5": [Decimal("0.00"), Decimal("1.00"), Decimal("-1.50"), Decimal("7.25")],
    "d18": [Decimal(0), Decimal(1), Decimal(-7)],
    "d38": [Decimal("0"), Decimal("1.0000000000"), Decimal("-1.5000000001")],
    "s": ["", "a", "abc", " a ", "a_c", "Abc", "1"],
    "s2": ["", "a", "abc", "ABC", "b%"],
    "f": [0.0, 1.5, -1.0],
    "day": [date(1970, 1, 1), date(2024, 2, 29), date(1969, 12, 31), date(2026, 12, 28)],
    "ts": [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 23, 59, 59, 999999, UTC)],
    "ntz": [datetime(1969, 12, 31, 23, 59, 59, 1), datetime(2024, 2, 29, 12, 30, 15)],
}
WILD: Final[Mapping[str, Sequence[Any]]] = {
    "b": [True, False],
    "i8": [-128, 127, 0],
    "i16": [-(2**15), 2**15 - 1],
    "i32": [-(2**31), 2**31 - 1, 1],
    "i64": [-(2**63), 2**63 - 1, 2**53 + 1],
    "d5": [Decimal("999.99"), Decimal("-999.99"), Decimal("0.01")],
    "d18": [Decimal(10**18 - 1), Decimal(-(10**18) + 1)],
    "d38": [Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001")],
    "s": ["a\nb", "é", "日本", "İ", "\u00a0a\u00a0", "a\tb", "ß", "\U0001f600", "a\\c", "%"],
    "s2": ["a\nb", "É", "ǅ", "_", "\x00"],
    "f": [float("nan"), float("inf"), -0.0, 1e300],
    "day": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(1900, 2, 28), date(2021, 1, 3)],
    "ts": [datetime(1, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    "ntz": [datetime(1582, 10, 10, 1, 2, 3), datetime(1900, 1, 1) - timedelta(microseconds=1), datetime(2021, 1, 3, 0, 0)],
}


def table_of(values: Mapping[str, Sequence[Any]], rows: int = 40) -> pa.Table:
    chosen = random.Random(7)
    columns = {name: [chosen.choice([None, *values[name], *values[name]]) for _ in range(rows)] for name in TYPES}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in TYPES.items()})


TABLES: Final = {"tame": table_of(TAME), "wild": table_of(WILD)}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    for name, table in TABLES.items():
        numbered = table.append_column("__row", pa.array(range(table.num_rows)))
        frame = spark.createDataFrame(numbered)
        # Spark takes timestamps without a zone for those of the session's zone, which is UTC.
        frame.withColumn("ntz", frame["ntz"].cast("timestamp_ntz")).createOrReplaceTempView(f"expressions_{name}")
    return spark


def of_spark(session: SparkSession, table: str, texts: Sequence[str]) -> list[pa.Array | None]:
    """The values of expressions; None for those that fail."""
    items = "".join(f", {text} AS v{at}" for at, text in enumerate(texts))
    try:
        found = session.sql(f"SELECT __row{items} FROM expressions_{table}").toArrow().sort_by("__row")
    except PySparkException:
        return [None] if len(texts) == 1 else [each for text in texts for each in of_spark(session, table, [text])]
    return [found[f"v{at}"].combine_chunks() for at in range(len(texts))]


def of_arrow(table: str, text: str) -> pa.Array | None:
    values = evaluate(Expression(text).parse(), {(name,): TABLES[table][name] for name in TYPES}, TABLES[table].num_rows)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def assert_alike(session: SparkSession, texts: Sequence[str]) -> dict[tuple[str, str], bool]:
    """Compare all answers, and say which expressions Arrow evaluated."""
    evaluated = {}
    for table in TABLES:
        for text, expected in zip(texts, of_spark(session, table, texts), strict=True):
            found = of_arrow(table, text)
            evaluated[table, text] = found is not None
            if found is None:
                continue
            assert expected is not None, f"{text} of {table}: Spark fails, Arrow has {found}"
            if pa.types.is_null(found.type):
                found = found.cast(expected.type)
            assert found.type == expected.type, f"{text} of {table}"
            assert list(map(repr, found.to_pylist())) == list(map(repr, expected.to_pylist())), f"{text} of {table}"
    return evaluated


SUPPORTED: Final = [
    "i32",
    "1",
    "NULL",
    "TRUE",
    "'a b'",
    "1.50",
    "-2147483648",
    "-9223372036854775808",
    "i8 = i64",
    "i32 <> 7",
    "i32 >= -1 AND b",
    "b OR i8 < 1",
    "NOT b",
    "i32 IS NULL",
    "s IS NOT NULL",
    "f IS NULL",
    "b IS TRUE",
    "b IS NOT FALSE",
    "(i8 > 0) IS TRUE",
    "i8 <=> i64",
    "s <=> NULL",
    "s IS DISTINCT FROM s2",
    "i64 IN (1, 7, 5000000000)",
    "i64 NOT IN (1, NULL)",
    "s IN ('a', 'abc')",
    "i32 BETWEEN 0 AND 7",
    "d5 NOT BETWEEN 0 AND 1.5",
    "d5 = 1",
    "d5 > 0.5",
    "d18 < i64",
    "d38 >= d5",
    "d38 = 1.0000000000",
    "day < DATE '2024-02-29'",
    "ts >= TIMESTAMP '2024-01-01 00:00:00'",
    "s < s2",
    "s LIKE 'a%'",
    "s NOT LIKE '_b_'",
    "b = TRUE",
    "CASE WHEN i8 > 0 THEN i32 END",
    "CASE WHEN i8 > 0 THEN i8 WHEN b THEN i64 ELSE 0 END",
    "CASE i8 WHEN 1 THEN 'one' WHEN 7 THEN 'seven' ELSE 'other' END",
    "CASE WHEN b THEN f END",
    "CASE WHEN b THEN d5 ELSE NULL END",
    "IF(b, s, s2)",
    "IF(NULL, 1, 2)",
    "CASE WHEN NULL AND NULL THEN 1 END",
    "COALESCE(i8, i32, 0)",
    "COALESCE(s, 'none')",
    "COALESCE(f, f)",
    "NULLIF(i32, 0)",
    "NULLIF(s, '')",
    "i32 + 1",
    "i8 + i8",
    "i16 - i8",
    "i64 * 2",
    "-i32",
    "d5 + 1",
    "d5 + d5",
    "d5 - i32",
    "d5 * d5",
    "d5 * 2",
    "d5 + (1)",
    "d18 + 1.25",
    "-d5",
    "ABS(i32)",
    "ABS(d18)",
    "d18 * d18",
    "d18 - d18",
    "-d18",
    "GREATEST(i8, i32)",
    "LEAST(day, DATE '1970-01-01')",
    "CAST(i8 AS BIGINT)",
    "CAST(i32 AS DECIMAL(12,2))",
    "CAST(i32 AS STRING)",
    "CAST(b AS INT)",
    "CAST(day AS STRING)",
    "CAST(d5 AS DECIMAL(10,4))",
    "YEAR(day)",
    "MONTH(ts)",
    "DAY(ntz)",
    "QUARTER(day)",
    "DAYOFWEEK(day)",
    "WEEKDAY(day)",
    "DAYOFYEAR(day)",
    "WEEKOFYEAR(day)",
    "HOUR(ts)",
    "MINUTE(ntz)",
    "SECOND(ts)",
    "EXTRACT(YEAR FROM ts)",
    "EXTRACT(DOW FROM day)",
    "EXTRACT(WEEK FROM day)",
    "DATE_TRUNC('DAY', ts)",
    "DATE_TRUNC('month', ts)",
    "DATE_TRUNC('WEEK', ts)",
    "DATE_TRUNC('quarter', ts)",
    "DATE_TRUNC('HOUR', ts)",
    "TRUNC(day, 'MM')",
    "TRUNC(day, 'week')",
    "TRUNC(day, 'YEAR')",
    "LENGTH(s)",
    "CHAR_LENGTH(s2)",
    "LOWER(s)",
    "UPPER(s)",
    "SUBSTRING(s, 1, 2)",
    "SUBSTRING(s, 2)",
    "SUBSTR(s, 0, 1)",
    "s || s2",
    "CONCAT(s, '-', s2)",
    "TRIM(s)",
]
LEFT_TO_SPARK: Final = [
    "f > 1",
    "f = f",
    "i32 / 2",
    "i32 % 2",
    "f + 1",
    "s = 1",
    "day = '2024-02-29'",
    "day > ts",
    "CAST(s AS INT)",
    "TRY_CAST(i64 AS TINYINT)",
    "CAST(f AS INT)",
    "CAST(d5 AS STRING)",
    "s LIKE s2",
    "s LIKE 'a!%' ESCAPE '!'",
    "s RLIKE 'a'",
    "SUBSTRING(s, -1)",
    "TRIM(BOTH 'a' FROM s)",
    "s COLLATE UTF8_LCASE = 'A'",
    "1e3",
    "EXTRACT(SECOND FROM ts)",
    "YEAR(s)",
    "rand()",
    "i32 IN (SELECT 1)",
    "COALESCE(i32, d5)",
    "d38 * d38",
    "CASE WHEN NULL THEN 1 ELSE 2 END",
    "CASE WHEN b THEN 1 WHEN COALESCE(NULL, NULL) THEN 2 END",
    "d5 + -1",
    "-d38",
    "ABS(d38)",
    "1.5 + (- 0)",
    "99999999999999999999",
]


@pytest.mark.core(slow_because="each expression of the table is evaluated by Spark, over usual and extreme values")
def test_what_is_supported_has_the_answers_of_spark(session: SparkSession) -> None:
    evaluated = assert_alike(session, SUPPORTED)
    assert [text for text in SUPPORTED if not evaluated["tame", text]] == []


def test_what_is_not_supported_is_left_to_spark() -> None:
    assert [text for text in LEFT_TO_SPARK if of_arrow("tame", text) is not None] == []


def test_a_value_for_which_spark_fails_is_left_to_spark() -> None:
    for text in ("i8 + i8", "i64 * 2", "-i32", "ABS(i64)", "CAST(i64 AS INT)", "CAST(i32 AS DECIMAL(5,2))"):
        assert of_arrow("wild", text) is None, text


@pytest.mark.parametrize("text", ["NULLIF(i32)", "DATE_TRUNC('DAY')", "TRUNC(day)", "YEAR(day, 1)", "ABS()", "COALESCE()"])
def test_a_call_with_another_number_of_arguments_is_left_to_spark(text: str) -> None:
    assert of_arrow("tame", text) is None


@pytest.mark.parametrize("depth", [10, 50, 500])
def test_an_expression_that_nests_too_deep_is_left_to_spark(depth: int) -> None:
    tree = Expression("COALESCE(" * depth + "i32" + ", 1)" * depth).tree
    values = None if tree is None else evaluate(tree, {("i32",): pa.array([None, 2], pa.int32())}, 2)
    assert values is None or values.to_pylist() == [1, 2]
    assert values is not None or depth > 10


@pytest.mark.parametrize("text", ["i32 > 1 AND s = 'a'", "CASE WHEN b THEN i8 ELSE 0 END IN (1, NULL)", "COALESCE(d5, d5) < 1.5"])
def test_conditions_that_never_fail_are_known_before_there_are_rows(text: str) -> None:
    assert can_evaluate(Expression(text).parse(), {(name,): kind for name, kind in TYPES.items()})


@pytest.mark.parametrize("text", ["i32 + 1 > 1", "LOWER(s) = 'a'", "f > 1", "unknown = 1", "CAST(i64 AS INT) = 1", "i32 = 'a'"])
def test_conditions_that_may_be_left_to_spark_are_known_before_there_are_rows(text: str) -> None:
    assert not can_evaluate(Expression(text).parse(), {(name,): kind for name, kind in TYPES.items()})


DOCUMENTS: Final = [
    '{"a": "x"}', '{"a": 1}', '{"a": -7, "b": 2}', '{"a": true}', '{"a": false}', '{"a": null}', '{}', "{ }", '{"b": 1}',
    '{"a": {"b": "y"}}', '{"a": {"b": 12345678901234567890123}}', '{"a": {"b": null}}', '{"a": {"c": 1}}', '{"a": ""}',
    '{"a": "\\u00e9\\n\\"\\/"}', '{"a": "😀"}', '{"\\u0061": 3}', '{"a": 1}  ', ' {"a": 1}', "5", '"a"', "null", "[]",
    '[{"a": 1}]', '{"a": [1, {"b": 2}]}', '{"a": {"b": [1]}}', '{"a": 1.5}', '{"a": 1e2}', '{"a": -0}', '{"a": -0.0}',
    '{"a": 1, "a": 2}', "{'a': 1}", '{"a": 1} x', '{"a": 1', '{"a": NaN}', '{"a": "\t"}', '{"a": "\\ud800"}', "", " ",
    '{"a": 01}', '{"a": +1}', "{a: 1}", '{"a": {"b": {"c": "deep"}}}', '{"x": {"a": 1}, "a": 2}', '{"a": "x" /* y */}',
    '﻿{"a": 1}', '{"a": "\\u0000"}', '{"A": 1}', '{"a": "x", "b": ' + "[" * 1_000 + "]" * 1_000 + "}",
]  # fmt: skip


@pytest.mark.core
@pytest.mark.parametrize("path", ["$.a", "$.a.b", "$.b", "$.a.b.c"])
def test_fields_of_json_are_those_of_spark(spark: SparkSession, path: str) -> None:
    text = f"GET_JSON_OBJECT(s, '{path}')"
    frame = spark.createDataFrame(pa.table({"n": range(len(DOCUMENTS)), "s": DOCUMENTS}))
    expected = frame.selectExpr("n", f"{text} AS v").toArrow().sort_by("n")["v"].to_pylist()
    tree = Expression(text).parse()
    read = {}
    for document, field in zip(DOCUMENTS, expected, strict=True):
        values = evaluate(tree, {("s",): pa.array([document, None, document])}, 3)
        if values is not None:
            assert values.to_pylist() == [field, None, field], document
            read[document] = field
    assert len(read) >= 20, "whatever is strictly JSON, and no value that is written anew"
    assert evaluate(tree, {("s",): pa.array([*read, DOCUMENTS[0]])}, len(read) + 1).to_pylist() == [*read.values(), expected[0]]
    assert evaluate(tree, {("s",): pa.array(["{'a': 1}", '{"a": 1}'])}, 2) is None


@pytest.mark.parametrize("depth", [300, 600, 1_500, 4_000])
def test_a_json_text_that_nests_too_deep_for_spark_is_left_to_it(depth: int) -> None:
    # The depth to which Python's parser goes depends on its version and on the limit of recursions; the answer must not.
    tree = Expression("GET_JSON_OBJECT(s, '$.a')").parse()
    text = '{"a": "x", "b": ' + "[" * depth + "]" * depth + "}"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        values = evaluate(tree, {("s",): pa.array([text])}, 1)
    finally:
        sys.setrecursionlimit(limit)
    assert (None if values is None else values.to_pylist()) == (["x"] if depth == 300 else None)


@pytest.mark.parametrize("path", ["$", "a", "$.a[0]", "$[0]", "$.*", "$.a..b", "$['a']", "$.a-b", "$.é", "$. a"])
def test_other_paths_of_json_are_left_to_spark(path: str) -> None:
    tree = Expression(f"GET_JSON_OBJECT(s, {path!r})" if "'" not in path else f'GET_JSON_OBJECT(s, "{path}")').parse()
    assert evaluate(tree, {("s",): pa.array(['{"a": 1}'])}, 1) is None


LITERALS: Final = ["0", "1", "-1", "7", "127", "128", "-128", "32768", "2147483648", "1.5", "0.01", "-0.5", "1.00", "NULL"]
NUMBERS: Final = ["i8", "i16", "i32", "i64", "d5", "d18", "d38", *LITERALS]
TEXTS: Final = ["s", "s2", "''", "'a'", "'abc'", "'é'", "NULL"]
TIMES: Final = ["day", "ts", "ntz", "DATE '2024-02-29'", "TIMESTAMP '1969-12-31 23:59:59.5'", "TIMESTAMP_NTZ '2021-01-03 00:00:00'"]


def numbers(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(NUMBERS)
    if not depth:
        return leaf
    inner = numbers(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("(- {})".format, inner),
        st.builds("ABS({})".format, inner),
        st.builds(
            "CAST({} AS {})".format,
            inner,
            st.sampled_from(["TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(7,2)", "DECIMAL(38,6)"]),
        ),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds("NULLIF({}, {})".format, inner, inner),
        st.builds("GREATEST({}, {})".format, inner, inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, truths(depth - 1), inner, inner),
        st.builds("CASE {} WHEN {} THEN {} END".format, inner, inner, inner),
        st.builds("LENGTH({})".format, texts(depth - 1)),
        st.builds(
            "{}({})".format, st.sampled_from(["YEAR", "MONTH", "DAY", "DAYOFWEEK", "WEEKDAY", "WEEKOFYEAR", "HOUR"]), times(0)
        ),
    )


def texts(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(TEXTS)
    if not depth:
        return leaf
    inner = texts(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} || {})".format, inner, inner),
        st.builds("{}({})".format, st.sampled_from(["LOWER", "UPPER", "TRIM"]), inner),
        st.builds("SUBSTRING({}, {}, {})".format, inner, st.integers(0, 3), st.integers(0, 3)),
        st.builds("SUBSTRING({}, {})".format, inner, st.integers(0, 3)),
        st.builds("IF({}, {}, {})".format, truths(depth - 1), inner, inner),
        st.builds("CAST({} AS STRING)".format, numbers(depth - 1)),
    )


def times(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(TIMES)
    if not depth:
        return leaf
    units = st.sampled_from(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"])
    return st.one_of(
        leaf,
        st.builds("DATE_TRUNC('{}', {})".format, units, leaf),
        st.builds("TRUNC({}, '{}')".format, leaf, units),
        st.builds("COALESCE({}, {})".format, leaf, leaf),
    )


def truths(depth: int) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM"])
    patterns = st.sampled_from(["a%", "%b%", "_", "", "%", "a_c", "É"])
    below = max(depth - 1, 0)
    plain = [
        st.sampled_from(["b", "TRUE", "FALSE", "NULL", "(b IS NULL)"]),
        *(st.builds("({} {} {})".format, kind(below), operators, kind(below)) for kind in (numbers, texts, times)),
        st.builds("({} IN ({}, {}))".format, numbers(below), numbers(0), numbers(0)),
        st.builds("({} NOT IN ({}, {}))".format, texts(below), texts(0), texts(0)),
        st.builds("({} BETWEEN {} AND {})".format, numbers(below), numbers(0), numbers(0)),
        st.builds("({} LIKE '{}')".format, texts(below), patterns),
        st.builds("({} IS NOT NULL)".format, st.one_of(numbers(below), texts(below))),
    ]
    if not depth:
        return st.one_of(plain)
    inner = truths(depth - 1)
    return st.one_of(
        *plain,
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("(NOT {})".format, inner),
        st.builds("({} IS {})".format, inner, st.sampled_from(["TRUE", "FALSE", "NOT TRUE", "NULL"])),
    )


@pytest.mark.core(slow_because="Spark evaluates some hundred random expressions, each for itself where one of them fails")
@settings(
    max_examples=examples("EXPRESSION_EXAMPLES", 12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.one_of(numbers(2), texts(2), times(1), truths(2)), min_size=25, max_size=25))
def test_any_expression_has_the_answer_of_spark(session: SparkSession, texts: list[str]) -> None:
    assert_alike(session, texts)
