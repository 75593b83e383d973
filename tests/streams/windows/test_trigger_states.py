"""Which states of a trigger are found without running it, and how they are merged."""

from types import SimpleNamespace

import pytest

from airflow_pipelines.datastream import Types
from airflow_pipelines.datastream.functions import AggregateFunction
from airflow_pipelines.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from airflow_pipelines.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.operators.window_contexts import MergeContext
from airflow_pipelines.streams.operators.windowing import Windowed
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.windows.trigger_states import trigger_states

OF_MODULE = ListStateDescriptor("of-module", Types.STRING())


class Own(NeverTrigger):
    of_class = ReducingStateDescriptor("of-class", max, Types.LONG())

    def __init__(self, within=None):
        self.last = ValueStateDescriptor("last", Types.LONG())
        self.within = within

    def on_element(self, element, timestamp, window, ctx):
        ctx.get_partitioned_state(self.last).update(timestamp)
        return super().on_element(element, timestamp, window, ctx)


class OfModule(NeverTrigger):
    def on_element(self, element, timestamp, window, ctx):
        [ctx.get_partitioned_state(state).add(element) for state in (OF_MODULE,)]
        return super().on_element(element, timestamp, window, ctx)


class MadeInside(NeverTrigger):
    def on_element(self, element, timestamp, window, ctx):
        ctx.get_partitioned_state(ValueStateDescriptor("inside", Types.LONG())).update(1)
        return super().on_element(element, timestamp, window, ctx)


@pytest.mark.parametrize(
    ("trigger", "names"),
    [
        (EventTimeTrigger.create(), []),
        (CountTrigger.of(3), ["count"]),
        (ContinuousEventTimeTrigger.of(10), ["fire-time"]),
        (PurgingTrigger.of(CountTrigger.of(3)), ["count"]),
        (Own(), ["last", "of-class"]),
        (Own(PurgingTrigger.of(CountTrigger.of(3))), ["count", "last", "of-class"]),
        (OfModule(), ["of-module"]),
        (MadeInside(), []),
    ],
)
def test_descriptors_are_found_where_a_trigger_has_them(trigger, names):
    assert [each.name for each in trigger_states(trigger)] == names


def test_triggers_that_contain_each_other_are_looked_at_once():
    one, other = Own(), Own()
    one.within, other.within = other, one
    assert [each.name for each in trigger_states(one)] == ["last", "of-class"]


def test_they_are_states_of_the_window_operator():
    states = Windowed(TumblingEventTimeWindows.of(10), Own()).own_states()
    assert [(state.name, state.kind, state.type) for state in states] == [
        ("window/contents", "list", ""),
        ("trigger/last", "value", "Types.LONG()"),
        ("trigger/of-class", "reducing", "Types.LONG()"),
    ]


class Total(AggregateFunction):
    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        return [accumulator[0] + value]

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, one, other):
        return [one[0] + other[0]]


@pytest.mark.parametrize("expires", [False, True])
@pytest.mark.parametrize(
    "descriptor",
    [
        lambda: ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG()),
        lambda: AggregatingStateDescriptor("total", Total(), Types.LIST(Types.LONG())),
    ],
    ids=["reducing", "aggregating"],
)
def test_states_of_merged_windows_are_combined_and_what_expired_is_left_out(descriptor, expires):
    state, clock, store = descriptor(), StepClock(1000), KeyedStore(4)
    if expires:
        state.enable_time_to_live(TimeToLive(100))
    context = MergeContext(SimpleNamespace(store=store, timers=None, context=SimpleNamespace(clock=clock)))
    entry = store.hot["key"]
    for window, value in [("first", 1), ("second", 20), ("third", 300)]:
        context.of(entry, window).get_partitioned_state(state).add(value)
        clock.now += 60
    context.of(entry, "all", ["third", "empty", "first", "second"]).merge_partitioned_state(state)
    assert context.get_partitioned_state(state).get() == (300 if expires else 321)
    assert context.of(entry, "first").get_partitioned_state(state).get() is None
