"""State by key of every kind, and what is refused where there is no key."""

import pytest

from airflow_pipelines.datastream.common import Row, Time
from airflow_pipelines.datastream.state_ttl_config import StateTtlConfig
from airflow_pipelines.streams.errors import NoKeyError, StreamProgramError
from airflow_pipelines.streams.functions import AggregateFunction, FlatMapFunction, MapFunction, ReduceFunction
from airflow_pipelines.streams.process_functions import KeyedProcessFunction, ProcessFunction
from airflow_pipelines.streams.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from tests.datastream.programs import collected, environment, first


class _Average(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class _EveryKind(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("reducing", max))
        self.aggregating = runtime_context.get_aggregating_state(AggregatingStateDescriptor("aggregating", _Average()))

    def process_element(self, value, ctx):
        number = value[1]
        before = (self.value.value(), self.list.get(), self.map.is_empty(), self.reducing.get(), self.aggregating.get())
        self.value.update(number)
        self.list.add(number)
        self.map.put(number, -number)
        self.reducing.add(number)
        self.aggregating.add(number)
        yield before, (list(self.map.items()), self.reducing.get(), self.aggregating.get())


def test_every_kind_of_state_belongs_to_its_key():
    found = collected(environment().from_collection([("a", 3), ("b", 5), ("a", 1)]).key_by(first).process(_EveryKind()))
    assert found == [
        ((None, [], True, None, None), ([(3, -3)], 3, 3.0)),
        ((None, [], True, None, None), ([(5, -5)], 5, 5.0)),
        ((3, [3], False, 3, 3.0), ([(3, -3), (1, -1)], 3, 2.0)),
    ]


def test_states_can_be_cleared_and_a_value_of_none_clears():
    class Clearing(KeyedProcessFunction):
        def open(self, runtime_context):
            self.value = runtime_context.get_state(ValueStateDescriptor("v"))
            self.list = runtime_context.get_list_state(ListStateDescriptor("l"))
            self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("r", lambda a, b: a + b))

        def process_element(self, value, ctx):
            self.value.update(1)
            self.value.update(None)
            self.list.add_all([1, 2])
            self.list.update([])
            self.reducing.add(1)
            self.reducing.clear()
            yield self.value.value(), self.list.get(), self.reducing.get()

    assert collected(environment().from_collection([1]).key_by(lambda _: 0).process(Clearing())) == [(None, [], None)]


def test_a_map_state_behaves_like_a_dictionary_and_may_change_while_it_is_walked_over():
    class Maps(KeyedProcessFunction):
        def open(self, runtime_context):
            self.map = runtime_context.get_map_state(MapStateDescriptor("m"))

        def process_element(self, value, ctx):
            self.map.put_all({"a": 1, "b": 2})
            self.map["c"] = 3
            for key, number in self.map.items():
                if number == 2:
                    del self.map[key]
                self.map.put(key + "!", number)
            for key in self.map:
                if key.endswith("!"):
                    self.map.remove(key)
            self.map.remove("unknown")
            yield (
                sorted(self.map.keys()),
                sorted(self.map.values()),
                len(self.map),
                "a" in self.map,
                self.map.get("zz"),
                self.map["c"],
            )

    found = collected(environment().from_collection([1]).key_by(lambda _: 0).process(Maps()))
    assert found == [(["a", "c"], [1, 3], 2, True, None, 3)]


