"""The JSON format: what is accepted, what is refused and how, and what is left alone."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.rows.changes import GIVEN, OP, Op
from airflow_pipelines.rows.formats.flavors import JsonFlavor
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import GRADES, NESTED, SCALARS, col, relation, rows


def parse(text: str | bytes, schema: Any = GRADES, **options: Any) -> Parsed:
    data = text.encode() if isinstance(text, str) else text
    return JsonParser(schema, JsonOptions(**options)).parse(data)


def test_raw_rows_one_per_line() -> None:
    parsed = parse(
        '{"student_id": 1, "grade": 97.5}\n{"student_id": 2, "class": "algebra", "class_date": "2025-09-15"}', update_format="raw"
    )
    assert rows(parsed) == [
        {"student_id": 1, "class": None, "grade": Decimal("97.50"), "class_date": None, OP: 1},
        {"student_id": 2, "class": "algebra", "grade": None, "class_date": dt.date(2025, 9, 15), OP: 1},
    ]
    assert (parsed.records, parsed.num_errors, parsed.next_index) == (2, 0, 2)


def test_changes_keep_their_order() -> None:
    text = '{"insert": {"student_id": 1}} {"delete": {"student_id": 1}}{"update": {"student_id": 2, "class": null}}'
    parsed = parse(text)
    assert [row[OP] for row in rows(parsed)] == [Op.INSERT, Op.DELETE, Op.UPDATE]
    assert [row[GIVEN] for row in rows(parsed)] == [None, None, ["student_id", "class"]]


def test_records_may_span_lines_and_be_arrays() -> None:
    parsed = parse('{\n  "insert": [\n 1, "a", "2.5",\n null]\n}\n{"insert": [2, null, 3, null, "extra"]}\n')
    assert [(row["student_id"], row["grade"]) for row in rows(parsed)] == [(1, Decimal("2.50")), (2, Decimal("3.00"))]
    assert parsed.num_errors == 0


def test_a_bad_record_has_its_number_and_reason_and_costs_nobody_else() -> None:
    parsed = parse(
        '{"student_id": 1}\n{"student_id": "x"}\n{"student_id": 3\n{"student_id": 4}\nnonsense\n{"student_id": 6}',
        update_format="raw",
    )
    assert [row["student_id"] for row in rows(parsed)] == [1, 4, 6]
    assert [error.index for error in parsed.errors] == [1, 2, 4]
    assert "record 1: column 'student_id': \"x\" is not an integer (BIGINT)" in parsed.errors[0].message
    assert "malformed JSON" in parsed.errors[1].message
    assert "nonsense" in parsed.errors[2].message
    assert parsed.num_errors == 3


def test_a_broken_record_over_lines_is_one_error() -> None:
    parsed = parse('{\n  "student_id": x,\n  "class": "a"\n}\n{\n  "student_id": 2\n}\n', update_format="raw")
    assert [row["student_id"] for row in rows(parsed)] == [2]
    assert parsed.num_errors == 1


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"upsert": {}}', "'upsert' is not a change"),
        ("{}", "not a change"),
        ('{"insert": {}, "delete": {}}', "not a change"),
        ("5", "not a change"),
        ('{"insert": 5}', "must be an object or an array"),
        ('{"insert": {"class": "x"}}', "'student_id' is missing and NOT NULL"),
        ('{"insert": {"student_id": null}}', "'student_id' is NOT NULL"),
        ('{"insert": [1, "a"]}', "2 values, but the table has 4 columns"),
        ('{"insert": {"student_id": true}}', "true is not an integer"),
        ('{"insert": {"student_id": 1.5}}', "1.5 is not an integer"),
        ('{"insert": {"student_id": 9223372036854775808}}', "out of range for BIGINT"),
        ('{"insert": {"student_id": 1e999999999}}', "is not an integer"),
        ('{"insert": {"student_id": 1, "grade": 1000}}', "out of range for DECIMAL(5,2)"),
        ('{"insert": {"student_id": 1, "grade": 1e999999999}}', "out of range for DECIMAL(5,2)"),
        ('{"insert": {"student_id": 1, "grade": 1e99999999999999999999}}', "malformed JSON"),
        ('{"insert": {"student_id": 1, "grade": NaN}}', "NaN is not JSON"),
        ('{"insert": {"student_id": 1, "class": 5}}', "5 is not a string"),
        ('{"insert": {"student_id": 1, "class": "\\ud800"}}', "not valid UTF-8"),
        ('{"insert": {"student_id": 1, "class_date": "2025-02-30"}}', "is not a date"),
        ('{"insert": {"student_id": 1, "class_date": "20250228"}}', "is not a date"),
        ('{"update": [1]}', "an update must be an object"),
        ("[" * 100_000, "malformed JSON"),
    ],
)
def test_malformed_records(record: str, reason: str) -> None:
    parsed = parse(record + '\n{"insert": {"student_id": 7}}')
    assert [row["student_id"] for row in rows(parsed)] == [7]
    assert parsed.num_errors == 1
    assert reason in parsed.errors[0].message
    assert len(parsed.errors[0].message) < 400


def test_bytes_that_are_not_utf8_spoil_one_record() -> None:
    parsed = parse(b'{"student_id": 1, "class": "\xff"}\n{"student_id": 2, "class": "\xc3\xa9"}', update_format="raw")
    assert [row["class"] for row in rows(parsed)] == ["é"]
    assert parsed.num_errors == 1


def test_integral_numbers_are_integers_and_decimals_stay_exact() -> None:
    parsed = parse(
        '{"insert": [5.0, null, "0.29", null]}{"insert": [5e2, null, 0.105, null]}{"insert": [1, null, "-0.105", null]}'
        '{"insert": [1, null, 1e-999999999, null]}'
    )
    assert [(row["student_id"], str(row["grade"])) for row in rows(parsed)] == [
        (5, "0.29"),
        (500, "0.11"),
        (1, "-0.11"),
        (1, "0.00"),
    ]


def test_unsigned_integers_have_their_own_range() -> None:
    schema = relation(col("a", "UTINYINT"), col("b", "UBIGINT"))
    parsed = parse(f"[255, {2**64 - 1}]\n[256, 0]\n[0, -1]\n[0, {2**64}]", schema, update_format="raw")
    assert [(row["a"], row["b"]) for row in rows(parsed)] == [(255, Decimal(2**64 - 1))]
    assert [error.message.split("': ", 1)[1].split(" in [")[0] for error in parsed.errors] == [
        "256 is out of range for TINYINT UNSIGNED",
        "-1 is out of range for BIGINT UNSIGNED",
        f"{2**64} is out of range for BIGINT UNSIGNED",
    ]


def test_weighted_rows() -> None:
    row = '{"student_id": 1, "class": "x"}'
    text = f'{{"weight": 2, "data": {row}}} {{"weight": -1, "data": {row}}} {{"weight": 0, "data": {{"student_id": 9}}}}'
    parsed = parse(text, update_format="weighted")
    assert [row["__op"] for row in rows(parsed)] == [1, 1, -1]
    parsed = parse('{"weight": 1.5, "data": {}} {"weight": 1} 5', update_format="weighted")
    assert (parsed.num_errors, parsed.changes) == (3, None)
    assert "not a weighted row" in parsed.errors[0].message


def test_changes_of_debezium() -> None:
    row, other = {"student_id": 1, "class": "x"}, {"student_id": 1, "class": "y"}
    events = [
        {"schema": {}, "payload": {"op": "c", "before": None, "after": row, "ts_ms": 5}},
        {"payload": {"op": "u", "before": row, "after": other}},
        {"op": "d", "before": other, "after": None},
    ]
    parsed = parse("\n".join(json.dumps(event) for event in events), update_format="debezium")
    assert [(row["__op"], row["class"]) for row in rows(parsed)] == [(1, "x"), (-1, "x"), (1, "y"), (-1, "y")]
    parsed = parse('{"payload": {"op": "m"}} {"payload": {"op": "d"}} {"payload": {"op": "c"}}', update_format="debezium")
    assert parsed.num_errors == 3
    assert [word in error.message for word, error in zip(("'m'", "'before'", "'after'"), parsed.errors, strict=True)] == [True] * 3


def test_a_truncation_of_debezium_empties_the_table() -> None:
    many = [{"op": "c", "after": {"student_id": number, "class": "x"}} for number in range(1_000)]
    events = [*many, {"op": "t", "before": None, "after": None}, {"op": "c", "after": {"student_id": 7, "class": "y"}}]
    for array in (False, True):
        text = json.dumps(events) if array else "\n".join(json.dumps(event) for event in events)
        parsed = parse(text, update_format="debezium", array=array)
        assert parsed.changes is not None
        assert (parsed.changes.truncates, parsed.num_errors) == (True, 0)
        assert [(row["student_id"], row["class"]) for row in rows(parsed)] == [(7, "y")]


LARGE = RelationSchema(
    "t", (col("id", "BIGINT", null=False), col("n", "INTEGER"), col("text", "VARCHAR"), col("data", "VARBINARY")), ("id",)
)
UNAVAILABLE = "__debezium_unavailable_value"


def changes_of(*events: dict[str, Any], schema: RelationSchema = LARGE) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows of changes as a PostgreSQL connector writes them, each with the columns that an update sets, and what is wrong."""
    parser = JsonParser(schema, JsonOptions(update_format="debezium", json_flavor=JsonFlavor.DEBEZIUM_POSTGRES))
    parsed = parser.parse("\n".join(json.dumps(event) for event in events).encode())
    found = [(row[OP], row["id"], row["n"], row["text"], row["data"], row.get(GIVEN)) for row in rows(parsed)]
    return found, [error.message for error in parsed.errors]


