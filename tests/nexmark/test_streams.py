"""The tables that benchmarks write beside the events."""

from __future__ import annotations

from benchmarks.nexmark.streams import side_input


def test_the_side_input_has_a_row_for_every_key() -> None:
    assert side_input(3).to_pylist() == [{"key": 0, "value": "0"}, {"key": 1, "value": "1"}, {"key": 2, "value": "2"}]
