"""The tables of the differential suite, and eight steps of fixed changes to them: from a first load down to empty."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_pipelines.rows.changes import Op

Row = tuple[Any, ...]

TABLES: Mapping[str, str] = {
    "t": "k int, g varchar, i int, b bigint, d decimal(10,2), f double, s varchar, ts timestamp, dt date, o boolean",
    "u": "k int, g varchar, n int, w decimal(10,2)",
    "p": "id int primary key, k int, v int, s varchar",
    "q": "id int, r int, c varchar, primary key (id, r)",
    "nums": "g int, a decimal(38,0), c decimal(38,18), e decimal(20,4), h decimal(5,2), r real, f double",
    "nest": "id int primary key, a int array, l varchar array, m map<varchar, int>, st struct<x: int, y: varchar>,"
    " ls array<struct<n: int, w: varchar>>, aa array<array<int>>",
    "docs": "id int primary key, k int, j varchar",
    "edges": "x int, y int",
    "times": "id int primary key, lt timestamp with time zone, nt timestamp, zone varchar, tm time, dt date",
    "sales": "shop varchar, year int, quarter int, amount decimal(10,2), n int",
}
"""The columns of every table."""
KEYS: Mapping[str, int] = {"p": 1, "q": 2, "nest": 1, "docs": 1, "times": 1}
"""How many of the first columns are the primary key."""

NAN, INF = float("nan"), float("inf")
_START = datetime.datetime(2025, 3, 30, 0, 40)
_DAY = datetime.date(2024, 2, 27)


def declaration(table: str) -> str:
    """The statement that declares a table."""
    return f"create table {table} ({TABLES[table]}) with ('materialized' = 'true');\n"


def _pick(number: int, *pool: Any) -> Any:
    return pool[number % len(pool)]


def _t(n: int) -> Row:
    return (
        _pick(n, 1, 2, 3, None, 1, 0, 2),
        _pick(n * 3, "a", "b", None, "", "ä"),
        _pick(n * 5, 3, None, -1, 0, 7, 3, 12, -5),
        _pick(n * 7, 10, 2**40, None, -(2**40), 0, 10),
        _pick(
            n * 2,
            Decimal("1.50"),
            Decimal("-0.01"),
            None,
            Decimal("99999999.99"),
            Decimal("0.00"),
            Decimal("2.25"),
            Decimal("1.50"),
        ),
        _pick(n, 0.5, NAN, -0.0, INF, 1.5, None, -INF, 0.0, -2.25, NAN, 0.5),
        _pick(n, "x", "", None, "ü😀", "it's", "X", "abc", "x y"),
        _pick(n * 3, None, *(_START + datetime.timedelta(minutes=m) for m in (0, 3, 3, 9, 14, 31, 33, 60, 200, 1440))),
        _pick(n, _DAY, _DAY + datetime.timedelta(2), None, _DAY + datetime.timedelta(9), datetime.date(2023, 12, 31)),
        _pick(n, True, False, None),
    )


def _u(n: int) -> Row:
    return (
        _pick(n * 2, 1, 3, None, 5, 2, 0, 1),
        _pick(n, "a", None, "b", "c", ""),
        _pick(n * 3, 4, 1, None, 3, 0, -1),
        _pick(n, Decimal("1.50"), None, Decimal("10.00"), Decimal("-3.25")),
    )


def _p(n: int) -> Row:
    return (n, _pick(n, 1, 2, None, 3), _pick(n * 3, 5, 5, 9, None, 0), _pick(n, "m", None, "n", "", "m"))


def _q(n: int) -> Row:
    return (n // 3, n % 3, _pick(n, "red", "blue", None, "Red", "blue"))


def _nums(n: int) -> Row:
    return (
        _pick(n, 1, 2, 1, None, 3),
        _pick(n, Decimal("9" * 38), Decimal(1), Decimal(0), None, Decimal("-" + "9" * 38), Decimal(12345)),
        _pick(n, Decimal("0.000000000000000001"), None, Decimal("99999999999999999999.999999999999999999"), Decimal("-1.5")),
        _pick(n * 3, Decimal("0.0001"), Decimal("9999999999999999.9999"), None, Decimal("-12.5000"), Decimal("2.0000")),
        _pick(n, Decimal("999.99"), Decimal("-999.99"), Decimal("0.05"), None, Decimal("0.00"), Decimal("2.50"), Decimal("0.05")),
        _pick(n, 1.5, NAN, None, -0.0, INF, 0.25, 0.0),
        _pick(n * 2, NAN, 0.0, -0.0, INF, -INF, None, 2.5, 1e300, -1.25, 5e-324, 2.5),
    )


def _nest(n: int) -> Row:
    return (
        n,
        _pick(n, [1, 2, 3], [], None, [None, 2], [3, 1, 3, None]),
        _pick(n * 2, ["b", "a"], None, ["", None, "ä"], []),
        _pick(n, {"b": 1, "a": 2}, {}, None, {"a": None}, {"c": 3, "a": 2, "b": 0}),
        _pick(n * 3, {"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 2, "y": None}, {"x": None, "y": None}),
        _pick(n, [{"n": 1, "w": "p"}, {"n": 2, "w": None}], None, [], [None, {"n": None, "w": "q"}]),
        _pick(n, [[1, 2], [3]], [[], None], None, [], [[None, 4]]),
    )


def _docs(n: int) -> Row:
    return (
        n,
        _pick(n, 1, 2, None),
        _pick(
            n,
            '{"a": 1, "b": [1, 2, {"c": "x"}], "s": "text"}',
            '{"b": null, "a": 2.50}',
            "null",
            None,
            '[1, "two", null, {"a": true}]',
            '{"s": "2024-02-29", "a": "12", "e": {}}',
            '"text"',
            "17",
            '{"a": {"a": {"a": 7}}, "t": true, "big": 12345678901234567890.5}',
        ),
    )


def _edges(n: int) -> Row:
    return _pick(n, (1, 2), (2, 3), (3, 1), (3, 4), (6, 7), (7, 8), (None, 1), (5, 5), (4, None), (8, 9))


def _times(n: int) -> Row:
    utc = datetime.UTC
    return (
        n,
        _pick(
            n,
            datetime.datetime(2025, 3, 30, 0, 59, 59, 999999, utc),
            datetime.datetime(2025, 3, 30, 1, 0, tzinfo=utc),
            None,
            datetime.datetime(2025, 10, 26, 0, 30, tzinfo=utc),
            datetime.datetime(2025, 10, 26, 1, 30, tzinfo=utc),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 1, utc),
            datetime.datetime(1582, 10, 4, 12, 0, tzinfo=utc),
        ),
        _pick(
            n * 2,
            datetime.datetime(2025, 3, 30, 2, 30),
            datetime.datetime(2025, 10, 26, 2, 30),
            datetime.datetime(2024, 2, 29, 23, 59, 59, 999999),
            None,
            datetime.datetime(1, 1, 2),
            datetime.datetime(2024, 12, 30, 5, 6, 7, 890000),
        ),
        _pick(n, "Europe/Zurich", "America/New_York", "UTC", "+05:30", None),
        _pick(n, datetime.time(0, 0), datetime.time(23, 59, 59, 999999), None, datetime.time(12, 30, 15, 1)),
        _pick(n, datetime.date(2024, 2, 29), datetime.date(2024, 12, 30), None, datetime.date(2025, 1, 1), datetime.date(1, 1, 1)),
    )


def _sales(n: int) -> Row:
    return (
        _pick(n, "north", "south", None, "north"),
        _pick(n * 2, 2023, 2024, 2025),
        _pick(n, 1, 2, 3, 4, None),
        _pick(n * 3, Decimal("10.00"), Decimal("2.50"), None, Decimal("-1.25")),
        _pick(n, 1, None, 2, 3, 5, 8),
    )


MAKERS: Mapping[str, Callable[[int], Row]] = {
    "t": _t,
    "u": _u,
    "p": _p,
    "q": _q,
    "nums": _nums,
    "nest": _nest,
    "docs": _docs,
    "edges": _edges,
    "times": _times,
    "sales": _sales,
}


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table that come with one operation."""

    table: str
    op: Op
    rows: Sequence[Row]


