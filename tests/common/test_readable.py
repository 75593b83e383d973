"""Sizes and times with their units, at the borders between those."""

import pytest

from airflow_pipelines.common.readable import readable_duration, readable_size


@pytest.mark.parametrize(
    ("size", "expected"), [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1 << 20, "1.0 MiB"), (5 << 50, "5120.0 TiB")]
)
def test_sizes_for_people(size: int, expected: str) -> None:
    assert readable_size(size) == expected


def test_a_time_has_the_largest_unit_of_which_there_are_two() -> None:
    assert [readable_duration(seconds) for seconds in (-1, 0.26, 119, 120, 7_200, 1e6)] == [
        "0.0 s", "0.3 s", "119.0 s", "2.0 min", "2.0 h", "11.6 days",
    ]  # fmt: skip
