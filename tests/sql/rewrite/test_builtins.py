"""The value of every function and construct that is translated, as Spark computes it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.builtins import TEMPLATES
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

_DAY, _MOMENT = dt.date(2021, 3, 4), dt.datetime(2021, 3, 4, 15, 16, 17, 125000)

VALUES: dict[str, Any] = {
    "array_exists(array(1, 2), x -> x > 1)": True,
    "array_length(array(1, null))": 2,
    "array_length(cast(null as int array))": None,
    "array_reverse(array(1, null, 3))": [3, None, 1],
    "array_concat(array(1), array(), array(2, null))": [1, 2, None],
    "array_to_string(array('a', null, 'b'), '-')": "a-b",
    "array_to_string(array('a', null, 'b'), '-', '?')": "a-?-b",
    "element(array(7))": 7,
    "element(cast(array() as array<int>))": None,
    "greatest_ignore_nulls(1, null, 3)": 3,
    "least_ignore_nulls(null, 2)": 2,
    "is_nan(double('NaN'))": True,
    "is_inf(double('-Infinity'))": True,
    "truncate(-1.7)": Decimal("-1"),
    "truncate(1.27, 1)": Decimal("1.2"),
    "truncate(-1.27, 1)": Decimal("-1.2"),
    "truncate(127, -1)": 120,
    "trunc(-1.7)": Decimal("-1"),
    "trunc(1.27, 1)": Decimal("1.2"),
    "trunc(d, 'MM')": dt.date(2021, 3, 1),
    "round(coth(2), 6)": 1.037315,
    "coth(0)": float("inf"),
    "round(sech(2), 6)": 0.265802,
    "sech(0)": 1.0,
    "round(csch(2), 6)": 0.275721,
    "csch(0)": float("inf"),
    "bin2utf8(x'4142')": "AB",
    "to_int(x'0abc')": 2748,
    "to_int(x'00000100ff')": 256,
    "to_int(x'ffffffff')": -1,
    "to_int(x'')": 0,
    "to_int(cast(null as binary))": None,
    "regexp_replace('a1b22', '[0-9]+')": "ab",
    "strpos('abc', 'c')": 3,
    "to_hex(x'0AFF')": "0aff",
    "to_json(variantnull())": "null",
    "row(1, 'a')": (1, "a"),
    "array[1, 2][safe_offset(1)]": 2,
    "array[1, 2][safe_offset(5)]": None,
    "array[1, 2][safe_ordinal(2)]": 2,
    "array[1, 2][safe_ordinal(3)]": None,
    "map['a', 1]['a']": 1,
    "extract(century from d)": 21,
    "extract(decade from d)": 202,
    "extract(millennium from d)": 3,
    "extract(isodow from d)": 4,
    "extract(isoyear from d)": 2021,
    "extract(epoch from ts)": 1614870977,
    "extract(millisecond from ts)": 17125,
    "extract(microsecond from ts)": 17125000,
    "extract(nanosecond from ts)": 17125000000,
    "date_part('epoch', ts)": 1614870977,
    "date_add(d, interval 1 month)": dt.date(2021, 4, 4),
    "date_sub(d, interval '1' day)": dt.date(2021, 3, 3),
    "date_add(d, 1)": dt.date(2021, 3, 5),
    "timestamp_trunc(ts, hour)": dt.datetime(2021, 3, 4, 15),
    "date_trunc(d, month)": dt.date(2021, 3, 1),
    "time_trunc(time '10:11:12', minute)": dt.time(10, 11),
    "floor(ts to minute)": dt.datetime(2021, 3, 4, 15, 16),
    "ceil(ts to day)": dt.datetime(2021, 3, 5),
    "ceil(timestamp '2021-01-01 00:00:00' to year)": dt.datetime(2021, 1, 1),
    "floor(ts to decade)": dt.datetime(2020, 1, 1),
    "floor(timestamp '2000-12-31 00:00:00' to century)": dt.datetime(1901, 1, 1),
    "ceil(ts to millennium)": dt.datetime(3001, 1, 1),
    "ceil(timestamp '2001-01-01 00:00:00' to century)": dt.datetime(2001, 1, 1),
    "date_trunc(d, isoweek)": dt.date(2021, 3, 1),
    "date_trunc(d, quarter)": dt.date(2021, 1, 1),
    "date_part(year, ts)": 2021,
    "date_part(dow, d)": 5,
    "week(ts)": 9,
    "split('a,b')": ["a", "b"],
    "initcap_spaces('one-two three')": "One-two Three",
    "uuid 'AAAAAAAA-0000-0000-0000-00000000000f'": "aaaaaaaa-0000-0000-0000-00000000000f",
    "interval '1 10:20:30' days to seconds": dt.timedelta(1, 37230),
    "cast('2' as interval days)": dt.timedelta(2),
    "5 = any (select 5)": True,
    "5 <> all (select 5)": False,
    "localtime() is null": False,
    "format_date('%Y/%m at %d%%', d)": "2021/03 at 04%",
    "format_timestamp('%F %T', ts)": "2021-03-04 15:16:17",
    "format_time('%H-%M', time '10:11:12')": "10-11",
    "format_date('%e of %B %-d %G-W%V-%u %w %q %C', d)": " 4 of March 4 2021-W09-4 4 1 20",
    "format_timestamp('%s %k %I %P%.3f %6f', ts)": "1614870977 15 03 pm.125 125000",
    "format_date('%s', d)": "1614816000",
    "parse_date('%d.%m.%Y', '04.03.2021')": _DAY,
    "parse_date('%d.%m.%Y', 'never')": None,
    "parse_timestamp('%Y-%m-%d %H', '2021-03-04 15')": dt.datetime(2021, 3, 4, 15),
    "parse_time('%H:%M', '10:11')": dt.time(10, 11),
    "cast(255 as tinyint unsigned)": 255,
    "cast(18446744073709551615 as bigint unsigned)": Decimal(18446744073709551615),
    "try_cast(-1 as int unsigned)": None,
    "cast('abcdef' as varchar(3))": "abc",
    "cast('a' as char(3))": "a  ",
    "cast(x'01' as binary(2))": bytearray(b"\x01\x00"),
    "safe_cast('x' as int)": None,
    "cast(map('a', '1') as map<varchar, int>)": {"a": 1},
    "cast('AAAAAAAA-0000-0000-0000-00000000000f' as uuid)": "aaaaaaaa-0000-0000-0000-00000000000f",
    "cast('2021-03-04 15:16:17.125' as timestamp)": _MOMENT,
    "timestamp '2021-03-04 15:16:17.125'": _MOMENT,
    "timestamp with time zone '2021-03-04 16:16:17+01:00' = cast('2021-03-04T15:16:17Z' as timestamp with time zone)": True,
}
AGGREGATES: dict[str, Any] = {
    "arg_max(a, b)": 1,
    "arg_min(a, b)": 2,
    "countif(a > 1)": 2,
    "logical_and(a > 0)": True,
    "logical_or(a > 2)": True,
    "array_agg(nullif(a, 1) order by b desc)": [2, 3],
    "array_agg(nullif(a, 1) order by b desc) respect nulls": [None, 2, 3],
    "array_agg(nullif(a, 1) respect nulls order by b)": [3, 2, None],
    "array_agg(nullif(a, 1) respect nulls) filter (where b > 0)": [None, 2],
    "sort_array(array_agg(distinct nullif(a, 1) ignore nulls))": [2, 3],
}


def test_values(sessions: SparkSessions) -> None:
    items = ", ".join(f"{text} as v{at}" for at, text in enumerate(VALUES))
    query = f"select {items} from values (date '{_DAY}', timestamp_ntz '{_MOMENT}') t(d, ts)"
    (row,) = sessions.small.sql(translate(Edited(query), Definitions()).text).collect()
    assert dict(zip(VALUES, row, strict=True)) == VALUES


def test_aggregates(sessions: SparkSessions) -> None:
    items = ", ".join(f"{text} as v{at}" for at, text in enumerate(AGGREGATES))
    query = f"select {items} from values (1, 2), (2, 1), (3, null) t(a, b)"
    (row,) = sessions.small.sql(translate(Edited(query), Definitions()).text).collect()
    assert dict(zip(AGGREGATES, row, strict=True)) == AGGREGATES


def test_every_name_has_a_value() -> None:
    tried = {text.split("(")[0] for text in [*VALUES, *AGGREGATES, "variantnull("]}
    assert {name for name, _ in TEMPLATES} <= tried


@pytest.mark.parametrize("join", [", unnest(l) as u(x)", " cross join unnest(l) u(x)", " join lateral unnest(l) as u(x)"])
def test_unnest_in_from(sessions: SparkSessions, join: str) -> None:
    query = translate(Edited(f"select k, x from values (1, array(2, 3)) t(k, l){join}"), Definitions())
    assert [tuple(row) for row in sessions.small.sql(query.text).collect()] == [(1, 2), (1, 3)]