def test_a_value_that_is_changed_in_place_stays_changed_and_what_was_given_before_does_not_change():
    class Appending(KeyedProcessFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

        def process_element(self, value, ctx):
            seen = self.seen.value()
            if seen is None:
                seen = []
                self.seen.update(seen)
            seen.append(value)
            yield seen

    assert collected(environment().from_collection([1, 2]).key_by(lambda _: 0).process(Appending())) == [[1], [1, 2]]


def test_map_filter_and_flat_map_of_a_keyed_stream_keep_state_of_the_key():
    class Counting(MapFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def map(self, value):
            self.count.update((self.count.value() or 0) + 1)
            return value, self.count.value()

    class Repeating(FlatMapFunction):
        def open(self, runtime_context):
            self.last = runtime_context.get_state(ValueStateDescriptor("last"))

        def flat_map(self, value):
            if self.last.value() == value:
                yield value
            self.last.update(value)

    stream = environment().from_collection(["a", "b", "a", "a"]).key_by(lambda x: x)
    assert collected(stream.map(Counting())) == [("a", 1), ("b", 1), ("a", 2), ("a", 3)]
    assert collected(stream.flat_map(Repeating())) == ["a", "a"]
    assert collected(stream.filter(lambda x: x != "a")) == ["b"]


def test_one_object_serves_all_keys_of_a_task_and_keeps_its_attributes():
    class Previous(KeyedProcessFunction):
        def __init__(self):
            self.previous = None

        def process_element(self, value, ctx):
            yield self.previous
            self.previous = value

    assert collected(environment().from_collection([1, 2, 3]).key_by(lambda x: x).process(Previous())) == [None, 1, 2]


@pytest.mark.parametrize(
    "keys", [[1, 1.0, True], [(1, "a"), (1.0, "a")], [["x"], ["x"]], [Row("a", 1), Row("a", 1)], [{"k": 1}, {"k": 1.0}]]
)
def test_keys_that_are_equal_are_one_key_whatever_their_types(keys):
    stream = environment(4).from_collection(list(enumerate(keys))).key_by(lambda v: v[1]).map(lambda v: 1)
    counted = environment(4).from_collection(keys).key_by(lambda v: v).reduce(lambda a, b: ("two", b))
    assert len(collected(stream)) == len(keys)
    assert len([each for each in collected(counted) if isinstance(each, tuple) and each[0] == "two"]) == len(keys) - 1


def test_state_timers_and_keys_that_are_missing_are_refused_with_what_to_do():
    class Stateful(ProcessFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("v"))

        def process_element(self, value, ctx):
            yield value

    class Timed(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

    class Early(KeyedProcessFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("v")).value()

        def process_element(self, value, ctx):
            yield value

    class Twice(KeyedProcessFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("v"))
            runtime_context.get_list_state(ListStateDescriptor("v"))

        def process_element(self, value, ctx):
            yield value

    stream = environment().from_collection([1])
    with pytest.raises(NoKeyError, match=r"'Process' asks for the state 'v'.*Put key_by"):
        collected(stream.process(Stateful()))
    with pytest.raises(NoKeyError, match=r"asks for a timer.*Put key_by"):
        collected(stream.process(Timed()))
    with pytest.raises(NoKeyError, match="no current key here"):
        collected(stream.key_by(lambda x: x).process(Early()))
    with pytest.raises(StreamProgramError, match="two states named 'v'"):
        collected(stream.key_by(lambda x: x).process(Twice()))
    with pytest.raises(NoKeyError, match=r"key of a record is None") as refused:
        collected(stream.key_by(lambda x: None).process(Early.__base__ and _Pass()))
    assert "element: 1" in refused.value.__notes__[0]
    with pytest.raises(StreamProgramError, match="equal only to itself"):
        collected(stream.key_by(lambda x: object()).process(_Pass()))


class _Pass(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def test_reduce_and_the_like_give_each_update():
    stream = environment().from_collection([("a", 2, "x"), ("a", 1, "y"), ("a", 5, "z"), ("b", 1, "w")]).key_by(first)

    class Joined(ReduceFunction):
        def reduce(self, value1, value2):
            return value1[0], value1[1] + value2[1], value1[2] + value2[2]

    assert collected(stream.reduce(Joined())) == [("a", 2, "x"), ("a", 3, "xy"), ("a", 8, "xyz"), ("b", 1, "w")]
    assert collected(stream.sum(1)) == [("a", 2, "x"), ("a", 3, "x"), ("a", 8, "x"), ("b", 1, "w")]
    assert collected(stream.min(1)) == [("a", 2, "x"), ("a", 1, "x"), ("a", 1, "x"), ("b", 1, "w")]
    assert collected(stream.max(1)) == [("a", 2, "x"), ("a", 2, "x"), ("a", 5, "x"), ("b", 1, "w")]
    assert collected(stream.min_by(1)) == [("a", 2, "x"), ("a", 1, "y"), ("a", 1, "y"), ("b", 1, "w")]
    assert collected(stream.max_by(1)) == [("a", 2, "x"), ("a", 2, "x"), ("a", 5, "z"), ("b", 1, "w")]
    numbers = environment().from_collection([("a", 2), ("a", 1), ("a", 5)]).key_by(first)
    assert collected(numbers.sum(-1)) == [("a", 2), ("a", 3), ("a", 8)]
    assert collected(numbers.max(-1)) == [("a", 2), ("a", 2), ("a", 5)]
    rows = environment().from_collection([Row(k="a", n=2), Row(k="a", n=3)]).key_by(lambda r: r.k).sum("n")
    assert collected(rows) == [Row(k="a", n=2), Row(k="a", n=5)]
    assert collected(environment().from_collection([1, 2, 3]).key_by(lambda _: 0).sum()) == [1, 3, 6]
    with pytest.raises(StreamProgramError, match="no field 7"):
        collected(stream.sum(7))


def test_a_keyed_stream_is_collected_as_rows_of_key_and_element_and_refuses_partitioning():
    stream = environment().from_collection([("a", 1)]).key_by(first)
    assert collected(stream) == [Row(f0="a", f1=("a", 1))]
    for method in ("rebalance", "rescale", "shuffle", "forward", "broadcast"):
        with pytest.raises(StreamProgramError, match="not possible on a stream with keys"):
            getattr(stream, method)()
    with pytest.raises(StreamProgramError, match="before key_by"):
        stream.uid("x")


def test_a_state_of_a_time_to_live_given_by_a_configuration_expires():
    descriptor = ValueStateDescriptor("v")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(5)).update_ttl_on_read_and_write().build())
    assert descriptor.ttl is not None
    assert (descriptor.ttl.milliseconds, descriptor.ttl.refreshed_on_read, descriptor.ttl.expired_is_visible) == (5000, True, False)
