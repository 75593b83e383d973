"""Records of Kafka, as all readers see them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_pipelines.systems.kafka.records import headers_of, next_offsets, timestamp_of


def _record(**fields: Any) -> Any:
    return SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()})


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        (None, ()),
        ([], ()),
        ([("a", b"1"), ("a", None), ("b", "\u00e9")], (("a", b"1"), ("a", None), ("b", "\u00e9".encode()))),
        ({"a": b"1", "b": "x"}, (("a", b"1"), ("b", b"x"))),
    ],
)
def test_headers_are_names_with_bytes(given: Any, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    assert headers_of(_record(headers=given)) == headers


def test_a_record_may_have_no_timestamp() -> None:
    assert timestamp_of(_record(timestamp=(0, -1))) is None
    assert timestamp_of(_record(timestamp=(1, 0))) == 0


def test_the_next_offset_is_that_behind_the_last_record_of_each_partition() -> None:
    records = [_record(partition=partition, offset=offset) for partition, offset in [(0, 4), (1, 0), (0, 7)]]
    assert next_offsets(records) == {0: 8, 1: 1}
