from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.number_sequence import NumberSequenceSource


@given(st.integers(-50, 50), st.integers(0, 40), st.integers(1, 7), st.integers(1, 9), st.integers(0, 30))
def test_all_numbers_are_read_once_and_in_order(start: int, length: int, parallelism: int, limit: int, cut: int) -> None:
    source = NumberSequenceSource(start, start + length)
    splits = source.splits(parallelism)
    assert len(splits) == min(parallelism, length + 1)
    read: list[int] = []
    for split in splits:
        reader, finished, polls = source.open(split, None), False, 0
        while not finished:
            if polls == cut:  # as after a restart
                reader = source.open(split, reader.position())
            polled = reader.poll(limit)
            assert len(polled.values) <= limit
            read += polled.values
            finished, polls = polled.finished, polls + 1
    assert read == list(range(start, start + length + 1))


def test_is_bounded_and_of_longs() -> None:
    source = NumberSequenceSource(1, 1)
    assert source.is_bounded
    assert source.get_produced_type() == Types.LONG()
    with pytest.raises(ValueError, match="end must not be less than start: 1 is less than 2"):
        NumberSequenceSource(2, 1)
    with pytest.raises(ValueError, match="at most 9223372036854775807"):
        NumberSequenceSource(0, 2**63)
