"""The value of every function and construct that is translated, as Spark computes it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from airflow_pipelines.sql.definitions import Definitions
from airflow_pipelines.sql.edits import Edited
from airflow_pipelines.sql.rewrite.builtins import TEMPLATES
from airflow_pipelines.sql.rewrite.translate import translate

if TYPE_CHECKING:
    from airflow_pipelines.engine.sessions import SparkSessions

_DAY, _MOMENT = dt.date(2021, 3, 4), dt.datetime(2021, 3, 4, 15, 16, 17, 125000)

VALUES: dict[str, Any] = {
    "array_exists(array(1, 2), x -> x > 1)": True,
    "array_length(array(1, null))": 2,
    "array_length(cast(null as int array))": None,
    "greatest_ignore_nulls(1, null, 3)": 3,
    "least_ignore_nulls(null, 2)": 2,
    "is_nan(double('NaN'))": True,
    "is_inf(double('-Infinity'))": True,
    "truncate(-1.7)": Decimal("-1"),
    "truncate(1.27, 1)": Decimal("1.2"),
    "truncate(-1.27, 1)": Decimal("-1.2"),
    "bin2utf8(x'4142')": "AB",
    "strpos('abc', 'c')": 3,
    "to_hex(x'0AFF')": "0aff",
    "to_json(variantnull())": "null",
    "row(1, 'a')": (1, "a"),
    "array[1, 2][safe_offset(1)]": 2,
    "array[1, 2][safe_offset(5)]": None,
    "map['a', 1]['a']": 1,
    "extract(century from d)": 21,
    "extract(decade from d)": 202,
    "extract(millennium from d)": 3,
    "extract(isodow from d)": 4,
    "extract(isoyear from d)": 2021,
    "extract(epoch from ts)": 1614870977,
    "extract(millisecond from ts)": 17125,
    "extract(microsecond from ts)": 17125000,
    "date_part('epoch', ts)": 1614870977,
    "timestamp_trunc(ts, hour)": dt.datetime(2021, 3, 4, 15),
    "date_trunc(d, month)": dt.date(2021, 3, 1),
    "time_trunc(time '10:11:12', minute)": dt.time(10, 11),
    "floor(ts to minute)": dt.datetime(2021, 3, 4, 15, 16),
    "ceil(ts to day)": dt.datetime(2021, 3, 5),
    "ceil(timestamp '2021-01-01 00:00:00' to year)": dt.datetime(2021, 1, 1),
    "format_date('%Y/%m at %d%%', d)": "2021/03 at 04%",
    "format_timestamp('%F %T', ts)": "2021-03-04 15:16:17",
    "format_time('%H-%M', time '10:11:12')": "10-11",
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
    "cast('AAAAAAAA-0000-0000-0000-00000000000f' as uuid)": "aaaaaaaa-0000-0000-0000-00000000000f",
    "cast('2021-03-04 15:16:17.125' as timestamp)": _MOMENT,
    "timestamp '2021-03-04 15:16:17.125'": _MOMENT,
}
AGGREGATES: dict[str, Any] = {
    "arg_max(a, b)": 1,
    "arg_min(a, b)": 2,
    "countif(a > 1)": 2,
    "logical_and(a > 0)": True,
    "logical_or(a > 2)": True,
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