def test_a_value_that_debezium_did_not_send_stays_as_it_is() -> None:
    after = {"id": 1, "n": 5, "text": UNAVAILABLE, "data": base64.b64encode(UNAVAILABLE.encode()).decode()}
    found, problems = changes_of({"op": "u", "before": None, "after": after})
    assert (found, problems) == ([(Op.UPDATE, 1, 5, None, None, ["id", "n"])], [])
    # A row that is told by its key alone has NULL elsewhere.
    found, problems = changes_of({"op": "u", "before": {"id": 1, "n": None, "text": None, "data": None}, "after": after})
    assert (found, problems) == ([(Op.UPDATE, 1, 5, None, None, ["id", "n"])], [])
    before = {"id": 1, "n": 4, "text": "long", "data": base64.b64encode(b"large").decode()}
    found, problems = changes_of({"op": "u", "before": before, "after": after})
    assert ([row[:5] for row in found], problems) == ([(-1, 1, 4, "long", b"large"), (1, 1, 5, "long", b"large")], [])
    found, problems = changes_of({"op": "d", "before": after, "after": None})
    assert (found, problems) == ([(Op.DELETE, 1, 5, None, None, None)], [])


def test_a_value_that_debezium_did_not_send_and_nobody_has_is_an_error() -> None:
    after = {"id": 2, "n": 5, "text": UNAVAILABLE, "data": None}
    for event in (
        {"op": "u", "before": {"id": 1, "n": None, "text": None, "data": None}, "after": after},
        {"op": "c", "before": None, "after": after},
    ):
        found, problems = changes_of(event)
        assert found == []
        assert "column 'text': its value is large and was not changed" in problems[0]
    without_key = RelationSchema("t", LARGE.columns)
    for event in ({"op": "u", "before": after, "after": after}, {"op": "d", "before": after, "after": None}):
        found, problems = changes_of(event, schema=without_key)
        assert (found, "column 'text'" in problems[0]) == ([], True)


