"""State by key, hot and at rest, its timers, and time to live."""

import copy
import datetime
import decimal
import random
import threading

import pytest

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from airflow_pipelines.streams.errors import NoKeyError, StreamProgramError
from airflow_pipelines.streams.keys import canonical_bytes
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.database import DatabaseRows, StateDatabase
from airflow_pipelines.streams.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from airflow_pipelines.streams.state.entries import EVENT_TIME, PROCESSING_TIME
from airflow_pipelines.streams.state.hot_limit import HotLimit
from airflow_pipelines.streams.state.rows import MemoryRows
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.timers import Timers


def put(store, key, value):
    entry = store.hot[key]
    entry.values["v"] = value
    entry.note_change()
    return entry


def restored(max_parallelism, stored, **settings):
    return KeyedStore(max_parallelism, MemoryRows(stored), **settings)


@pytest.fixture
def on_disk(tmp_path):
    """Makes the rows at rest of a store in a database."""
    database = StateDatabase(tmp_path / "rows")
    yield lambda groups: DatabaseRows(database, 1, range(groups))
    database.close()


def test_the_size_is_about_that_of_what_would_be_kept():
    def kept():
        return sum(len(key[1]) + len(row) for key, row in store.rows().items())

    store = KeyedStore(128, limit=HotLimit(300))
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


def test_what_is_at_rest_is_what_was_written_whatever_is_hot(on_disk):
    chosen = random.Random(5)
    store, expected = KeyedStore(4, on_disk(4), limit=HotLimit(10)), {}
    for _ in range(60):
        for _ in range(chosen.randrange(30)):
            key = chosen.randrange(150)
            if chosen.random() < 0.3:
                store.drop(store.hot[key])
                expected.pop(key, None)
            else:
                expected[key] = "x" * chosen.randrange(40)
                put(store, key, expected[key])
        store.evict()
        if chosen.random() < 0.5:
            store.flush()
    assert {entry.key: entry.values["v"] for entry in restored(4, store.rows()).entries()} == expected
    assert store.has_keys()
    for key in list(expected):
        store.drop(store.hot[key])
    store.flush()
    assert not store.has_keys()


def test_what_is_evicted_comes_back_with_its_timers():
    store = KeyedStore(8, limit=HotLimit(5))
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


def test_only_keys_with_something_due_are_read():
    store = KeyedStore(128)
    timers = Timers(store)
    for number in range(100):
        store.entry = put(store, number, number)
        timers.register(EVENT_TIME, number)
    again_store = restored(128, store.rows())
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
    with pytest.raises(
        StreamProgramError,
        match=r"The state 'v' of the key 'a' cannot be kept: its value at \['helpers'\]\[1\] is of type lock \(cannot",
    ):
        store.rows()


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


def test_what_has_expired_is_left_out_when_its_row_is_written(states):
    value = states.all.get_state(described(ValueStateDescriptor("v")))
    for key in range(10):
        states.key(key)
        value.update("x" * 100)
    states.clock.now += 200
    for key in range(10):
        states.store.hot[key].note_change()
    assert states.store.rows() == {}


def touched(store, *keys):
    for key in keys:
        put(store, key, key)


