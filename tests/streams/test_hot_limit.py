"""The keys of a store in memory are as many as their number and their size allow."""

from __future__ import annotations

import tracemalloc
from collections import deque
from typing import Any

import pytest

from airflow_pipelines.streams.keys import canonical_bytes
from airflow_pipelines.streams.state.entries import EVENT_TIME
from airflow_pipelines.streams.state.hot_limit import HotLimit
from airflow_pipelines.streams.state.store import KeyedStore


class Point:
    def __init__(self, number: int) -> None:
        self.x = number
        self.y = float(number)


def texts(number: int, count: int) -> list[str]:
    return [f"a text of its own, {number} {each}" for each in range(count)]


VALUES = {
    "number": lambda number: number + 1_000,
    "text": lambda number: f"{number}" * 200,
    "list": lambda number: texts(number, 300),
    "tuples": lambda number: [(f"{number}", each + 1_000) for each in range(100)],
    "dictionary": lambda number: {text: float(number) for text in texts(number, 30)},
    "objects": lambda number: deque(Point(number + each) for each in range(20)),
    "nested": lambda number: {"a": {"b": [{"c": texts(number, 20)}]}},
}


def fill(store: KeyedStore, keys: range, value: Any) -> None:
    for key in keys:
        entry = store.hot[key]
        entry.values["state"] = value(key)
        entry.note_change()


@pytest.mark.parametrize("name", VALUES)
def test_memory_stays_near_its_limit_whatever_is_kept(name: str) -> None:
    limit = 2_000_000
    store = KeyedStore(4, limit=HotLimit(bytes_=limit))
    tracemalloc.start()
    try:
        first, _ = tracemalloc.get_traced_memory()
        keys = 0
        while tracemalloc.get_traced_memory()[0] - first < 3 * limit:
            fill(store, range(keys, keys + 50), VALUES[name])
            keys += 50
        for _ in range(20):
            store.evict()
        at_rest = sum(len(key) + len(row) + 200 for (_, key), row in store.rows().items())
        hot = tracemalloc.get_traced_memory()[0] - first - at_rest
    finally:
        tracemalloc.stop()
    assert len(store._entries) < keys
    assert limit / 4 < hot < 2 * limit


def test_both_limits_hold() -> None:
    store = KeyedStore(4)
    fill(store, range(1_000), VALUES["number"])
    entries = store._entries.values()
    assert HotLimit().compute(entries) > 100_000
    assert HotLimit(7).compute(entries) == 7
    assert HotLimit(7, 0).compute(entries) == 0
    assert 100 < HotLimit(1_000_000, 100_000).compute(entries) < 200


def test_keys_that_grow_are_measured_again() -> None:
    store = KeyedStore(4, limit=HotLimit(bytes_=1_000_000))
    fill(store, range(500), VALUES["number"])
    store.evict()
    assert len(store._entries) == 500
    fill(store, range(500), VALUES["list"])
    for _ in range(40):
        store.evict()
    assert len(store._entries) < 60
    assert len(store.rows()) == 500


def test_timers_count() -> None:
    store = KeyedStore(4)
    store.find(1).timers = {(EVENT_TIME, number + 1_000, None) for number in range(1_000)}
    assert HotLimit(bytes_=1_000_000).compute(store._entries.values()) < 20


def test_no_keys_are_a_limit_too() -> None:
    assert HotLimit(5).compute([]) == 5
    assert canonical_bytes(1) not in KeyedStore(4, limit=HotLimit(0))._entries
