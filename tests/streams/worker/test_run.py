"""A program over what it is given: splits that appear later, relations, metrics, and changed programs."""

from operator import add

import pyarrow as pa
import pytest

from airflow_pipelines.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    Types,
)
from airflow_pipelines.datastream.common import Duration, WatermarkStrategy
from airflow_pipelines.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from airflow_pipelines.datastream.window import EventTimeTrigger, GlobalWindows, TriggerResult, TumblingEventTimeWindows
from airflow_pipelines.streams.elements import MAX_TIMESTAMP
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.graph.kept_states import kept_states
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.relations import DELETE, INSERT, UPDATE_AFTER, RelationSource
from airflow_pipelines.streams.state.database import StateDatabase
from airflow_pipelines.streams.worker.bound import bind
from airflow_pipelines.streams.worker.messages import Open, RelationFeed
from airflow_pipelines.streams.worker.rest import read_header
from airflow_pipelines.streams.worker.run import ProgramRun
from airflow_pipelines.streams.worker.stored_state import StoredState
from tests.datastream.programs import Contents, EachElement, environment, first
from tests.streams.worker.programs import Held, Kept, begin, elements, ended, kinds, new_folder, program, rows, source, splits


class Watermarks(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield timestamp


def watching(parallelism=1):
    strategy = WatermarkStrategy.for_generator(lambda: EachElement(0)).with_timestamp_assigner(lambda value, _: value[1])
    stream = source(environment(parallelism), strategy=strategy, bounded=False)
    return program(stream.key_by(first).process(Watermarks()).uid("watch").set_parallelism(1), parallelism=parallelism)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_event_time_waits_for_splits_to_be_known_and_for_all_of_them(parallelism):
    run, _ = begin(watching(parallelism), now_ms=0)
    assert not run.step(1, []).has_ended
    assert rows(run.step(2, [splits(3), elements([("a", 10)], 0)])) == []
    assert rows(run.step(3, [elements([("a", 20)], 1)])) == []
    assert rows(run.step(4, [elements([("a", 15)], 2)])) == []
    assert rows(run.step(5, [elements([("a", 30)], 2), elements([("a", 16)], 0)])) == [("10",), ("15",)]
    stepped = run.step(6, [ended(0), ended(1), ended(2)])
    assert rows(stepped) == [("16",), ("20",), ("30",)]
    assert stepped.has_ended


def test_a_source_without_splits_ends_when_that_is_known():
    run, _ = begin(watching(), now_ms=0)
    assert run.step(1, [splits(0)]).has_ended


def test_splits_may_be_told_again_and_become_more_and_not_fewer():
    kept = Kept()
    run, _ = begin(watching(), now_ms=0)
    run.step(1, [splits(2), elements([("a", 10)], 0)])
    kept.save(run)
    run, _ = begin(watching(), kept.rest, kept.stored())
    assert rows(run.step(2, [splits(2), elements([("a", 12)], 1)])) == []
    assert rows(run.step(3, [splits(3), elements([("a", 20)], 0)])) == []
    assert rows(run.step(4, [elements([("a", 11)], 2)])) == [("10",)]
    with pytest.raises(StreamProgramError, match="had 3 splits and has 2"):
        run.step(5, [splits(2)])


def test_elements_of_what_the_program_does_not_read_are_refused():
    run, _ = begin(watching(), now_ms=0)
    with pytest.raises(StreamProgramError, match="'other', which the program does not have"):
        run.step(1, [elements([1], uid="other")])


def test_elements_keep_their_timestamps_and_order():
    stream = source(environment()).key_by(lambda value: 0).process(Timestamps())
    run, _ = begin(program(stream), now_ms=0)
    run.step(0, [splits(1)])
    stepped = run.step(1, [elements([1, 2], timestamps=[5, None]), elements([3]), elements([4], timestamps=[7])])
    assert rows(stepped) == [("(1, 5)",), ("(2, None)",), ("(3, None)",), ("(4, 7)",)]
    assert stepped.read == 4


class Timestamps(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_batch_mode_is_refused():
    with pytest.raises(StreamProgramError, match="STREAMING"):
        begin(program(source(environment()).map(str), is_batch=True), now_ms=0)


# when it wants to be called


def test_wants_to_be_called_for_watermarks_only_while_there_may_be_some():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    stream = source(environment(), strategy=strategy, bounded=False)
    run, opened = begin(program(stream.key_by(first).process(Watermarks())), now_ms=1_000)
    assert opened.next_due is None
    assert run.step(1_000, [splits(1)]).next_due is None
    assert run.step(1_050, [elements([("a", 5)])]).next_due == 1_200
    assert run.step(1_200, []).next_due is None
    stepped = run.step(2_000, [elements([("a", 9)])])
    assert (rows(stepped), stepped.next_due) == ([("5",)], None)


class Alarm(KeyedProcessFunction):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + value)

    def on_timer(self, timestamp, ctx):
        yield timestamp


def test_wants_to_be_called_for_timers_also_after_it_was_opened_again():
    bound = program(source(environment()).key_by(lambda value: 0).process(Alarm()))
    kept = Kept()
    run, _ = begin(bound, now_ms=0)
    assert run.step(100, [splits(1), elements([50, 70])]).next_due == 150
    kept.save(run)
    run, opened = begin(bound, kept.rest, kept.stored())
    assert opened.next_due == 150
    assert rows(run.step(160, [])) == [("150",)]
    stepped = run.step(1_000, [])
    assert (rows(stepped), stepped.next_due) == ([("170",)], None)


# relations


def _relation(with_changes):
    env = environment()
    spec = RelationSource("orders", with_changes, lambda names, values, kind: (dict(zip(names, values, strict=True)), kind))
    stream = env.from_source(spec, WatermarkStrategy.no_watermarks(), "orders").uid("orders")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("tags", pa.map_(pa.string(), pa.int32()))])
    types = (("id", "BIGINT"), ("tags", "MAP<STRING, INT>"))
    return program(stream, lambda value: (value[1], (value[0]["id"], value[0]["tags"])), schema, types)


