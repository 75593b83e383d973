"""States leave rows, and all else in them stays."""

import sys
from types import ModuleType

import pytest

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.descriptors import ValueStateDescriptor
from airflow_pipelines.streams.state.rows import MemoryRows, times_of
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.timers import EVENT_TIME, PROCESSING_TIME, Timers
from airflow_pipelines.streams.worker.dropping import without_states


def _rows(entries, ttl=None):
    """The rows of some keys: values by names, and timers."""
    store = KeyedStore(1)
    states, timers = KeyedStates(store, StepClock(0), "test"), Timers(store)
    for key, (values, due) in entries.items():
        store.entry = store.find(key)
        for name, value in values.items():
            descriptor = ValueStateDescriptor(name)
            if ttl is not None:
                descriptor.enable_time_to_live(TimeToLive(ttl))
            states.get_state(descriptor).update(value)
        for domain, timestamp in due:
            timers.register(domain, timestamp)
    return store.rows()


def _without(rows, names):
    """The rows that are left."""
    left = {key: without_states(row, names) for key, row in rows.items()}
    return {key: row for key, row in left.items() if row is not None}


def _kept(rows):
    """Values and timers by key of some rows."""
    entries = KeyedStore(1, MemoryRows(rows)).entries()
    return {entry.key: (dict(entry.values), {timer[:2] for timer in entry.timers}) for entry in entries}


def test_other_states_and_timers_stay():
    rows = _rows(
        {
            "both": ({"a": 1, "b": 2}, [(EVENT_TIME, 5)]),
            "only a": ({"a": 3}, []),
            "a and a timer": ({"a": 4}, [(PROCESSING_TIME, 9)]),
            ("tuple",): ({"b": [5]}, []),
        }
    )
    left = _without(rows, {"a"})
    assert _kept(left) == {
        "both": ({"b": 2}, {(EVENT_TIME, 5)}),
        "a and a timer": ({}, {(PROCESSING_TIME, 9)}),
        ("tuple",): ({"b": [5]}, set()),
    }
    assert {key: times_of(row) for key, row in left.items()} == {key: times_of(rows[key]) for key in left}


def test_a_row_without_them_stays_the_same_row():
    [row] = _rows({"a": ({"b": 1}, [])}).values()
    assert without_states(row, {"a", "c"}) is row


def test_nothing_is_left_of_a_row_that_had_nothing_else():
    assert not _without(_rows({"x": ({"a": 1}, []), "y": ({"a": 2}, [])}), {"a"})


def test_values_that_expire_still_do():
    store = KeyedStore(1, MemoryRows(_without(_rows({"x": ({"a": 1, "b": 2}, [])}, ttl=10), {"a"})))
    descriptor = ValueStateDescriptor("b")
    descriptor.enable_time_to_live(TimeToLive(10))
    clock = StepClock(5)
    state = KeyedStates(store, clock, "test").get_state(descriptor)
    store.entry = store.find("x")
    assert state.value() == 2
    clock.now = 11
    assert state.value() is None


@pytest.fixture
def gone_class():
    """A class that is there while a page is written, and not when it is read."""
    module = ModuleType("gone_module")
    sys.modules["gone_module"] = module
    exec("class Gone:\n    def __init__(self, n):\n        self.n = n\n", vars(module))
    yield module.Gone
    sys.modules.pop("gone_module", None)


def test_values_of_a_class_that_is_gone_can_be_dropped(gone_class):
    rows = _rows({"x": ({"a": gone_class(1), "b": 2}, [])})
    del sys.modules["gone_module"]
    with pytest.raises(ModuleNotFoundError):
        _kept(rows)
    assert _kept(_without(rows, {"a"})) == {"x": ({"b": 2}, set())}


def test_values_of_a_class_that_is_gone_and_that_stay_are_named(gone_class):
    rows = _rows({"x": ({"a": 1, "b": gone_class(1)}, [])})
    del sys.modules["gone_module"]
    with pytest.raises(StreamProgramError, match=r"gone_module\.Gone is not there any more"):
        _without(rows, {"a"})