def test_values_that_were_not_sent_are_found_among_many_changes() -> None:
    many = [{"op": "c", "before": None, "after": {"id": n, "n": n, "text": f"t{n}", "data": None}} for n in range(500)]
    schema = RelationSchema("t", LARGE.columns[:3], ("id",))
    parser = JsonParser(schema, JsonOptions(update_format="debezium"))
    events = [*many, {"op": "u", "before": None, "after": {"id": 3, "n": 5, "text": UNAVAILABLE}}]
    parsed = parser.parse("\n".join(json.dumps(event) for event in events).encode())
    assert parsed.records == 501
    assert rows(parsed)[-1] == {"id": 3, "n": 5, "text": None, OP: Op.UPDATE, GIVEN: ["id", "n"]}


def test_an_array_is_taken_or_refused_as_a_whole() -> None:
    text = '[{"student_id": 1}, {"student_id": "x"}, {}]\n[{"student_id": 4}]\n{"student_id": 5}\n[]'
    parsed = parse(text, update_format="raw", array=True)
    assert [row["student_id"] for row in rows(parsed)] == [4]
    assert [error.index for error in parsed.errors] == [1, 2, 4]
    assert parsed.num_errors == 3
    for error in parsed.errors[:2]:
        assert "the whole array of 3 records is rejected" in error.message
    assert "is missing" in parsed.errors[1].message
    assert "not an array of records" in parsed.errors[2].message