def _changes(found, *, schema=None):
    schema = schema or pa.schema([("id", pa.int64()), ("tags", pa.map_(pa.string(), pa.int32())), ("__weight", pa.int64())])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        for each in found:
            writer.write_table(pa.table(list(zip(*each, strict=True)), schema=schema))
    return RelationFeed("orders", out.getvalue().to_pybytes())


def test_rows_of_a_relation_become_elements_and_elements_rows():
    run, _ = begin(_relation(with_changes=True), now_ms=0)
    stepped = run.step(1, [_changes([[(1, {"a": 1}, 1), (2, None, -1)], [(3, {}, 2)]])])
    assert rows(stepped) == [(1, [("a", 1)]), (2, None), (3, []), (3, [])]
    assert kinds(stepped) == [INSERT, DELETE, INSERT, INSERT]
    assert (stepped.read, stepped.has_ended) == (4, False)


def test_a_row_that_a_relation_lost_is_refused_without_changes():
    run, _ = begin(_relation(with_changes=False), now_ms=0)
    assert rows(run.step(1, [_changes([[(1, None, 1)]])])) == [(1, None)]
    with pytest.raises(StreamProgramError, match=r"'orders' lost the row \{'id': 1, 'tags': None\}.*with its changes") as refused:
        run.step(2, [_changes([[(1, None, -1)]])])
    assert refused.value.__notes__ == ["in operator 'Source: orders', reading what came in"]


def test_what_does_not_fit_a_relation_is_named():
    run, _ = begin(_relation(with_changes=True), now_ms=0)
    with pytest.raises(
        StreamProgramError, match=r"'id' of type BIGINT of the relation 'out' cannot take None .*must have a value"
    ) as refused:
        run.step(1, [_changes([[(1, None, 1), (None, {"b": 2}, 1)]])])
    assert refused.value.__notes__ == ["in operator 'Sink: Writer', element: ({'id': None, 'tags': {'b': 2}}, 0)"]


