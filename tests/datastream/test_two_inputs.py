"""Connected, broadcast and partitioned streams, and side outputs."""

import pytest

from airflow_pipelines.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamProgramError,
    Types,
)
from airflow_pipelines.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from airflow_pipelines.streams.errors import NoKeyError
from tests.datastream.programs import collected, environment, first, timed


class _Both(CoMapFunction):
    def __init__(self):
        self.seen = 0

    def map1(self, value):
        self.seen += 1
        return ("first", value, self.seen) if value else None

    def map2(self, value):
        self.seen += 1
        return "second", value, self.seen


def test_one_object_looks_at_both_streams_and_none_gives_nothing():
    env = environment()
    found = collected(env.from_collection([1, 0]).connect(env.from_collection([2])).map(_Both()))
    assert sorted(each[:2] for each in found) == [("first", 1), ("second", 2)]
    assert {each[2] for each in found} <= {1, 2, 3}


def test_flat_map_and_process_of_connected_streams():
    class Flat(CoFlatMapFunction):
        def flat_map1(self, value):
            yield from range(value)

        def flat_map2(self, value):
            return [value]

    class Times(CoProcessFunction):
        def process_element1(self, value, ctx):
            yield 1, ctx.timestamp()

        def process_element2(self, value, ctx):
            yield 2, ctx.timestamp()

    env = environment()
    assert sorted(collected(env.from_collection([2]).connect(env.from_collection([7])).flat_map(Flat()))) == [0, 1, 7]
    one, two = timed(env.from_collection([("a", 5)])), timed(env.from_collection([("b", 6)]))
    assert sorted(collected(one.connect(two).process(Times()))) == [(1, 5), (2, 6)]


class _Join(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.name = runtime_context.get_state(ValueStateDescriptor("name"))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))

    def process_element1(self, value, ctx):
        if self.name.value() is None:
            self.waiting.add(value[1])
            ctx.timer_service().register_event_time_timer(100)
        else:
            yield self.name.value(), value[1]

    def process_element2(self, value, ctx):
        self.name.update(value[1])
        for each in self.waiting.get():
            yield value[1], each
        self.waiting.clear()

    def on_timer(self, timestamp, ctx):
        for each in self.waiting.get():
            yield "nobody", each, ctx.get_current_key()


def _other(value):
    return value[1]


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize(
    "with_keys",
    [
        lambda orders, users: orders.connect(users),
        lambda orders, users: orders.key_by(_other).connect(users),
        lambda orders, users: orders.connect(users.key_by(_other)),
        lambda orders, users: orders.key_by(_other).connect(users.key_by(_other)),
    ],
    ids=["neither", "the first", "the second", "both"],
)
def test_streams_with_the_same_keys_share_state_and_timers(parallelism, with_keys):
    """The keys after connect() count, whatever keys the streams have before it."""
    env = environment(parallelism)
    orders = env.from_collection([(1, "order 1"), (2, "order 2"), (3, "order 3")])
    users = env.from_collection([(1, "Ann"), (2, "Bob")])
    found = collected(with_keys(orders, users).key_by(first, first).process(_Join()))
    assert sorted(found) == [("Ann", "order 1"), ("Bob", "order 2"), ("nobody", "order 3", 3)]


def test_connect_wants_keys_on_both_sides_or_on_none():
    env = environment()
    for method, function in (("process", _Join()), ("map", _Both())):
        mixed = env.from_collection([1]).key_by(lambda x: x).connect(env.from_collection([1]))
        with pytest.raises(StreamProgramError, match="give both keys, before it or by key_by"):
            getattr(mixed, method)(function)
    with pytest.raises(StreamProgramError, match="put key_by"):
        env.from_collection([1]).connect(env.from_collection([1])).process(_Join())


def test_connected_streams_without_keys_have_no_state():
    class Stateful(_Both):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("v"))

    env = environment()
    with pytest.raises(NoKeyError, match=r"'Co-Map' asks for the state 'v'.*Put key_by"):
        collected(env.from_collection([1]).connect(env.from_collection([2])).map(Stateful()))


RULES = MapStateDescriptor("rules")