def test_names_match_in_any_case_unless_quoted() -> None:
    schema = relation(col("id", "INTEGER"), col("Id", "INTEGER", quoted=True), col("V", "INTEGER", quoted=True))
    parsed = parse('{"ID": 1, "Id": 2, "v": 3}\n{"id": 4, "V": 5, "unknown": [{}]}', schema, update_format="raw")
    assert [(row["id"], row["Id"], row["V"]) for row in rows(parsed)] == [(1, 2, None), (4, None, 5)]


def test_defaults() -> None:
    schema = relation(
        col("a", "INTEGER", null=False, default="42"),
        col("b", "VARCHAR", default="'x'"),
        col("c", "DATE", default="DATE '2025-01-01'"),
        col("d", "INTEGER", default="-1"),
        col("e", "BOOLEAN", default="TRUE"),
        col("f", "INTEGER", default="NULL"),
    )
    parsed = parse('{}\n{"a": 1, "b": null, "d": 2}', schema, update_format="raw")
    first, second = rows(parsed)
    assert first == {"a": 42, "b": "x", "c": dt.date(2025, 1, 1), "d": -1, "e": True, "f": None, OP: 1}
    assert (second["a"], second["b"], second["d"]) == (1, None, 2)


def test_a_default_that_is_no_constant_is_an_error_only_where_it_is_needed() -> None:
    schema = relation(col("a", "INTEGER"), col("b", "VARCHAR", default="uuid()"))
    parsed = parse('{"a": 1}\n{"a": 2, "b": "x"}', schema, update_format="raw")
    assert [row["a"] for row in rows(parsed)] == [2]
    assert "its DEFAULT (uuid()) was not evaluated" in parsed.errors[0].message


class Counting:
    """DEFAULTs that are the number of the record, and the time; at the time 13 they cannot be evaluated."""

    columns = frozenset({"n", "at"})

    def __init__(self) -> None:
        self.rows = 0

    def row(self, now: int) -> dict[str, Any]:
        if now == 13:
            raise ValueError("overflow")
        self.rows += 1
        return {"n": self.rows, "at": None if now == 14 else now}


def test_defaults_that_differ_are_evaluated_for_each_record_that_needs_one() -> None:
    times = iter([11, 12, 13, 14])
    evaluated = Counting()
    columns = (col("a", "INTEGER"), col("n", "BIGINT", default="rand()"), col("at", "BIGINT", null=False, default="f(now())"))
    schema = RelationSchema("t", (*columns, col("ts", "TIMESTAMP", default="now()")), varying=evaluated)
    parser = JsonParser(schema, JsonOptions(update_format="raw"), lambda: next(times))

    def parsed(text: str) -> list[tuple[Any, ...]]:
        found = parser.parse(text.encode())
        return [*((row["a"], row["n"], row["at"]) for row in rows(found)), *(error.message for error in found.errors)]

    assert parsed('{"a": 1, "n": 7, "at": 8, "ts": null}') == [(1, 7, 8)]
    assert evaluated.rows == 0
    # The records of one batch have one time; each has values of its own.
    assert parsed('{"a": 1}\n{"a": 2}\n{"a": 3, "n": 5}\n{"a": 4, "n": 6, "at": 9}') == [
        (1, 1, 11),
        (2, 2, 11),
        (3, 5, 11),
        (4, 6, 9),
    ]
    assert parsed('{"a": 5}') == [(5, 4, 12)]
    (refused,) = parsed('{"a": 6}')
    assert "a DEFAULT cannot be evaluated: overflow" in str(refused)
    (refused,) = parsed('{"a": 7}')
    assert "column 'at' is missing and NOT NULL, and its DEFAULT is NULL" in str(refused)


