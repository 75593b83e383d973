"""Records of several partitions in the order of their timestamps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.connectors.transports.kafka.in_time_order import MOST_WAITING, InTimeOrder


@dataclass(frozen=True)
class Record:
    number: int
    time: int

    def partition(self) -> int:
        return self.number

    def timestamp(self) -> tuple[int, int]:
        return 1, self.time


def test_a_silent_partition_holds_the_others_back_until_it_ends() -> None:
    order = InTimeOrder([0, 1])
    order.add(Record(0, 1))
    assert order.take(10) == []
    order.add(Record(1, 2))
    assert order.take(10) == [Record(0, 1)]
    order.note_end(0)
    assert order.take(10) == [Record(1, 2)]
    assert order.is_empty
    order.add(Record(0, 3))
    assert order.take(10) == []
    order.note_end(1)
    assert order.take(10) == [Record(0, 3)]


def test_a_new_partition_is_waited_for() -> None:
    order = InTimeOrder([0])
    order.add(Record(0, 1))
    order.add_partition(1)
    assert order.take(10) == []
    order.note_end(1)
    assert order.take(10) == [Record(0, 1)]


def test_a_partition_far_ahead_is_full() -> None:
    order = InTimeOrder([0, 1])
    for time in range(MOST_WAITING):
        order.add(Record(0, time))
    assert order.full == {0}
    order.note_end(1)
    order.take(1)
    assert not order.full


@pytest.mark.rest
@given(st.lists(st.lists(st.integers(0, 100)), min_size=1, max_size=5), st.integers(1, 7), st.data())
def test_all_come_once_and_in_order(times: list[list[int]], most: int, data: Any) -> None:
    queues = [[Record(number, time) for time in sorted(each)] for number, each in enumerate(times)]
    order = InTimeOrder(range(len(queues)))
    taken: list[Any] = []
    left = [list(queue) for queue in queues]
    ended: set[int] = set()
    while len(ended) < len(left):
        number = data.draw(st.sampled_from([each for each in range(len(left)) if each not in ended]))
        if left[number]:
            order.add(left[number].pop(0))
        else:
            ended.add(number)
            order.note_end(number)
        taken += order.take(most)
    while more := order.take(most):
        taken += more
    assert [record.time for record in taken] == sorted(record.time for record in taken)
    for number, queue in enumerate(queues):
        assert [record for record in taken if record.number == number] == queue
