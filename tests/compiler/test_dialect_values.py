"""The value of each construct of the dialect, as a view keeps it and as an ad-hoc query answers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.programs import Running

TABLE = """
create type line as (item varchar, price decimal(10,2));
create table t (id int primary key, i int, f double, r real, d decimal(10,2), s varchar, bin varbinary, tm time, ts timestamp,
    dt date, o boolean, a int array, l varchar array, m map<varchar, int>, ro row(x int, y varchar), ls line array)
    with ('materialized' = 'true');
"""
MOMENT = dt.datetime(2024, 2, 29, 13, 45, 59, 123456)
DAY = dt.date(2024, 2, 29)
ROW: tuple[Any, ...] = (
    1, 7, 2.5, 1.5, Decimal("12.34"), "Hello World", b"\x01\xab", dt.time(10, 20, 30), MOMENT, DAY,
    True, [3, 1, 2], ["b", None, "a"], {"x": 1, "y": 2}, {"x": 1, "y": "z"}, [{"item": "i", "price": Decimal("1.00")}],
)  # fmt: skip
NULLS: tuple[Any, ...] = (2, *(None,) * (len(ROW) - 1))
VALUES: dict[str, Any] = {
    # Types and casts.
    "cast(s as varchar(3))": "Hel",
    "cast('a' as char(3))": "a  ",
    "cast(i as text)": "7",
    "cast(i as tinyint unsigned)": 7,
    "cast(i as bigint unsigned) + 1": Decimal(8),
    "i * 1e0": 7.0,
    "cast(1.5 as real)": 1.5,
    "cast(i as decimal)": Decimal(7),
    "cast(bin as binary(3))": b"\x01\xab\x00",
    "cast(bin as varbinary(1))": b"\x01",
    "cast(' 10:20 ' as time)": dt.time(10, 20),
    "cast('2024-01-02 03:04:05.5' as timestamp)": dt.datetime(2024, 1, 2, 3, 4, 5, 500000),
    "ts + 2 * interval '1' hour": MOMENT + dt.timedelta(hours=2),
    "ts - interval '1' day": MOMENT - dt.timedelta(days=1),
    "(ts - timestamp '2024-02-29 00:00:00') hours to minutes": dt.timedelta(hours=13, minutes=45),
    "(dt - date '2024-01-01') days": dt.timedelta(days=59),
    "cast((dt - date '2023-01-01') months as int)": 13,
    "interval '1' day + interval '2' hour": dt.timedelta(days=1, hours=2),
    "interval '1' day > interval '1' hour": True,
    "tm - time '10:00:00'": dt.timedelta(minutes=20, seconds=30),
    "cast(array[1, i] as varchar array)": ["1", "7"],
    "m['x']": 1,
    "m['none']": None,
    "ro.x + (ro).x": 2,
    "ls[0].item": "i",
    "ls[0][1]": "i",
    "(ls[0])[2] + ro[1]": Decimal("2.00"),
    "m = map('y', 2, 'x', 1)": True,
    "cast(row('a', i) as line).price": Decimal("7.00"),
    "line(upper('a'), i).item": "A",
    "cast('550E8400-e29b-41d4-a716-446655440000' as uuid)": "550e8400-e29b-41d4-a716-446655440000",
    "safe_cast(s as int)": None,
    "i::varchar": "7",
    "cast(2.9 as int)": 2,
    "cast(-2.9e0 as int)": -2,
    "cast(ts as bigint)": 1709214359123,
    "cast(1709214359123 as timestamp)": dt.datetime(2024, 2, 29, 13, 45, 59, 123000),
    "cast(ts as date)": DAY,
    "cast(ts as time)": MOMENT.time(),
    "cast(dt as timestamp)": dt.datetime(2024, 2, 29),
    "cast(o as varchar)": "true",
    # VARIANT.
    "cast(parse_json('{\"k\": [10, {\"z\": 2.5}]}')['k'][2].z as decimal(3,1))": Decimal("2.5"),
    "cast(parse_json('{\"k\": [10]}')['k'][1] as int) + i": 17,
    "try_cast(parse_json('\"x\"') as int)": None,
    "cast(parse_json('[1, 2]') as int array)": [1, 2],
    "cast(parse_json('{\"item\": \"x\", \"price\": 1.5}') as line).price": Decimal("1.50"),
    "typeof(parse_json('18446744073709551615'))": "DECIMAL",
    "typeof(parse_json('{}'))": "MAP",
    "typeof(variantnull())": "VARIANT",
    "parse_json('null') is null": False,
    "to_json(parse_json('{\"b\": 1, \"a\": [1, \"x\", null]}'))": '{"a":[1,"x",null],"b":1}',
    "to_json(cast(i as variant))": "7",
    "json_each_bigint(parse_json('{\"a\": 1, \"b\": \"x\"}'))": {"a": 1},
    "json_object_keys('{\"a\": 1}')": ["a"],
    "to_json(variant_filter(parse_json('{\"a\": 1, \"b\": 2}'), (k, v) -> k = 'a'))": '{"a":1}',
    # Arithmetic.
    "i / 2": 3.5,
    "i div 2": 3,
    "-i % 3": -1,
    "mod(i, -4)": 3,
    "f / 0": float("inf"),
    "-r / 0": float("-inf"),
    "div_null(i, 0)": None,
    "div_null(i, 2)": 3,
    "bround(2.5, 0)": Decimal(2),
    "truncate(d, 1)": Decimal("12.3"),
    "greatest_ignore_nulls(i, null)": 7,
    "least(i, 3)": 3,
    # NULL.
    "array[null] = array[null]": True,
    "array[1, null] < array[1, 2]": True,
    "ro <=> ro": True,
    "ro is not distinct from row(1, 'q')": False,
    "i is distinct from null": True,
    "null <=> null": True,
    "o is not unknown": True,
    "(1, i) in ((1, 7), (2, 8))": True,
    # Texts.
    "s || '!'": "Hello World!",
    "substring(s from 2 for 3)": "ell",
    "position('o' in s)": 5,
    "overlay(s placing 'XX' from 1 for 5)": "XX World",
    "initcap('one-two three')": "One-two Three",
    "split('a.b', '[.]')": ["a", "b"],
    "split_part('a.b', '.', 2)": "b",
    "concat_ws('-', s, null, 'x')": "Hello World-x",
    "trim(both 'H' from s)": "ello World",
    "s rlike '^Hel+o'": True,
    "s ilike 'hello%'": True,
    "regexp_replace(s, 'l+', 'L')": "HeLo WorLd",
    "chr(i + 60)": "C",
    "ascii(s)": 72,
    "md5('a')": "0cc175b9c0f1b6a831c399e269772661",
    "to_hex(bin)": "01ab",
    "to_int(bin)": 427,
    "bin2utf8(x'4142')": "AB",
    "left(s, 2) || right(s, 2)": "Held",
    # Dates and times.
    "extract(millennium from ts)": 3,
    "extract(century from dt)": 21,
    "extract(decade from dt)": 202,
    "extract(isodow from dt)": 4,
    "extract(dow from dt)": 5,
    "extract(epoch from dt)": 1709164800,
    "extract(millisecond from ts)": 59123,
    "extract(hour from tm)": 10,
    "date_part(quarter, dt)": 1,
    "floor(ts to hour)": dt.datetime(2024, 2, 29, 13),
    "ceil(ts to month)": dt.datetime(2024, 3, 1),
    "date_trunc(dt, month)": dt.date(2024, 2, 1),
    "timestamp_trunc(ts, minute)": dt.datetime(2024, 2, 29, 13, 45),
    "time_trunc(tm, hour)": dt.time(10),
    "floor(tm to minute)": dt.time(10, 20),
    "ceil(tm to hour)": dt.time(11),
    "ceil(tm to second)": dt.time(10, 20, 30),
    "ceil(time '23:59:59.5' to second)": dt.time(0),
    "timestampdiff(minute, time '10:00:00', tm)": 20,
    "timestampadd(hour, 2, ts)": MOMENT + dt.timedelta(hours=2),
    "timestampdiff(month, timestamp '2023-12-29 13:46:00', ts)": 1,
    "datediff(day, dt, date '2024-03-01')": 1,
    "make_date(2024, i, 31)": dt.date(2024, 7, 31),
    "make_time(1, 2, 3.5)": dt.time(1, 2, 3, 500000),
    "make_timestamp(2024, 1, 31, 1, 2, 3) = timestamp '2024-01-31 01:02:03'": True,
    "format_timestamp('%Y-%m-%d %H:%M', ts)": "2024-02-29 13:45",
    "parse_date('%d.%m.%Y', '05.01.2024')": dt.date(2024, 1, 5),
    "parse_date('%d.%m.%Y', s)": None,
    "convert_timezone('UTC', 'Europe/Zurich', ts)": MOMENT + dt.timedelta(hours=1),
    "(dt, dt) contains date '2024-02-29'": True,
    "(dt, date '2024-03-05') precedes (date '2024-04-01', date '2024-04-02')": True,
    "(dt, date '2024-03-05') succeeds (date '2024-02-01', date '2024-02-02')": True,
    "(dt, dt) equals (dt, dt)": True,
    "(dt, date '2024-03-05') overlaps (date '2024-03-01', date '2024-04-02')": True,
    "last_day(dt)": DAY,
    # Arrays, maps, lambda functions.
    "transform(a, x -> x + i)": [10, 8, 9],
    "array_exists(a, x -> x > 2)": True,
    "filter(a, x -> x > 1)": [3, 2],
    "sequence(1, 3)": [1, 2, 3],
    "sort_array(array_union(a, array[5, 1]))": [1, 2, 3, 5],
    "array_intersect(a, array[1, 9])": [1],
    "array_except(a, array[1])": [3, 2],
    "array_contains(a, 2)": True,
    "array_to_string(l, ',', '*')": "b,*,a",
    "cardinality(a) + cardinality(m)": 5,
    "a[safe_offset(5)]": None,
    "a[ordinal(1)]": 3,
    "element(array[i])": 7,
    "map_keys(m)": ["x", "y"],
    "map_contains_key(m, 'x')": True,
    "1 between symmetric i and 0": True,
    "case i when 7 then 'seven' else 'other' end": "seven",
}  # fmt: skip
FAILING = {
    "i / 0": "DIVIDE_BY_ZERO",
    "d / 0": "DIVIDE_BY_ZERO",
    "i % 0": "REMAINDER_BY_ZERO",
    "2147483647 + i": "ARITHMETIC_OVERFLOW",
    "cast(300 as tinyint unsigned)": "does not fit into TINYINT UNSIGNED",
    "cast(-i as int unsigned)": "does not fit into INTEGER UNSIGNED",
    "element(a)": "several elements",
    "cast(s as int)": "CAST_INVALID_INPUT",
    "cast(parse_json('\"x\"') as int)": "INVALID_VARIANT_CAST",
    "make_date(2024, 2, 31)": "DATETIME_FIELD_OUT_OF_BOUNDS",
    "a[3]": "INVALID_ARRAY_INDEX",
    "a[ordinal(9)]": "INVALID_ARRAY_INDEX",
    "time '23:00:00' + interval '2' hour": "DATETIME_OVERFLOW",
}
"""What is an error when it is evaluated, and a word of it."""
QUERY = f"select {', '.join(f'{text} as c{at}' for at, text in enumerate(VALUES))} from t where id = 1"


@pytest.fixture(scope="module")
def running(sessions: SparkSessions) -> Running:
    running = Running(f"{TABLE} create materialized view v as {QUERY}", sessions)
    running.insert("t", NULLS)
    running.insert("t", ROW)
    return running


@pytest.fixture(scope="module")
def row_alone(sessions: SparkSessions) -> Running:
    """Make a table with the row, and no view over it."""
    running = Running(TABLE, sessions)
    running.insert("t", ROW)
    return running


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_a_view_has_the_value_of_each(running: Running) -> None:
    (row,) = running.rows("v")
    assert dict(zip(VALUES, map(_plain, row), strict=True)) == VALUES
    running.delete("t", ROW)
    assert running.rows("v") == []
    running.insert("t", ROW)


def test_a_query_has_the_value_of_each(running: Running) -> None:
    frame = run_adhoc(running.circuit, QUERY).frame
    assert frame is not None
    (row,) = frame.collect()
    assert dict(zip(VALUES, map(_plain, row), strict=True)) == VALUES


@pytest.mark.core
@pytest.mark.parametrize("text", FAILING)
def test_what_has_no_value_is_an_error(row_alone: Running, text: str) -> None:
    frame = run_adhoc(row_alone.circuit, f"select {text} as x from t where id = 1").frame
    assert frame is not None
    with pytest.raises(PySparkException, match=FAILING[text]):
        frame.collect()