def test_a_default_that_is_the_time_is_that_of_the_clock() -> None:
    schema = relation(
        col("a", "INTEGER"),
        col("ts", "TIMESTAMP", null=False, default="now()"),
        col("tz", "TIMESTAMP_TZ", default="current_timestamp"),
        col("d", "DATE", default="CURRENT_DATE"),
        col("t", "TIME", default="current_time()"),
        col("s", "VARCHAR", default="now()"),
    )
    moment = dt.datetime(2024, 2, 29, 12, 30, 0, 5)
    clock = int((moment - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1))
    parser = JsonParser(schema, JsonOptions(update_format="raw"), lambda: clock)
    parsed = parser.parse(b'{"a": 1, "s": "x"}\n{"a": 2}')
    assert rows(parsed) == [
        {
            "a": 1,
            "ts": moment,
            "tz": moment.replace(tzinfo=dt.UTC),
            "d": dt.date(2024, 2, 29),
            "t": moment.time(),
            "s": "x",
            OP: 1,
        }
    ]
    assert "its DEFAULT (now()) was not evaluated" in parsed.errors[0].message


def test_defaults_that_were_evaluated_are_taken_as_they_are() -> None:
    columns = (col("a", "INTEGER"), col("b", "ARRAY", component=ColumnType("VARCHAR"), default="array('x')"))
    schema = RelationSchema("t", (*columns, col("c", "BIGINT", null=False, default="f()")), defaults={"b": ["x"], "c": None})
    parsed = parse('{"a": 1, "c": 2}\n{"a": 2}', schema, update_format="raw")
    assert rows(parsed) == [{"a": 1, "b": ["x"], "c": 2, OP: 1}]
    assert "column 'c' is missing and NOT NULL" in parsed.errors[0].message


def test_a_delete_needs_no_more_than_the_key() -> None:
    schema = relation(col("id", "INTEGER", null=False), col("name", "VARCHAR", null=False))
    assert rows(parse('{"delete": {"id": 1}}', schema)) == [{"id": 1, "name": None, OP: -1}]


def test_pandas_flavor_takes_milliseconds() -> None:
    schema = relation(col("d", "DATE"), col("t", "TIME"), col("ts", "TIMESTAMP"), col("tz", "TIMESTAMP_TZ"))
    text = '{"d": 1757894400000, "t": 36000500, "ts": 1757894400123, "tz": -1}\n{"d": "2025-09-15", "t": 86400000}'
    parsed = parse(text, schema, update_format="raw", json_flavor="pandas")
    assert rows(parsed) == [
        {
            "d": dt.date(2025, 9, 15),
            "t": dt.time(10, 0, 0, 500_000),
            "ts": dt.datetime(2025, 9, 15, 0, 0, 0, 123_000),
            "tz": dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC),
            OP: 1,
        }
    ]
    assert "milliseconds are out of range" in parsed.errors[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-01-02 03:04:05", dt.datetime(2025, 1, 2, 3, 4, 5)),
        ("2025-01-02 03:04:05.5", dt.datetime(2025, 1, 2, 3, 4, 5, 500_000)),
        ("2025-01-02T03:04:05.123456789Z", dt.datetime(2025, 1, 2, 3, 4, 5, 123_456)),
        ("2025-01-02T03:04:05+02:30", dt.datetime(2025, 1, 2, 0, 34, 5)),
        ("2025-01-02 03:04:05 -0100", dt.datetime(2025, 1, 2, 4, 4, 5)),
        ("2025-01-02", dt.datetime(2025, 1, 2)),
        (" 2025-01-02 03:04:05  ", dt.datetime(2025, 1, 2, 3, 4, 5)),
    ],
)
def test_timestamps(text: str, expected: dt.datetime) -> None:
    schema = relation(col("ts", "TIMESTAMP"), col("tz", "TIMESTAMP_TZ"))
    (row,) = rows(parse(f'{{"ts": "{text}", "tz": "{text}"}}', schema, update_format="raw"))
    assert (row["ts"], row["tz"]) == (expected, expected.replace(tzinfo=dt.UTC))


@pytest.mark.parametrize(
    "text", ["2025-01-02 3:04:05", "2025-01-02 24:00:00", "2025-01-02 03:04:05+25:00", "0001-01-01 00:00:00+01:00", "x"]
)
def test_malformed_timestamps(text: str) -> None:
    parsed = parse(f'{{"ts": "{text}"}}', relation(col("ts", "TIMESTAMP")), update_format="raw")
    assert "is not a timestamp" in parsed.errors[0].message


