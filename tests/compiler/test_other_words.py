"""What docs/sql.md says to write for a meaning that Spark gives to other words."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.programs import Running

pytestmark = pytest.mark.core

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
_LATE = "TIMESTAMP '2000-01-01 00:00:00' + (TIME '23:30:00' - TIME '00:00:00')"
ANSWERS: dict[str, Any] = {
    "7 / 2": 3.5,
    "7 DIV 2": 3,
    "-7 DIV 2": -3,
    "-7 % 3": -1,
    "TYPEOF(AVG(1))": "double",
    "CAST(AVG(3) AS INT)": 3,
    "ARRAY(1, 2)[0]": 1,
    "ARRAY(1, 2)[SAFE_OFFSET(2 - 1)]": 2,
    "TRY_ELEMENT_AT(ARRAY(1, 2), 3)": None,
    "MAP('a', 1)['b']": None,
    "GREATEST(1, NULL)": 1,
    "CASE WHEN 1 IS NOT NULL AND CAST(NULL AS INT) IS NOT NULL THEN GREATEST(1, NULL) END": None,
    "SIZE(ARRAY_AGG(CAST(NULL AS INT)))": 0,
    "SIZE(ARRAY_AGG(STRUCT(CAST(NULL AS INT))))": 1,
    "ARRAY_UNION(ARRAY(2, 1), ARRAY(0))": [2, 1, 0],
    "SORT_ARRAY(ARRAY_UNION(ARRAY(2, 1), ARRAY(0)))": [0, 1, 2],
    "CAST(1.25 AS DECIMAL(2,1))": Decimal("1.3"),
    "TRUNCATE(1.25, 1)": Decimal("1.2"),
    "CAST('2.5' AS DECIMAL(2,0))": Decimal(3),
    "BROUND(CAST('2.5' AS DECIMAL(38,10)), 0)": Decimal(2),
    "CAST(INTERVAL '1-2' YEAR TO MONTH AS VARCHAR)": "INTERVAL '1-2' YEAR TO MONTH",
    "EXTRACT(YEAR FROM INTERVAL '1-2' YEAR TO MONTH)": 1,
    "TO_JSON(PARSE_JSON('[1]')) = TO_JSON(PARSE_JSON('[1]'))": True,
    "CAST(' 5 ' AS INT)": 5,
    "TRY_MAKE_TIMESTAMP(2024, 2, 30, 0, 0, 0)": None,
    "TRY_CAST('2024-02-30' AS DATE)": None,
    f"CAST(DATE_FORMAT({_LATE} + INTERVAL '1' HOUR, 'HH:mm:ss.SSSSSS') AS TIME)": dt.time(0, 30),
    "SPLIT('a.b', '[.]')": ["a", "b"],
    "SPLIT_PART('a.b', '.', 2)": "b",
    "INITCAP('one-two three')": "One-two Three",
    'JSON_OBJECT_KEYS(\'{"b": 1, "a": 2}\')': ["b", "a"],
    "MAP_KEYS(CAST(PARSE_JSON('{\"b\": 1}') AS MAP<STRING, VARIANT>))": ["b"],
    "TRY_CAST(PARSE_JSON('\"x\"') AS INT)": None,
    "TYPEOF(PARSE_JSON('18446744073709551615'))": "DECIMAL",
    "UNHEX(REPLACE('00000000-0000-0000-0000-0000000000ff', '-', ''))": bytearray(bytes(15) + b"\xff"),
    "MAP_ENTRIES(MAP('a', 1)) = MAP_ENTRIES(MAP('a', 1))": True,
    "ROW(1, 2) = ROW(1, 2)": True,
    "TRY_MOD(1e0, 0)": None,
    "ARRAY[NULL] = ARRAY[NULL]": True,
    "DATE ' 2024-01-02 '": dt.date(2024, 1, 2),
    "CAST(' 2024-01-02 03:04:05 ' AS TIMESTAMP)": dt.datetime(2024, 1, 2, 3, 4, 5),
    "TIMESTAMP ' 2024-01-02 03:04:05 '": dt.datetime(2024, 1, 2, 3, 4, 5),
    "CAST(' 03:04:05 ' AS TIME)": dt.time(3, 4, 5),
    "TIME ' 03:04:05 '": dt.time(3, 4, 5),
    "CAST(TIME '03:04:05.250' AS VARCHAR)": "03:04:05.25",
    "1e0 / 0": float("inf"),
    "CAST(-1 AS REAL) / 0": float("-inf"),
    "CAST(0e0 / 0 AS STRING)": "NaN",
    "CAST(NULL AS DOUBLE) / 0": None,
    "1 / CAST(NULL AS DOUBLE)": None,
}


@pytest.fixture(scope="module")
def running(sessions: SparkSessions) -> Running:
    return Running("CREATE TABLE t (a INT) WITH ('materialized' = 'true');", sessions)


@pytest.mark.rest
def test_values(running: Running) -> None:
    frame = run_adhoc(running.circuit, f"SELECT {', '.join(ANSWERS)} FROM VALUES (1) AS one(x)").frame
    assert frame is not None
    assert dict(zip(ANSWERS, frame.collect()[0], strict=True)) == ANSWERS


@pytest.mark.parametrize(
    "value", ["1 / 0", "1.5 / 0", "1 DIV 0", "1e0 % 0", "ARRAY(1)[1]", "MAKE_DATE(2024, 2, 30)", "ELEMENT(ARRAY(1, 2))"]
)
def test_errors(running: Running, value: str) -> None:
    frame = run_adhoc(running.circuit, f"SELECT {value} AS v").frame
    assert frame is not None
    with pytest.raises(Exception, match=r"(?i)zero|index|invalid|several"):
        frame.collect()


def test_the_page_has_what_is_tried_here() -> None:
    text = PAGE.read_text()
    table = text[text.index("for the other meaning write |") :].split("\n\n")[0]
    functions = set(re.findall(r"\b(TRY_\w+|SORT_ARRAY|TRUNCATE|SAFE_OFFSET|DIV|UNHEX|SPLIT_PART|MAP_KEYS|MAP_ENTRIES)\b", table))
    assert all(any(function in query for query in ANSWERS) for function in functions)