def _nulls(table: str) -> Iterator[Row]:
    """Rows that are NULL where they may be, twice where there is no key."""
    columns = len(MAKERS[table](0))
    keys = KEYS.get(table, 0)
    for number in (40, 41):
        yield (*MAKERS[table](number)[:keys], *(None,) * (columns - keys))
    if table == "nest":
        yield (42, [None, None], [None], {"a": None}, {"x": None, "y": None}, [None, {"n": None, "w": None}], [None, [None]])


def _load(table: str) -> list[Part]:
    return [Part(table, Op.INSERT, [MAKERS[table](n) for n in range(12)])]


def _updates(table: str) -> list[Part]:
    make = MAKERS[table]
    if table in KEYS:
        keys = KEYS[table]
        return [Part(table, Op.INSERT, [(*make(n)[:keys], *make(n + 2)[keys:]) for n in (0, 1, 2, 5, 8)])]
    return [Part(table, Op.DELETE, [make(n) for n in (0, 4, 7)]), Part(table, Op.INSERT, [make(n) for n in (13, 15, 18)])]


def _deletions(table: str) -> list[Part]:
    return [Part(table, Op.DELETE, [MAKERS[table](n) for n in (1, 2, 3, 6, 10)])]


def _duplicates(table: str) -> list[Part]:
    make = MAKERS[table]
    again = (5, 5, 9, 11) if table not in KEYS else (5, 9, 11, 12)
    return [Part(table, Op.INSERT, [make(n) for n in again]), Part(table, Op.INSERT, [make(n) for n in (8, 9, 14)])]