def test_blanks_around_dates_and_times_do_not_count() -> None:
    parsed = parse('{"d": " 2025-01-02", "t": "\\t03:04:05.5 "}', relation(col("d", "DATE"), col("t", "TIME")), update_format="raw")
    assert rows(parsed) == [{"d": dt.date(2025, 1, 2), "t": dt.time(3, 4, 5, 500_000), OP: 1}]


def test_nested_values() -> None:
    text = '{"bin": [0, 255], "arr": [1, null], "m": {"5": "1.5"}, "st": {"X": "2025-01-01", "y": ["a"]}, "v": {"b": [1]}}'
    (row,) = rows(parse(text, NESTED, update_format="raw"))
    assert row["bin"] == b"\x00\xff"
    assert row["arr"] == [1, None]
    assert row["m"] == [(5, Decimal("1.50"))]
    assert row["st"] == {"x": dt.date(2025, 1, 1), "y": ["a"]}


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("bin", "[256]", "array of byte numbers"),
        ("bin", '"00"', "array of byte numbers"),
        ("arr", '[1, "x"]', "is not an integer"),
        ("m", '{"x": 1}', "'x' is not a number"),
        ("m", '{"1": 1, "01": 2}', "has a key twice"),
        ("st", '{"x": "x"}', "is not a date"),
        ("st", "5", "is not a struct"),
        ("v", "1e400", "out of range for VARIANT"),
    ],
)
def test_malformed_nested_values(column: str, value: str, reason: str) -> None:
    parsed = parse(f'{{"{column}": {value}}}', NESTED, update_format="raw")
    assert parsed.records == 0
    assert reason in parsed.errors[0].message


def test_the_greatest_real_is_taken_as_it_is_written() -> None:
    real = relation(col("r", "REAL"))
    greatest = 3.4028234663852886e38
    for text in ("3.4028235e38", "-3.4028235e+38", "3.4028235677973362e38"):
        (row,) = rows(parse(f'{{"r": {text}}}', real, update_format="raw"))
        assert abs(row["r"]) == greatest
    for text in ("3.4028235677973366e38", "-3.4028235677973366e38", "1e400"):
        parsed = parse(f'{{"r": {text}}}', real, update_format="raw")
        assert parsed.num_errors == 1
        assert "is out of range for REAL" in parsed.errors[0].message


def test_lengths_and_bytes_that_are_filled_up() -> None:
    schema = relation(col("c", "CHAR", precision=3), col("v", "VARCHAR", precision=3), col("b", "BINARY", precision=2))
    parsed = parse('{"c": "a", "v": "éab", "b": [1]}\n{"v": "abcd"}\n{"c": "abcd"}\n{"b": [1,2,3]}', schema, update_format="raw")
    assert rows(parsed) == [{"c": "a", "v": "éab", "b": b"\x01\x00", OP: 1}]
    assert [error.index for error in parsed.errors] == [1, 2, 3]


def test_only_known_complete_records_of_a_prefix_are_taken() -> None:
    whole = b'{"insert": {"student_id": 1}}\n{\n"insert":\n{"student_id": 2,\n"class": "a}{"}\n}\n'
    parser = JsonParser(GRADES)
    for end in range(len(whole) + 1):
        parsed = parser.parse_prefix(whole[:end], 0)
        rest = parser.parse(whole[parsed.consumed :], parsed.next_index)
        assert parsed.num_errors == rest.num_errors == 0
        assert [row["student_id"] for row in rows(parsed) + rows(rest)] == [1, 2]


def test_byte_order_mark_and_nothing() -> None:
    assert rows(parse(b'\xef\xbb\xbf{"insert": {"student_id": 1}}'))[0]["student_id"] == 1
    assert parse(b"").changes is None
    assert parse(b" \r\n").num_errors == 0


def test_all_scalars_have_the_schemas_types() -> None:
    parsed = parse('{"insert": {"i64": 1}}', SCALARS)
    assert parsed.changes is not None
    given = parsed.changes.rows.schema
    assert [given.field(field.name).type for field in SCALARS.arrow] == [field.type for field in SCALARS.arrow]


INTERVALS = relation(
    col("d", "INTERVAL_DAY_TO_SECOND", default="interval '-1 02:00:00.5' day to second"),
    col("h", "INTERVAL_HOUR", default="interval 3 hours"),
    col("y", "INTERVAL_YEAR_TO_MONTH", default="-interval '1-3' year to month"),
    col("m", ColumnType("MAP", key=ColumnType("INTERVAL_MONTH", False), value=ColumnType("INTERVAL_DAY"))),
)