class _Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        yield value, sorted(rules.keys())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, True)
        yield "rule", value


def test_every_task_gets_what_is_broadcast():
    env = environment(3)
    found = collected(env.from_collection([1]).connect(env.from_collection(["r"]).broadcast(RULES)).process(_Rules()))
    assert sorted(found, key=str).count(("rule", "r")) == 3
    assert next(each[1] for each in found if each[0] == 1) in ([], ["r"])


def test_broadcast_state_is_changed_by_broadcast_elements_only():
    class Writing(_Rules):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(RULES).put(value, True)

    env = environment()
    with pytest.raises(StreamProgramError, match="process_broadcast_element only"):
        collected(env.from_collection([1]).connect(env.from_collection(["r"]).broadcast(RULES)).process(Writing()))
    with pytest.raises(StreamProgramError, match="KeyedBroadcastProcessFunction"):
        env.from_collection([1]).key_by(lambda x: x).connect(env.from_collection(["r"]).broadcast(RULES)).process(_Rules())


def test_a_keyed_stream_with_broadcast_state_has_state_timers_and_all_keys_of_its_task():
    count = ValueStateDescriptor("count")

    class Counting(KeyedBroadcastProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(count)

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), self.count.value(), sorted(ctx.get_broadcast_state(RULES).keys())

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(RULES)[value] = True
            ctx.apply_to_keyed_state(count, lambda key, state: state.update(state.value() + 100))

    env = environment()
    stream = env.from_collection(["a", "b", "a"]).key_by(lambda x: x)
    found = collected(stream.connect(env.from_collection(["r"]).broadcast(RULES)).process(Counting()))
    assert sorted(found) in ([("a", 2, ["r"]), ("b", 1, ["r"])], [("a", 102, ["r"]), ("b", 101, ["r"])])


def test_side_outputs_of_functions():
    odd = OutputTag("odd")

    class Split(ProcessFunction):
        def process_element(self, value, ctx):
            if value % 2:
                yield odd, value
            else:
                yield value

    split = environment().from_collection([1, 2, 3, 4]).process(Split())
    assert collected(split) == [2, 4]
    assert collected(split.get_side_output(odd)) == [1, 3]
    assert sorted(collected(split.union(split.get_side_output(odd)))) == [1, 2, 3, 4]


def test_a_side_output_has_the_type_of_its_tag(capsys):
    wide = OutputTag("wide", Types.ROW([Types.SHORT(), Types.STRING()]))

    class Split(ProcessFunction):
        def process_element(self, value, ctx):
            yield wide, (value, "x")

    env = environment()
    env.from_collection([43878]).process(Split()).get_side_output(wide).print()
    env.execute()
    assert capsys.readouterr().out == "+I[-21658, x]\n"


class _Task(MapFunction):
    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.index, value


def test_partitioning_chooses_the_tasks():
    env = environment()
    stream = env.from_collection(list(range(8)))

    def tasks(partitioned):
        return sorted(collected(partitioned.map(_Task()).set_parallelism(4)), key=lambda each: (each[1], each[0]))

    assert tasks(stream.rebalance()) == [(n % 4, n) for n in range(8)]
    assert tasks(stream) == tasks(stream.rebalance()) == tasks(stream.rescale())
    assert len(tasks(stream.broadcast())) == 32
    assert {index for index, _ in tasks(stream.shuffle())} <= {0, 1, 2, 3}
    assert tasks(stream.shuffle()) == tasks(stream.shuffle())
    custom = stream.partition_custom(lambda key, number: key % number, lambda value: value // 2)
    assert tasks(custom) == [(n // 2 % 4, n) for n in range(8)]
    with pytest.raises(StreamProgramError, match="returned 9 for the key"):
        collected(stream.partition_custom(lambda key, number: 9, lambda value: value).map(_Task()))
    with pytest.raises(StreamProgramError, match=r"forward\(\) between 'Source: Collection Source' and 'Map'"):
        collected(stream.forward().map(_Task()).set_parallelism(2))
    same = env.from_collection(["a", "b"] * 50).key_by(lambda x: x).map(_Task()).set_parallelism(4)
    assert len(set(collected(same))) == 2