def _all_nulls(table: str) -> list[Part]:
    return [Part(table, Op.INSERT, list(_nulls(table)))]


def _corrections(table: str) -> list[Part]:
    make = MAKERS[table]
    return [Part(table, Op.INSERT, [make(n) for n in (1, 3, 6)]), Part(table, Op.DELETE, [make(n) for n in (5, 9, 11)])]


def _large(table: str) -> list[Part]:
    first = 50 if table in KEYS else 14
    return [Part(table, Op.INSERT, [MAKERS[table](n) for n in range(first, first + (16 if table == "edges" else 30))])]


STEPS: Sequence[Callable[[str], list[Part]]] = (
    _load,
    _updates,
    _deletions,
    _duplicates,
    _all_nulls,
    _corrections,
    _large,
)
"""What happens to each table in the steps before the last one, which deletes everything."""


def _same(row: Row, other: Row) -> bool:
    return repr(canonical(row)) == repr(canonical(other))


def canonical(value: Any) -> Any:
    """A value in the form in which the engine holds it."""
    if isinstance(value, tuple):
        return tuple(map(canonical, value))
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        # A map that comes from Arrow is a list of pairs.
        pairs = bool(value) and all(isinstance(item, tuple) for item in value)
        return sorted(map(canonical, value)) if pairs else list(map(canonical, value))
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in sorted(value.items())}
    return value


def _apply(rows: list[Row], part: Part) -> None:
    """Change a table by the simplest possible rules."""
    keys = KEYS.get(part.table, 0)
    for row in part.rows:
        same = [old for old in rows if old[:keys] == row[:keys]] if keys else []
        if part.op is Op.DELETE and not keys:
            same = [old for old in rows if _same(old, row)][:1]
        for old in same:
            del rows[next(at for at, one in enumerate(rows) if one is old)]
        if part.op is Op.INSERT:
            rows.append(canonical(row))


def steps(tables: Sequence[str]) -> Iterator[tuple[list[Part], dict[str, list[Row]]]]:
    """The changes of each step, and what the tables hold after it."""
    contents: dict[str, list[Row]] = {name: [] for name in tables}
    for step in STEPS:
        parts = [part for name in tables for part in step(name)]
        for part in parts:
            _apply(contents[part.table], part)
        yield parts, {name: list(rows) for name, rows in contents.items()}
    yield [Part(name, Op.DELETE, rows) for name, rows in contents.items() if rows], {name: [] for name in tables}
