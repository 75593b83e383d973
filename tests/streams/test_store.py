"""Pages of state, timers in them, and time to live."""

import threading

import pytest

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.keys import key_group
from airflow_pipelines.streams.state import pages_at_rest
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from airflow_pipelines.streams.state.entries import EVENT_TIME, PROCESSING_TIME
from airflow_pipelines.streams.state.page_storage import SpilledPages
from airflow_pipelines.streams.state.pages_at_rest import PageChanges
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.timers import Timers


def put(store, key, value):
    entry = store.hot[key]
    entry.values["v"] = value
    entry.note_change()
    return entry


def restored(max_parallelism, stored, **settings):
    store = KeyedStore(max_parallelism, **settings)
    for page_id, page in stored.items():
        store.load(page_id, page)
    return store


def test_pages_split_when_they_outgrow_their_size_and_all_keys_are_found_again(monkeypatch):
    monkeypatch.setattr(pages_at_rest, "PAGE_BYTES", 500)
    store = KeyedStore(4)
    for number in range(200):
        put(store, number, f"value {number}")
    stored = store.pages()
    assert len(stored) > 16
    assert all(len(page.data) <= 500 for page in stored.values())
    for number in range(200):
        assert store.hot[number].values["v"] == f"value {number}"
    again = restored(4, stored)
    assert [again.hot[number].values["v"] for number in range(200)] == [f"value {number}" for number in range(200)]
    put(again, 7, "new")
    assert len(again.changes().written) == 1


def test_the_size_is_about_that_of_what_would_be_kept():
    def kept():
        return sum(len(page.data) for page in store.pages().values())

    store = KeyedStore(128, SpilledPages(20_000), hot_keys=300)
    assert store.estimated_bytes() == 0
    for number in range(1_000):
        put(store, number, "x" * 100)
    unwritten = store.estimated_bytes()
    assert unwritten == pytest.approx(kept(), rel=0.25)
    assert store.estimated_bytes() == kept()
    store.evict()
    assert store.estimated_bytes() == kept()
    for number in range(500):
        put(store, number, "x" * 200)
    assert store.estimated_bytes() == pytest.approx(unwritten + 50_000, rel=0.25)
    put(store, 1, threading.Lock())
    assert store.estimated_bytes() > unwritten
    for number in range(1_000):
        entry = put(store, number, None)
        entry.values.clear()
    assert kept() == store.estimated_bytes() == 0
    store.close()


def test_only_pages_that_changed_are_written_and_empty_ones_are_given_up():
    store = KeyedStore(128)
    entries = [put(store, number, number) for number in range(50)]
    first = store.changes()
    assert (len(first.written), first.gone) == (len({key_group(entry.data, 128) for entry in entries}), set())
    assert store.changes() == PageChanges()
    put(store, 7, 8)
    [page_id] = store.changes().written
    others = [number for number, entry in enumerate(entries) if key_group(entry.data, 128) == page_id[0]]
    for number in others:
        store.hot[number].values.clear()
        store.hot[number].note_change()
    assert store.changes() == PageChanges({}, {page_id})
    assert store.hot[7].values == {}


def test_what_is_evicted_comes_back_with_its_timers():
    store = KeyedStore(8, hot_keys=5)
    timers = Timers(store)
    for number in range(20):
        store.entry = put(store, number, number)
        timers.register(EVENT_TIME, number * 10)
        timers.register(PROCESSING_TIME, number)
    store.evict()
    assert timers.next_due(PROCESSING_TIME) == 0
    assert [timestamp for timestamp, _, _ in timers.due(EVENT_TIME, 45)] == [0, 10, 20, 30, 40]
    assert timers.next_due(EVENT_TIME) == 50
    assert store.hot[13].values == {"v": 13}


def test_only_pages_with_something_due_are_read():
    store = KeyedStore(128)
    timers = Timers(store)
    for number in range(100):
        store.entry = put(store, number, number)
        timers.register(EVENT_TIME, number)
    again_store = restored(128, store.pages())
    again = Timers(again_store)
    assert [(timestamp, entry.key) for timestamp, entry, _ in again.due(EVENT_TIME, 2)] == [(0, 0), (1, 1), (2, 2)]
    assert len(again_store._entries) <= 3