def _pairs(values, sent):
    bound = program(source(environment()).map(lambda value: value), lambda value: value, *values)
    run, _ = begin(bound, now_ms=0)
    return run.step(1, [splits(1), elements(sent)])


NUMBERS = (pa.schema([("number", pa.int32()), ("text", pa.string())]), (("number", "INT"), ("text", "STRING")))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (("x", "y"), r"'number' of type INT of the relation 'out' cannot take 'x' \(str\)"),
        ((2**31, "y"), r"'number' of type INT of the relation 'out' cannot take 2147483648 \(int\)"),
        ((1.5, "y"), r"'number' of type INT of the relation 'out' cannot take 1\.5 \(float\)"),
        ((1, 2), r"'text' of type STRING of the relation 'out' cannot take 2 \(int\)"),
        ((1,), r"has the 2 columns \['number', 'text'\], and the element has 1 values"),
    ],
)
def test_values_that_do_not_fit_name_column_value_type_operator_and_element(value, says):
    with pytest.raises(StreamProgramError, match=says) as refused:
        _pairs(NUMBERS, [(0, (1, "fine")), (0, value)])
    assert refused.value.__notes__ == [f"in operator 'Sink: Writer', element: {(0, value)!r}"]


def test_many_rows_come_in_some_messages_with_their_kinds():
    stepped = _pairs(NUMBERS, [(UPDATE_AFTER, (number, None)) for number in range(25_000)])
    assert [output.rows for output in stepped.outputs] == [10_000, 10_000, 5_000]
    assert rows(stepped) == [(number, None) for number in range(25_000)]
    assert set(kinds(stepped)) == {UPDATE_AFTER}


def test_rows_of_a_key_stay_in_order_whatever_the_parallelism():
    env = environment(4)
    stream = source(env).key_by(first).map(lambda value: value)
    stream.to_relation("latest", "key BIGINT, number BIGINT", primary_key="key").uid("latest")
    plan = plan_of(env.graph, [node.id for node in env._take_sinks()], Defaults(4))
    schema = pa.schema([("key", pa.int64()), ("number", pa.int64())])
    run, _ = begin(bind(plan, TaskSettings()), now_ms=0, schemas={"latest": schema.serialize().to_pybytes()})
    found = rows(run.step(1, [splits(1), elements([(number % 5, number) for number in range(1_000)])]))
    assert len(found) == 1_000
    for key in range(5):
        numbers = [number for each, number in found if each == key]
        assert numbers == sorted(numbers)


def test_columns_must_be_those_of_the_relation():
    bound = program(source(environment()).map(str), schema=pa.schema([("other", pa.string())]))
    with pytest.raises(StreamProgramError, match=r"has the columns \['other'\], and the program makes \['text'\]"):
        begin(bound, now_ms=0)


# what it says of itself


class Counted(MapFunction):
    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.counter = group.counter("seen")
        group.gauge("odd", lambda: {1, 2})

    def map(self, value):
        self.counter.inc()
        return value


