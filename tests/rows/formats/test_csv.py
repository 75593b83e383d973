"""The CSV format."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats import csv
from airflow_pipelines.rows.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.rows.formats.parsed import Parsed
from tests.connectors.relations import GRADES, NESTED, NoColumns, col, relation, rows


def parse(text: str | bytes, schema: Any = GRADES, *, by_row: bool = False, **options: Any) -> Parsed:
    parser = CsvParser(schema, CsvOptions(**options))
    if by_row:
        parser._vectorised = NoColumns()  # type: ignore[assignment]
    return parser.parse(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_rows_in_column_order(by_row: bool, end: str, last: bool) -> None:
    text = end.join(["1,algebra,97,2025-09-15", "", '2,"a ""b"", c",,', "3,, 5.5 ,null,extra"]) + (end if last else "")
    parsed = parse(text, by_row=by_row)
    assert rows(parsed) == [
        {"student_id": 1, "class": "algebra", "grade": Decimal("97.00"), "class_date": dt.date(2025, 9, 15), OP: 1},
        {"student_id": 2, "class": 'a "b", c', "grade": None, "class_date": None, OP: 1},
        {"student_id": 3, "class": "", "grade": Decimal("5.50"), "class_date": None, OP: 1},
    ]
    assert (parsed.num_errors, parsed.next_index) == (0, 4)


def test_null_in_strings_is_a_word() -> None:
    assert [row["s"] for row in rows(parse("null,1\nNULL,1\n,1\n", relation(col("s", "VARCHAR"), col("i", "INTEGER"))))] == [
        "null",
        "NULL",
        "",
    ]


def test_a_bad_line_has_its_number_and_costs_nobody_else() -> None:
    parsed = parse(
        '1,a,1,\nx,a,1,\n3,"two\nlines",1,\n4,a\n5,"a"b,1,\n,a,1,\n7,a,1000,\n8,a,1,2025-13-01\n9,"never closed,1,\n10,a,1,'
    )
    assert [row["student_id"] for row in rows(parsed)] == [1, 3, 10]
    assert [error.index for error in parsed.errors] == [2, 5, 6, 7, 8, 9, 10]
    messages = [error.message for error in parsed.errors]
    assert messages[0] == "line 2: column 'student_id': 'x' is not a number in x,a,1,"
    assert "2 fields, but column 'grade' is number 3" in messages[1]
    assert "'b' follows a closing quote" in messages[2]
    assert "'student_id' is NOT NULL" in messages[3]
    assert "out of range" in messages[4]
    assert "is not a date" in messages[5]
    assert "a quote is opened and never closed" in messages[6]


@pytest.mark.parametrize("by_row", [False, True])
def test_a_header_names_the_columns(by_row: bool) -> None:
    (row,) = rows(parse('Grade,x,"CLASS",Student_Id,class_date\n5,?,algebra,7,\n', by_row=by_row, headers=True))
    assert (row["student_id"], row["class"], row["grade"]) == (7, "algebra", Decimal("5.00"))
    parsed = parse("grade,class,student_id,class_date\n5,algebra\n5,a,1,\n", by_row=by_row, headers=True)
    assert [row["student_id"] for row in rows(parsed)] == [1]
    assert (parsed.errors[0].index, "2 fields, but column 'student_id' is number 3" in parsed.errors[0].message) == (2, True)


@pytest.mark.parametrize("by_row", [False, True])
def test_a_column_that_the_header_does_not_name_never_has_the_values_of_another(by_row: bool) -> None:
    schema = relation(col("a", "INTEGER"), col("b", "INTEGER"), col("d", "INTEGER"))
    many = "b,a,c\n" + "1,2,3\n" * 5_000
    parsed = parse(many, schema, by_row=by_row, headers=True)
    assert (parsed.records, rows(parsed)[0]) == (5_000, {"a": 2, "b": 1, "d": None, OP: 1})
    with_default = relation(*schema.columns[:2], col("d", "INTEGER", default="7"))
    assert rows(parse("b,a,c\n1,2,3\n", with_default, by_row=by_row, headers=True)) == [{"a": 2, "b": 1, "d": 7, OP: 1}]
    needed = relation(*schema.columns[:2], col("d", "INTEGER", null=False))
    parsed = parse("b,a,c\n1,2,3\n", needed, by_row=by_row, headers=True)
    assert (parsed.records, "column 'd' is missing and NOT NULL" in parsed.errors[0].message) == (0, True)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("x,y,z,w", "the header (line 1) names no column of the table, which has student_id, class, grade, class_date"),
        ("student_id,class,grade,Class", "the header (line 1) names column 'class' more than once"),
        ('"student_id"x,class', "the header (line 1) names no column"),
    ],
)
def test_rows_below_a_header_that_does_not_tell_the_columns_are_refused(header: str, problem: str) -> None:
    whole = f"{header}\n1,x,1,\n2,y,2,\n".encode()
    parser = CsvParser(GRADES, CsvOptions(headers=True))
    first = parser.parse_prefix(whole[: whole.rindex(b"2")], 0)
    again = CsvParser(GRADES, CsvOptions(headers=True))
    again.restore(parser.state())
    rest = again.parse(whole[first.consumed :], first.next_index)
    assert [first.records, rest.records, first.num_errors, rest.num_errors] == [0, 0, 1, 1]
    assert problem in first.errors[0].message
    assert problem in rest.errors[0].message


def test_a_header_may_have_lines() -> None:
    whole = b'"other\nthing",class,student_id\n?,x,1\n'
    parser = CsvParser(GRADES, CsvOptions(headers=True))
    first = parser.parse_prefix(whole[:10], 0)
    rest = parser.parse(whole[first.consumed :], first.next_index)
    assert [(row["student_id"], row["class"]) for row in rows(first) + rows(rest)] == [(1, "x")]


def test_other_delimiter_and_quote() -> None:
    (row,) = rows(parse("1;'a;''b';2;\n", delimiter=";", quote="'"))
    assert row["class"] == "a;'b"
    with pytest.raises(ValidationError):
        CsvOptions(delimiter="ab")


def test_a_prefix_keeps_unfinished_records() -> None:
    whole = b'student_id,class,grade,class_date\r\n1,"a\r\nb",1,\r\n2,"c ""\n,",1,\r\n'
    for end in range(len(whole) + 1):
        parser = CsvParser(GRADES, CsvOptions(headers=True))
        first = parser.parse_prefix(whole[:end], 0)
        again = CsvParser(GRADES, CsvOptions(headers=True))
        again.restore(parser.state())
        rest = again.parse(whole[first.consumed :], first.next_index)
        assert first.num_errors == rest.num_errors == 0
        assert [row["class"] for row in rows(first) + rows(rest)] == ["a\r\nb", 'c "\n,']
        assert rest.next_index == 5


def test_a_quote_that_is_not_closed_holds_up_a_prefix_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "_LONGEST_RECORD", 40)
    text = b'1,a,1,\n2,"b,1,\n' + b"".join(b"%d,c,1,\n" % number for number in (3, 4, 5, 6, 7))
    parser = CsvParser(GRADES)
    waits = parser.parse_prefix(text[:40], 0)
    assert ([row["student_id"] for row in rows(waits)], waits.num_errors, waits.consumed) == ([1], 0, 7)
    mistake = parser.parse_prefix(text[7:], waits.next_index)
    assert [row["student_id"] for row in rows(mistake)] == [3, 4, 5, 6, 7]
    assert [(error.index, "never closed" in error.message) for error in mistake.errors] == [(2, True)]


def test_nested_values_are_json() -> None:
    text = '"[1,2]","[1]","{""1"": 2}","{""x"": null}","{""a"": 1}"\n,null,,,\n{,,,,\n'
    parsed = parse(text, NESTED)
    first, second = rows(parsed)
    assert (first["bin"], first["arr"], first["m"], first["st"]) == (
        b"\x01\x02",
        [1],
        [(1, Decimal("2.00"))],
        {"x": None, "y": None},
    )
    assert second == dict.fromkeys(("bin", "arr", "m", "st", "v")) | {OP: 1}
    assert "is not JSON" in parsed.errors[0].message


def test_byte_order_mark_and_encoding() -> None:
    parsed = parse(b"\xef\xbb\xbf1,\xc3\xa9,1,\n2,\xff,1,\n")
    assert [row["class"] for row in rows(parsed)] == ["é"]
    assert parsed.errors[0].index == 2


def test_an_empty_quoted_field_alone_on_a_line_is_a_row() -> None:
    schema = relation(col("s", "VARCHAR"))
    assert [row["s"] for row in rows(parse('""\n\na\n', schema))] == ["", "a"]
