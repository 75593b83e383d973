"""States leave pages, and all else in them stays."""

import pickle
import sys
from types import ModuleType

import pytest

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.descriptors import ValueStateDescriptor
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.timers import EVENT_TIME, PROCESSING_TIME, Timers
from airflow_pipelines.streams.worker.dropping import without_states


def _page(entries, ttl=None):
    """The page of some keys: values by names, and timers."""
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
    [page] = store.pages().values()
    return page


def _kept(page):
    """Values by key of a page."""
    store = KeyedStore(1)
    store.load((0, 0, 0), page)
    return {entry.key: (dict(entry.values), {timer[:2] for timer in entry.timers}) for entry in store.entries()}


def test_other_states_and_timers_stay():
    page = _page(
        {
            "both": ({"a": 1, "b": 2}, [(EVENT_TIME, 5)]),
            "only a": ({"a": 3}, []),
            "a and a timer": ({"a": 4}, [(PROCESSING_TIME, 9)]),
            ("tuple",): ({"b": [5]}, []),
        }
    )
    left = without_states(page, {"a"})
    assert _kept(left) == {
        "both": ({"b": 2}, {(EVENT_TIME, 5)}),
        "a and a timer": ({}, {(PROCESSING_TIME, 9)}),
        ("tuple",): ({"b": [5]}, set()),
    }
    assert left.due == page.due == (5, 9)


def test_a_page_without_them_stays_the_same_page():
    page = _page({"a": ({"b": 1}, [])})
    assert without_states(page, {"a", "c"}) is page


def test_nothing_is_left_of_a_page_that_had_nothing_else():
    assert without_states(_page({"x": ({"a": 1}, []), "y": ({"a": 2}, [])}), {"a"}) is None


def test_values_that_expire_still_do():
    page = _page({"x": ({"a": 1, "b": 2}, [])}, ttl=10)
    store = KeyedStore(1)
    store.load((0, 0, 0), without_states(page, {"a"}))
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
    page = _page({"x": ({"a": gone_class(1), "b": 2}, [])})
    del sys.modules["gone_module"]
    with pytest.raises(ModuleNotFoundError):
        _kept(page)
    assert _kept(without_states(page, {"a"})) == {"x": ({"b": 2}, set())}


def test_values_of_a_class_that_is_gone_and_that_stay_are_named(gone_class):
    page = _page({"x": ({"a": 1, "b": gone_class(1)}, [])})
    del sys.modules["gone_module"]
    with pytest.raises(StreamProgramError, match=r"gone_module\.Gone is not there any more"):
        without_states(page, {"a"})


def test_pages_are_read_as_the_store_writes_them():
    assert pickle.loads(pickle.dumps(_page({"x": ({"a": 1}, [])}))) == _page({"x": ({"a": 1}, [])})