def test_metrics_are_told_when_they_changed_and_at_most_once_a_second(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("airflow_pipelines.streams.worker.run.time.monotonic", lambda: now[0])
    strategy = WatermarkStrategy.for_generator(lambda: EachElement(0)).with_timestamp_assigner(lambda value, _: value)
    run, opened = begin(program(source(environment(), strategy=strategy).map(Counted()).uid("counted")), now_ms=0)
    assert opened.metrics["counted", 0].watermark is None
    assert run.step(1, [splits(1), elements([7])]).metrics == {}
    now[0] += 1
    told = run.step(2, [elements([9])]).metrics
    assert told["in", 0].watermark == told["counted", 0].watermark == 8
    assert told["counted", 0].counted == {"seen": 2, "odd": "{1, 2}"}
    now[0] += 1
    assert run.step(3, []).metrics == {}


def test_the_size_of_state_is_that_at_rest():
    run, _ = begin(program(source(environment()).key_by(lambda value: value).process(Remember()).uid("kept")), now_ms=0)
    assert not run.metrics()["kept", 0].has_keys
    run.step(1, [splits(1), elements(range(100))])
    assert [(each.has_keys, each.bytes) for each in (run.metrics()["kept", 0], run.metrics()["in", 0])] == [(True, 0), (False, 0)]
    Kept().save(run)
    run._next_metrics = 0
    assert run.step(2, []).metrics["kept", 0].bytes > 100


def test_an_input_that_holds_event_time_back_is_told_once():
    run, _ = begin(watching(), now_ms=0)
    run.step(1, [splits(2), elements([("a", 10)], 0)])
    told = [run.step(now, []).warnings for now in (1_000, 40_000, 80_000)]
    assert [len(each) for each in told] == [0, 1, 0]
    assert "split 1" in told[1][0]


# changed programs


class Remember(KeyedProcessFunction):
    states = ("value", "list")

    def open(self, runtime_context):
        self.kept = [_state(runtime_context, name) for name in self.states]

    def process_element(self, value, ctx):
        for name, state in zip(self.states, self.kept, strict=True):
            if name == "value":
                state.update((state.value() or 0) + 1)
            else:
                state.add(value)
        ctx.timer_service().register_event_time_timer(1_000)
        yield value, [state.value() if name == "value" else state.get() for name, state in zip(self.states, self.kept, strict=True)]


def _state(context, name):
    if name == "value":
        return context.get_state(ValueStateDescriptor(name))
    return context.get_list_state(ListStateDescriptor(name))


class OnlyList(Remember):
    states = ("list",)


def remembering(function, uid="kept", parallelism=1, most=128):
    stream = source(environment(parallelism)).key_by(lambda value: value).process(function).uid(uid)
    return program(stream.set_max_parallelism(most), parallelism=parallelism)


def _kept(parallelism=1):
    kept = Kept()
    run, _ = begin(remembering(Remember(), parallelism=parallelism), now_ms=0)
    run.step(1, [splits(1), elements([1, 2, 3])])
    kept.save(run)
    return kept


def test_state_is_listed_without_its_classes_also_when_it_is_not_used_any_more():
    kept = _kept()
    header = read_header(kept.rest)
    assert header.now_ms == 1
    operator = header.operators["kept"]
    assert (operator.is_keyed, operator.parallelism, operator.max_parallelism) == (True, 1, 128)
    assert [(state.name, state.kind) for state in operator.states] == [("value", "value"), ("list", "list")]
    assert operator.shares.keys() == {"value", "list"}
    assert sum(operator.shares.values()) == pytest.approx(1)
    run, _ = begin(remembering(OnlyList()), kept.rest, kept.stored())
    kept.save(run)
    listed = read_header(kept.rest).operators["kept"]
    assert [state.name for state in listed.states] == ["value", "list"]
    assert listed.shares == operator.shares, "also where nothing was stored since"


def test_a_state_that_is_dropped_is_gone_for_good_and_others_stay():
    kept = _kept()
    dropped = frozenset({("kept", "value")})
    run, _ = begin(remembering(OnlyList()), kept.rest, kept.stored(), dropped)
    kept.save(run)
    assert [state.name for state in read_header(kept.rest).operators["kept"].states] == ["list"]
    run, _ = begin(remembering(Remember()), kept.rest, kept.stored())
    assert rows(run.step(2, [elements([2])])) == [("(2, [1, [2, 2]])",)]


def test_all_states_of_an_operator_may_be_dropped_one_by_one():
    kept = _kept()
    run, _ = begin(remembering(Remember()), kept.rest, kept.stored(), frozenset({("kept", "value"), ("kept", "list")}))
    assert rows(run.step(2, [elements([2])])) == [("(2, [1, [2]])",)]


def test_an_operator_that_is_dropped_begins_anew_and_its_rows_are_gone():
    kept = _kept()
    assert len(kept.keys()) == 3
    run, _ = begin(remembering(Remember()), kept.rest, kept.stored(), frozenset({"kept"}))
    kept.save(run)
    assert kept.keys() == []
    assert rows(run.step(2, [elements([2])])) == [("(2, [1, [2]])",)]


def test_keys_that_were_dropped_may_come_again():
    kept = _kept()
    run, _ = begin(remembering(Remember()), kept.rest, kept.stored(), frozenset({"kept"}))
    run.step(2, [elements([1, 2, 3])])
    kept.save(run)
    run, _ = begin(remembering(Remember()), kept.rest, kept.stored())
    assert rows(run.step(3, [elements([2])])) == [("(2, [2, [2, 2]])",)]


def test_state_that_nobody_claims_is_refused_unless_it_is_dropped():
    kept = _kept()
    with pytest.raises(StreamProgramError, match=r"state of the operators \['kept'\]"):
        begin(remembering(Remember(), "other"), kept.rest, kept.stored())
    run, _ = begin(remembering(Remember(), "other"), kept.rest, kept.stored(), frozenset({"kept"}))
    kept.save(run)
    assert "kept" not in read_header(kept.rest).operators
    assert kept.keys() == []


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (3, 2)])
def test_state_goes_where_its_keys_go_when_parallelism_changes(before, after):
    kept = _kept(before)
    run, _ = begin(remembering(Remember(), parallelism=after), kept.rest, kept.stored())
    assert sorted(rows(run.step(2, [elements([3, 1])]))) == [("(1, [2, [1, 1]])",), ("(3, [2, [3, 3]])",)]
    kept.save(run)
    assert len(kept.keys()) == 3, "a key is in one place"


