"""Bytes as they are, in tables of one column."""

from __future__ import annotations

import pytest

from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.raw import RawOptions, RawParser
from tests.connectors.relations import GRADES, col, relation, rows

LINES = RawOptions(mode="lines")
TEXT, DATA = relation(col("t", "VARCHAR")), relation(col("d", "VARBINARY"))


def test_a_blob_is_one_row() -> None:
    parsed = RawParser(TEXT).parse(b"a\nb\n")
    assert [row["t"] for row in rows(parsed)] == ["a\nb\n"]
    assert (parsed.consumed, parsed.next_index) == (4, 1)
    assert [row["d"] for row in rows(RawParser(DATA).parse(b"\xff\0"))] == [b"\xff\0"]
    # Its end is not known before everything has come.
    assert RawParser(TEXT).parse_prefix(b"a\nb\n", 0).consumed == 0
    assert RawParser(TEXT).parse(b"").changes is None


def test_each_line_is_a_row() -> None:
    parser = RawParser(TEXT, LINES)
    parsed = parser.parse_prefix(b"a\r\n\nb", 5)
    assert [row["t"] for row in rows(parsed)] == ["a", ""]
    assert (parsed.consumed, parsed.next_index) == (4, 7)
    assert [row["t"] for row in rows(parser.parse(b"b\nc", 7))] == ["b", "c"]


def test_what_does_not_fit_is_counted() -> None:
    parsed = RawParser(relation(col("t", "VARCHAR", precision=2)), LINES).parse(b"ab\nabc\n\xff\n")
    assert [row["t"] for row in rows(parsed)] == ["ab"]
    assert [error.index for error in parsed.errors] == [1, 2]
    assert "longer than VARCHAR(2)" in parsed.errors[0].message
    assert "not valid UTF-8" in parsed.errors[1].message
    assert rows(RawParser(relation(col("d", "BINARY", precision=3))).parse(b"a"))[0]["d"] == b"a\0\0"
    assert RawParser(relation(col("d", "VARBINARY", precision=1))).parse(b"ab").num_errors == 1


@pytest.mark.parametrize("schema", [GRADES, relation(col("n", "INTEGER"))])
def test_other_tables_are_refused(schema: object) -> None:
    with pytest.raises(RecordProblem, match="a table with one column, of type VARCHAR or VARBINARY"):
        RawParser(schema)  # type: ignore[arg-type]