def test_keys_go_to_rest_one_by_one_and_those_that_are_touched_stay(monkeypatch):
    store = KeyedStore(8, limit=HotLimit(100))
    sizes = []
    for number in range(1_000):
        touched(store, number, "always", number // 2 * 2)
        store.evict()
        sizes.append(len(store._entries))
    assert max(sizes) == 100
    assert "always" in store.hot
    kept = [number for number in range(1_000) if canonical_bytes(number) in store._entries]
    assert min(kept) > 700
    assert all(store.find(number).values == {"v": number} for number in range(1_000))


class Counted:
    """Counts how many were made of bytes."""

    decoded = 0

    def __init__(self, number):
        self.number = number

    def __setstate__(self, state):
        Counted.decoded += 1
        self.__dict__.update(state)


def test_a_key_at_rest_is_touched_without_decoding_others_and_they_are_written_as_they_were():
    Counted.decoded = 0
    store = KeyedStore(1)
    for number in range(50):
        put(store, number, Counted(number))
    again = restored(1, store.rows())
    again.hot[7].values["v"] = "changed"
    again.hot[7].note_change()
    rows = again.rows()
    assert Counted.decoded == 1
    values = {entry.key: entry.values["v"] for entry in restored(1, rows).entries()}
    assert values.pop(7) == "changed"
    assert {key: value.number for key, value in values.items()} == {number: number for number in range(50) if number != 7}


def test_keys_that_are_equal_share_one_entry_hot_and_at_rest():
    store = KeyedStore(8, limit=HotLimit(0))
    for equal in ((1, 1.0, True, decimal.Decimal(1)), ((1, "a"), (1.0, "a")), ("a",)):
        put(store, equal[0], "kept")
        for key in equal:
            assert store.find(key).values == {"v": "kept"}
            assert store.hot[key].values == {"v": "kept"}
            store.evict()
            assert not store._entries
            assert store.hot[key].values == {"v": "kept"}
    assert type(store.find(True).key) is int


@pytest.mark.parametrize("key", [["a", 1], {"a": [1]}, bytearray(b"a"), float("nan"), (float("nan"), 1)])
def test_keys_without_a_hash_and_keys_that_are_not_equal_to_themselves_are_kept(key):
    store = KeyedStore(8, limit=HotLimit(2))
    for turn in range(3):
        found = store.find(copy.deepcopy(key))
        assert found.values == ({} if turn == 0 else {"v": turn - 1})
        found.values["v"] = turn
        found.note_change()
        touched(store, "x", "y", "z")
        store.evict()
    if key == key:
        store.drop(store.find(key))
        assert store.find(key).values == {}
    else:
        same = [store.hot[copy.deepcopy(key)] for _ in range(10)]
        assert len({id(entry) for entry in same}) == 1
        assert len(store.hot) <= len(store._entries)


def test_keys_come_back_as_what_they_were():
    keys = ["text", "\ud800", "", 0, -5, 2**70, True, 1.5, b"bytes", (1, "a"), datetime.date(2020, 1, 2), frozenset([1, 2])]
    store = KeyedStore(8)
    for key in keys:
        put(store, key, 1)
    found = [entry.key for entry in restored(8, store.rows()).entries()]
    assert sorted(map(repr, found)) == sorted(map(repr, keys))


def test_walking_over_all_keys_takes_the_same_order_whatever_is_hot(on_disk):
    orders = []
    for hot_keys, rows in ((1_000, None), (0, None), (3, on_disk(4)), (50, None)):
        store = KeyedStore(4, rows, HotLimit(hot_keys))
        for number in range(200):
            put(store, number, number)
            if number % 37 == 0:
                store.evict()
            if number == 100:
                store.flush()
        store.evict()
        put(store, 0, "again")
        walked = []
        for entry in store.entries():
            walked.append(entry.key)
            entry.values["v"] = "walked"
            entry.note_change()
        assert sorted(walked) == list(range(200))
        assert all(store.find(number).values == {"v": "walked"} for number in range(200))
        orders.append(walked)
    assert orders[0] == orders[1] == orders[2] == orders[3]


def test_a_walk_over_all_keys_keeps_few_of_them_hot():
    store = KeyedStore(128, limit=HotLimit(100))
    for number in range(3_000):
        put(store, number, number)
        store.evict()
    most = 0
    for entry in store.entries():
        entry.values["v"] += 1
        entry.note_change()
        most = max(most, len(store._entries))
    assert most < 400
    assert sum(entry.values["v"] for entry in store.entries()) == sum(range(1, 3_001))


@pytest.mark.parametrize("is_on_disk", [True, False])
def test_timers_at_rest_are_found_without_touching_others(on_disk, is_on_disk):
    store = KeyedStore(1, on_disk(1) if is_on_disk else None, limit=HotLimit(0))
    timers = Timers(store)
    for number in range(50):
        store.entry = put(store, number, number)
        timers.register(EVENT_TIME, 1_000 + number)
        timers.register(EVENT_TIME, 5_000)
        timers.register(PROCESSING_TIME, 10)
        store.evict()
        if number == 30:
            store.flush()
    assert store._entries == {}
    assert timers.next_due(EVENT_TIME) == 1_000
    fired = []
    for timestamp, entry, _ in timers.due(EVENT_TIME, 1_001):
        fired.append((timestamp, entry.key))
        timers.register(EVENT_TIME, 1_040)
    assert fired == [(1_000, 0), (1_001, 1)]
    assert len(store._entries) == 2
    store.evict()
    store.flush()
    assert timers.next_due(EVENT_TIME) == 1_002
    fired = [(timestamp, entry.key) for timestamp, entry, _ in timers.due(EVENT_TIME, 4_999)]
    expected = [*((1_000 + number, number) for number in range(2, 50)), (1_040, 0), (1_040, 1)]
    assert sorted(fired) == sorted(expected)
    assert [timestamp for timestamp, _ in fired] == sorted(timestamp for timestamp, _ in fired)
    assert len(list(timers.due(EVENT_TIME, 5_000))) == 50
    assert timers.next_due(EVENT_TIME) is None
    assert len(list(timers.due(PROCESSING_TIME, 10))) == 50


def test_a_timer_that_was_deleted_while_its_key_was_hot_does_not_fire_from_its_row():
    store = KeyedStore(1, limit=HotLimit(0))
    timers = Timers(store)
    for key in ("a", "b"):
        store.entry = put(store, key, key)
        timers.register(EVENT_TIME, 10)
    store.flush()
    store.evict()
    store.entry = store.hot["a"]
    timers.delete(EVENT_TIME, 10)
    timers.register(EVENT_TIME, 20)
    assert [entry.key for _, entry, _ in timers.due(EVENT_TIME, 10)] == ["b"]
    store.evict()
    assert [(timestamp, entry.key) for timestamp, entry, _ in timers.due(EVENT_TIME, 100)] == [(20, "a")]


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP, MAX_TIMESTAMP - 1, MIN_TIMESTAMP, 2**70])
def test_timers_at_the_ends_of_time_are_kept_at_rest(timestamp):
    store = KeyedStore(1, limit=HotLimit(0))
    timers = Timers(store)
    store.entry = store.hot["a"]
    timers.register(EVENT_TIME, timestamp)
    store.evict()
    again = Timers(restored(1, store.rows()))
    assert [fired for fired, _, _ in again.due(EVENT_TIME, MIN_TIMESTAMP)] == ([timestamp] if timestamp == MIN_TIMESTAMP else [])
    at_the_end = [fired for fired, _, _ in again.due(EVENT_TIME, MAX_TIMESTAMP)]
    assert at_the_end == ([timestamp] if MIN_TIMESTAMP < timestamp <= MAX_TIMESTAMP else [])