def test_another_maximum_of_parallelism_is_refused_unless_the_operator_begins_anew():
    kept = _kept()
    with pytest.raises(StreamProgramError, match=r"set_max_parallelism\(128\)"):
        begin(remembering(Remember(), most=64), kept.rest, kept.stored())
    run, _ = begin(remembering(Remember(), most=64), kept.rest, kept.stored(), frozenset({"kept"}))
    kept.save(run)
    assert read_header(kept.rest).operators["kept"].max_parallelism == 64


class Applying(BroadcastProcessFunction):
    def __init__(self, *names):
        self.names = names

    def process_element(self, value, ctx):
        yield value, [sorted(ctx.get_broadcast_state(name).items()) for name in self.names]

    def process_broadcast_element(self, value, ctx):
        for name in self.names:
            ctx.get_broadcast_state(name).put(value, True)


class ApplyingToKeys(Applying, KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("rules"))


def applying(*names, keyed=False):
    env = environment()
    stream = source(env).key_by(lambda value: value) if keyed else source(env)
    rules = source(env, "rules").broadcast(*(MapStateDescriptor(name) for name in names))
    function = (ApplyingToKeys if keyed else Applying)(*names)
    return program(stream.connect(rules).process(function).uid("apply").set_parallelism(2))


@pytest.mark.parametrize("keyed", [False, True])
def test_broadcast_states_are_listed_and_can_be_dropped_one_by_one(keyed):
    kept = Kept()
    run, _ = begin(applying("rules", "limits", keyed=keyed), now_ms=0)
    run.step(1, [splits(1), splits(1, "rules"), elements(["r"], uid="rules")])
    kept.save(run)
    operator = read_header(kept.rest).operators["apply"]
    assert [(state.name, state.kind) for state in operator.states if state.kind == "broadcast"] == [
        ("broadcast/rules", "broadcast"),
        ("broadcast/limits", "broadcast"),
    ]
    assert 20 < operator.broadcast_bytes < 200
    dropped = frozenset({("apply", "broadcast/limits")})
    run, _ = begin(applying("rules", keyed=keyed), kept.rest, kept.stored(), dropped)
    kept.save(run)
    listed = [state.name for state in read_header(kept.rest).operators["apply"].states]
    assert listed == (["broadcast/rules", "rules"] if keyed else ["broadcast/rules"])
    run, _ = begin(applying("rules", "limits", keyed=keyed), kept.rest, kept.stored())
    assert rows(run.step(2, [elements([5])])) == [("(5, [[('r', True)], []])",)]


