"""Groups that come part by part, up to the limits of one process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from airflow_pipelines.engine.execution.ways import TooMuch, accepted
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.operators.gathered_groups import GatheredGroups


class Gathering:
    """Gathers distinct numbers, and notes how many tables were merged each time."""

    def __init__(self, rows: int, limits: Limits) -> None:
        self.merges: list[int] = []
        self.groups = GatheredGroups(self._distinct, rows, limits)

    def _distinct(self, tables: Sequence[pa.Table]) -> pa.Table:
        self.merges.append(len(tables))
        return pa.concat_tables(tables).group_by("x", use_threads=False).aggregate([])

    def add(self, *numbers: int) -> bool:
        """Return True if there is room."""
        try:
            self.groups.add(pa.table({"x": pa.array(numbers, pa.int64())}), len(numbers))
        except TooMuch:
            return False
        return True

    def numbers(self) -> list[int] | None:
        groups = accepted(self.groups.result)
        return None if groups is None else groups["x"].to_pylist()


def test_parts_are_merged_once_when_there_is_room() -> None:
    given = Gathering(6, Limits())
    assert given.add(1, 2, 2)
    assert given.add(2, 3, 1)
    assert given.numbers() == [1, 2, 3]
    assert given.merges == [2]
    assert given.numbers() == [1, 2, 3]
    assert given.merges == [2], "once is enough"


class Part:
    """A table that counts how often it is asked for its size."""

    asked = 0

    @property
    def nbytes(self) -> int:
        Part.asked += 1
        return 1


def test_the_size_of_a_part_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Part, "asked", 0)
    groups = GatheredGroups(lambda tables: pa.table({"x": [1]}), 1000, Limits())
    for _ in range(1000):
        groups.add(Part(), 1)  # type: ignore[arg-type]
    assert Part.asked == 1000


def test_nothing_was_added() -> None:
    assert Gathering(0, Limits()).numbers() is None


@pytest.mark.parametrize(("limits", "merges"), [(Limits(driver_bytes=49), [1]), (Limits(driver_bytes=48), [1, 1])])
def test_parts_are_merged_when_they_have_half_of_the_bytes(limits: Limits, merges: list[int]) -> None:
    given = Gathering(6, limits)
    given.add(1, 1, 1)
    assert given.merges == merges[1:]
    assert given.numbers() == [1]
    assert given.merges == [1]


@pytest.mark.parametrize(("limits", "numbers"), [(Limits(driver_rows=3), [1, 2, 3]), (Limits(driver_rows=2), None)])
def test_more_groups_than_the_limit_are_too_many(limits: Limits, numbers: list[int] | None) -> None:
    given = Gathering(3, limits)
    assert given.add(1, 2, 3)
    assert given.numbers() == numbers


@pytest.mark.parametrize(("limits", "numbers"), [(Limits(driver_bytes=24), [1, 2, 3]), (Limits(driver_bytes=23), None)])
def test_more_bytes_than_the_limit_are_too_many(limits: Limits, numbers: list[int] | None) -> None:
    given = Gathering(3, limits)
    assert given.add(1, 2, 3) is (numbers is not None)
    assert numbers is None or given.numbers() == numbers


@pytest.mark.parametrize(("rows", "has_room"), [(100, True), (101, False)])
def test_growth_tells_that_there_will_be_too_many(rows: int, has_room: bool) -> None:
    given = Gathering(rows, Limits(driver_rows=100, driver_bytes=800))
    # Fifty groups of fifty rows, so that there will be as many as rows.
    assert given.add(*range(50)) is has_room
    assert given.merges == [1]


def test_growth_that_ends_is_not_too_many() -> None:
    given = Gathering(10**6, Limits(driver_rows=100, driver_bytes=1600))
    # A tenth of the groups that there may be, no matter how fast they have come.
    assert given.add(*[*range(10)] * 10)
    assert given.add(*[7] * 100)
    assert given.merges == [1, 2]
    # Two more in a hundred rows, which would be too many of a million.
    assert not given.add(*[7] * 98, 10, 11)