def test_timers_of_keys_that_went_to_rest_leave_nothing_in_memory():
    store = KeyedStore(8, limit=HotLimit(100))
    timers = Timers(store)
    for number in range(5_000):
        store.entry = store.hot[number]
        timers.register(EVENT_TIME, 10**6)
        store.evict()
    assert sum(map(len, timers._at[EVENT_TIME].values())) <= 210
    assert len(list(timers.due(EVENT_TIME, 10**6))) == 5_000


def test_expired_values_at_rest_go_without_being_asked_for(states):
    value = states.all.get_state(described(ValueStateDescriptor("v")))
    listed = states.all.get_list_state(described(ListStateDescriptor("l")))
    store = states.store
    for number in range(400):
        states.key(number)
        value.update("x" * 100)
        listed.add(number)
        if number % 2:
            states.clock.now += 1
    before = store.rows()
    store._limit = HotLimit(0)
    store.evict()
    states.clock.now += 98
    for _ in range(3):
        store.evict()
    assert sum(map(len, store.rows().values())) < sum(map(len, before.values())) / 5
    alive = {number for number in range(400) if store.find(number).values}
    assert alive == {398, 399}
    states.clock.now += 1000
    states.key(1000)
    value.update("last")
    assert states.all.get_state(described(ValueStateDescriptor("v"))).value() == "last"


def test_what_cannot_be_kept_loses_nothing_else():
    store = KeyedStore(8, limit=HotLimit(5))
    touched(store, *range(20))
    store.evict()
    put(store, "a", threading.Lock())
    touched(store, *range(3))
    for _ in range(2):
        with pytest.raises(StreamProgramError, match="The state 'v' of the key 'a'"):
            store.flush()
    put(store, "a", "fine")
    again = restored(8, store.rows())
    assert {entry.key: entry.values["v"] for entry in again.entries()} == {**{number: number for number in range(20)}, "a": "fine"}


def test_the_shares_of_states_are_known_from_a_sample():
    store = KeyedStore(4, limit=HotLimit(10))
    small, large = (KeyedStates(store, StepClock(0), "op").get_state(ValueStateDescriptor(name)) for name in ("small", "large"))
    for number in range(2_000):
        store.entry = store.hot[number]
        small.update(number)
        large.update("x" * 300)
    store.evict()
    sizes = store.sampled_bytes
    assert set(sizes) == {"small", "large"}
    assert 0.05 < sizes["small"] / (sizes["small"] + sizes["large"]) < 0.15
    assert sum(sizes.values()) < 50_000, "few entries are looked at"


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_keys_that_are_loaded_at_once_are_those_that_are_found_one_by_one(is_on_disk, on_disk):
    store = KeyedStore(8, on_disk(8) if is_on_disk else None, HotLimit(3))
    keys = [*range(40), "a", "b", (1, "a"), 2.5]
    for key in keys:
        store.find(key).values["number"] = key
        store.find(key).note_change()
    store.flush()
    for _ in range(3):
        store.evict()
    assert len(store._entries) == 3
    asked = [*keys[5:20], *keys, "new", None, [1], object(), 7.0, True]
    store.load(asked)
    assert {entry.key for entry in store._entries.values()} == {*keys, "new"}
    assert all(store.hot[key] is store.find(key) and store.hot[key].values == {"number": key} for key in keys)
    assert store.hot["new"].is_empty()
    with pytest.raises(NoKeyError):
        store.hot[None]