def test_the_description_of_a_program_has_its_broadcast_states():
    chain, step = next(
        (chain, step) for chain in applying("rules", keyed=True).plan.chains for step in chain.steps if step.uid == "apply"
    )
    assert [(state.name, state.kind) for state in kept_states(chain, step, TaskSettings())] == [
        ("broadcast/rules", "broadcast"),
        ("rules", "value"),
    ]
    chain, step = next((chain, step) for chain in applying("rules").plan.chains for step in chain.steps if step.uid == "apply")
    assert [state.name for state in kept_states(chain, step, TaskSettings())] == ["broadcast/rules"]


def test_windows_whose_contents_are_dropped_begin_anew():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0)).with_timestamp_assigner(lambda value, _: value)
    stream = source(environment(), strategy=strategy).key_by(lambda value: 0).window(TumblingEventTimeWindows.of(10))
    bound = program(stream.process(Contents()).uid("windows"))
    kept = Kept()
    held = Held(bound)
    held.open(now_ms=0)
    held.step(1, [splits(1), elements([1, 2])])
    kept.save(held)
    assert [state.name for state in read_header(kept.rest).operators["windows"].states] == ["window/contents"]
    went_on = Held(bound)
    went_on.open(kept.rest, dropped=frozenset({("windows", "window/contents")}), database=kept.stored())
    stepped = went_on.step(2, [elements([3, 15]), ended()])
    assert [text.split(",")[-1] for (text,) in rows(stepped)] == [" [3])", " [15])"]
    assert stepped.has_ended


class EveryThird(EventTimeTrigger):
    """Fires at each third element, and knows no other time."""

    def __init__(self, name="seen"):
        self.seen = ReducingStateDescriptor(name, add, Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        seen = ctx.get_partitioned_state(self.seen)
        seen.add(1)
        if seen.get() < 3:
            return TriggerResult.CONTINUE
        seen.clear()
        return TriggerResult.FIRE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.seen).clear()


def test_what_a_trigger_keeps_goes_on_and_can_be_dropped():
    def windows(trigger):
        stream = source(environment()).key_by(lambda value: 0).window(GlobalWindows.create()).trigger(trigger)
        return program(stream.process(Contents()).uid("windows"))

    kept, held = Kept(), Held(windows(EveryThird()))
    held.open(now_ms=0)
    held.step(1, [splits(1), elements([1, 2])])
    kept.save(held)
    states = read_header(kept.rest).operators["windows"].states
    assert [(state.name, state.type) for state in states] == [("window/contents", ""), ("trigger/seen", "Types.LONG()")]

    def numbers_at_results(trigger, dropped):
        went_on = Held(windows(trigger))
        went_on.open(kept.rest, dropped=dropped, database=kept.stored())
        return [number for number in (3, 4, 5) if rows(went_on.step(number, [elements([number])]))]

    assert numbers_at_results(EveryThird(), frozenset()) == [3]
    assert numbers_at_results(EveryThird(), frozenset({("windows", "trigger/seen")})) == [5]
    assert numbers_at_results(EveryThird("other"), frozenset({("windows", "trigger/seen")})) == [5]


def test_time_goes_on_where_it_was_and_ends_at_the_end_of_time():
    run, _ = begin(watching(), now_ms=5)
    run.step(7, [splits(1), ended()])
    kept = Kept()
    kept.save(run)
    assert read_header(kept.rest).now_ms == 7
    run, _ = begin(watching(), kept.rest, kept.stored())
    stepped = run.step(8, [])
    assert stepped.has_ended
    run._next_metrics = 0
    run._told.clear()
    assert run.step(9, []).metrics["watch", 0].watermark == MAX_TIMESTAMP


class Attempts(MapFunction):
    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        return self.attempt


@pytest.mark.parametrize("attempt", [0, 2])
def test_functions_know_the_number_of_the_attempt(attempt):
    bound = program(source(environment()).map(Attempts()).uid("attempts"))
    run = ProgramRun(bound, Open(b"", "", attempt=attempt), StoredState(None, StateDatabase(new_folder())))
    assert rows(run.step(0, [splits(1), elements([1])])) == [(repr(attempt),)]