def test_timers_of_one_time_fire_in_the_order_of_their_keys_whenever_they_were_registered():
    orders = []
    for keys in (["b", "a", "c"], ["c", "b", "a"]):
        store = KeyedStore(8)
        timers = Timers(store)
        for key in keys:
            store.entry = store.hot[key]
            timers.register(EVENT_TIME, 5, ("late",))
            timers.register(EVENT_TIME, 5, ("early",))
            timers.register(EVENT_TIME, 5, ("early",))
        orders.append([(entry.key, namespace) for _, entry, namespace in timers.due(EVENT_TIME, 5)])
    assert orders[0] == orders[1] == [(key, (name,)) for key in "abc" for name in ("early", "late")]


def test_timers_that_are_deleted_leave_nothing_behind():
    store = KeyedStore(8)
    timers = Timers(store)
    store.entry = store.hot["a"]
    for timestamp in range(10_000):
        timers.register(PROCESSING_TIME, 10**9 + timestamp)
        timers.delete(PROCESSING_TIME, 10**9 + timestamp - 1)
    assert timers.next_due(PROCESSING_TIME) == 10**9 + 9_999
    assert len(timers._heaps[PROCESSING_TIME]) < 2_000
    timers.register(PROCESSING_TIME, 5)
    timers.delete(PROCESSING_TIME, 5)
    timers.register(PROCESSING_TIME, 5)
    assert [timestamp for timestamp, _, _ in timers.due(PROCESSING_TIME, 10**10)] == [5, 10**9 + 9_999]


def test_a_value_that_cannot_be_kept_is_named_by_the_path_to_it():
    store = KeyedStore(8)
    put(store, "a", {"fine": 1, "helpers": [len, threading.Lock()]})
    with pytest.raises(StreamProgramError, match=r"The state 'v' of the key 'a'\['helpers'\]\[1\] \(of type lock\) cannot be kept"):
        store.pages()


@pytest.fixture
def states():
    class States:
        def __init__(self):
            self.clock = StepClock(1000)
            self.store = KeyedStore(8)
            self.all = KeyedStates(self.store, self.clock, "operator")

        def key(self, key):
            self.store.entry = self.store.hot[key]

    return States()


def described(descriptor, **settings):
    descriptor.enable_time_to_live(TimeToLive(100, **settings))
    return descriptor


def test_a_value_expires_after_its_time_and_writing_prolongs_it(states):
    value = states.all.get_state(described(ValueStateDescriptor("v")))
    states.key("a")
    value.update(1)
    states.clock.now += 99
    assert value.value() == 1
    states.clock.now += 1
    assert value.value() is None
    value.update(2)
    states.clock.now += 60
    value.update(3)
    states.clock.now += 60
    assert value.value() == 3


def test_reading_prolongs_a_value_only_when_it_is_asked_for(states):
    value = states.all.get_state(described(ValueStateDescriptor("v"), refreshed_on_read=True))
    states.key("a")
    value.update(1)
    for _ in range(5):
        states.clock.now += 60
        assert value.value() == 1
    states.clock.now += 100
    assert value.value() is None


def test_an_expired_value_is_visible_once_when_it_is_asked_for(states):
    value = states.all.get_state(described(ValueStateDescriptor("v"), expired_is_visible=True))
    states.key("a")
    value.update(1)
    states.clock.now += 200
    assert value.value() == 1
    assert value.value() is None


def test_elements_of_a_list_and_entries_of_a_map_expire_one_by_one(states):
    numbers = states.all.get_list_state(described(ListStateDescriptor("l")))
    mapped = states.all.get_map_state(described(MapStateDescriptor("m")))
    states.key("a")
    numbers.add(1)
    mapped.put("x", 1)
    states.clock.now += 60
    numbers.add(2)
    mapped.put("y", 2)
    states.clock.now += 60
    assert numbers.get() == [2]
    assert list(mapped.items()) == [("y", 2)]
    assert (mapped.get("x"), mapped.contains("x"), mapped.contains("y")) == (None, False, True)
    numbers.update([3, 4])
    states.clock.now += 60
    assert (numbers.get(), mapped.is_empty()) == ([3, 4], True)


def test_what_has_expired_is_left_out_when_its_page_is_written(states):
    value = states.all.get_state(described(ValueStateDescriptor("v")))
    for key in range(10):
        states.key(key)
        value.update("x" * 100)
    states.clock.now += 200
    for key in range(10):
        states.store.hot[key].note_change()
    assert states.store.pages() == {}