def test_intervals_are_iso_text() -> None:
    data = b"""{"d": "P1DT2H30M0.5S", "h": "PT26H", "y": "P1Y3M", "m": {"P1Y": "P2D", "-P1M": "-P1W"}} {"d": "-PT0.000001S"}
        {"d": "PT-1H30M", "h": "PT0S", "y": "-P2Y", "m": null}"""
    parsed = JsonParser(INTERVALS, JsonOptions(update_format="raw")).parse(data)
    assert parsed.errors == ()
    assert parsed.changes is not None
    rows = parsed.changes.rows.drop_columns([OP]).to_pylist()
    day, hour, timedelta = dt.timedelta(days=1), dt.timedelta(hours=1), dt.timedelta
    full = {"d": day + 2.5 * hour + timedelta(seconds=0.5), "h": 26 * hour, "y": 15, "m": [(12, 2 * day), (-1, -7 * day)]}
    assert rows[0] == full
    assert rows[1] == {"d": timedelta(microseconds=-1), "h": 3 * hour, "y": -15, "m": None}
    assert rows[2] == {"d": -0.5 * hour, "h": timedelta(0), "y": -24, "m": None}
    missing = JsonParser(INTERVALS, JsonOptions(update_format="raw")).parse(b"{}")
    assert missing.changes is not None
    assert missing.changes.rows["d"].to_pylist() == [-(day + 2 * hour + timedelta(seconds=0.5))]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"d": "1 day"}', "ISO 8601 form, such as 'P1DT2H30M'"),
        ('{"d": 5}', "ISO 8601"),
        ('{"d": "P1M"}', "ISO 8601"),
        ('{"y": "P1D"}', "such as 'P1Y3M'"),
        ('{"h": "PT90M"}', "not a whole number of HOURS (INTERVAL HOUR)"),
        ('{"y": "P178956971Y"}', "out of range for INTERVAL YEAR TO MONTH"),
        ('{"d": "P106751992D"}', "out of range"),
    ],
)
def test_bad_intervals(row: str, says: str) -> None:
    [error] = JsonParser(INTERVALS, JsonOptions(update_format="raw")).parse(row.encode()).errors
    assert says in error.message


NESTED_ROWS = relation(
    col("id", "INTEGER"),
    col("s", ColumnType("STRUCT", fields=(("a", ColumnType("INTEGER")), ("b", ColumnType("VARCHAR"))))),
    col("l", ColumnType("ARRAY", component=ColumnType("STRUCT", fields=(("x", ColumnType("INTEGER")),)))),
)


def test_rows_and_structs_by_position() -> None:
    row = {"id": 1, "s": {"a": 2, "b": "x"}, "l": [{"x": 3}, {"x": None}]}
    for text, options in (
        ('[1, [2, "x"], [[3], {"x": null}]]', {"update_format": "raw"}),
        ('[[1, {"A": 2, "b": "x"}, [[3], [null]]]]', {"update_format": "raw", "array": True}),
        ('{"insert": [1, [2, "x"], [[3], [null]]]}', {}),
        ('[{"insert": [1, [2, "x"], [[3], [null]]]}]', {"array": True}),
    ):
        parsed = parse(text, NESTED_ROWS, **options)
        assert parsed.changes is not None, parsed.errors
        assert parsed.changes.rows.drop_columns([OP]).to_pylist() == [row]
    for text, says in (("[1, [2]]", "2 values, but the table has 3 columns"), ("[1, [2], []]", "is not a struct")):
        [error] = parse(text, NESTED_ROWS, update_format="raw").errors
        assert says in error.message


def test_nan_and_infinities_are_written_as_texts() -> None:
    schema = relation(col("f", "DOUBLE"), col("r", "REAL"), col("i", "INTEGER"))
    parsed = parse('{"f": "NaN", "r": "-Infinity"} {"f": "Infinity", "r": "NaN"}', schema, update_format="raw")
    assert [(str(row["f"]), str(row["r"])) for row in rows(parsed)] == [("nan", "-inf"), ("inf", "nan")]
    parsed = parse('{"i": "NaN"}\n{"f": NaN}\n{"f": "nano"}\n{"f": 1e400}', schema, update_format="raw")
    assert (parsed.records, parsed.num_errors) == (0, 4)
