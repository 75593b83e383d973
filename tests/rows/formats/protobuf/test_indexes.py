"""The way to a type, as it stands between the number of a schema and the record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.protobuf import indexes


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=32), st.binary(max_size=3), st.binary(max_size=3))
def test_what_is_written_is_read(way: list[int], before: bytes, after: bytes) -> None:
    written = indexes.encode_indexes(way)
    assert indexes.read(before + written + after, len(before)) == (tuple(way), len(before) + len(written))


def test_the_first_type_is_a_single_zero() -> None:
    assert indexes.encode_indexes([0]) == b"\0"
    assert indexes.encode_indexes([1, 0]) == b"\4\2\0"
    # Others may write it like any other.
    assert indexes.read(b"\2\0", 0) == ((0,), 2)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        way, end = indexes.read(data, 0)
    except RecordProblem:
        return
    assert way
    assert 0 < end <= len(data)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x01", b"\x42" + b"\0" * 40, b"\x04\x02", b"\xff" * 12])
def test_what_is_no_way(data: bytes) -> None:
    with pytest.raises(RecordProblem, match="does not say which type"):
        indexes.read(data, 0)
