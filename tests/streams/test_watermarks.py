"""Watermarks of several inputs, of splits that are idle, and periodic ones."""

import pytest

from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.datastream.common import Duration, WatermarkStrategy
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.process_functions import KeyedProcessFunction, ProcessFunction
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.streams.watermarks import Combination
from airflow_pipelines.streams.windows.time_windows import ProcessingTimeSessionWindows, TumblingProcessingTimeWindows
from tests.datastream.programs import Contents, environment


def test_the_combined_watermark_is_the_minimum_of_the_inputs_that_are_not_idle():
    combination = Combination(["a", "b", "c"])
    assert not combination.update("a", 10)
    assert not combination.update("b", 20)
    assert combination.watermark == MIN_TIMESTAMP
    assert combination.held_back_by() == ["c"]
    assert combination.set_idle("c", idle=True)
    assert combination.watermark == 10
    assert combination.set_idle("a", idle=True)
    assert combination.watermark == 20
    assert not combination.set_idle("a", idle=False)  # it never goes back
    assert combination.watermark == 20
    for name in "ab":
        combination.set_idle(name, idle=True)
    assert combination.all_idle
    assert combination.watermark == 20


class Scripted(Source):
    """Splits whose elements the test adds while the program runs; it never ends."""

    def __init__(self, splits):
        self.waiting = [[] for _ in range(splits)]

    @property
    def is_bounded(self):
        return False

    def splits(self, parallelism):
        return range(len(self.waiting))

    def open(self, split, position):
        return _ScriptedReader(self.waiting[split])


class _ScriptedReader(SourceReader):
    def __init__(self, waiting):
        self.waiting = waiting

    def poll(self, limit):
        values = list(self.waiting)
        self.waiting.clear()
        return Polled(values)

    def position(self):
        return None


class Watermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


def run(build, splits=1, strategy=None):
    env = environment()
    source = Scripted(splits)
    sink = CollectSink()
    clock = ManualClock(0)
    node = build(env.from_source(source, strategy, "scripted")).sink_to(sink)._node
    runner = LocalRunner(plan_of(env.graph, [node.id], Defaults()), clock=clock)
    env._take_sinks()

    def step(advance, **elements):
        clock.advance(advance)
        for split, values in elements.items():
            source.waiting[int(split[1:])] += values
        runner.step()
        found = list(sink.values)
        sink.values.clear()
        return found

    return step


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


def test_an_input_that_does_not_end_gets_watermarks_in_intervals_of_processing_time():
    step = run(lambda stream: stream.process(Watermark()), strategy=STRATEGY)
    assert step(0, s0=[10, 20]) == [(10, MIN_TIMESTAMP), (20, MIN_TIMESTAMP)]
    assert step(100, s0=[30]) == [(30, MIN_TIMESTAMP)]
    assert step(100) == []
    assert step(0, s0=[40]) == [(40, 29)]


@pytest.mark.parametrize("bound", [0, 30])
def test_the_watermark_is_behind_the_latest_time_by_the_bound_and_one_more(bound):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).with_timestamp_assigner(lambda v, _: v)
    step = run(lambda stream: stream.process(Watermark()), strategy=strategy)
    step(0, s0=[100, 200, 150])
    step(200)
    assert step(0, s0=[50]) == [(50, 200 - bound - 1)]
    step(200)
    assert step(0, s0=[60]) == [(60, 200 - bound - 1)]


def test_a_split_without_elements_holds_the_watermark_back_until_it_is_idle_and_again_when_it_wakes_up():
    step = run(lambda stream: stream.process(Watermark()), splits=2, strategy=STRATEGY.with_idleness(Duration.of_millis(1000)))
    step(0, s0=[10], s1=[])
    step(500, s0=[20])
    assert step(0, s0=[30]) == [(30, MIN_TIMESTAMP)]
    step(600, s0=[40])
    assert step(0, s0=[50]) == [(50, 39)]
    step(200, s1=[45])
    assert step(0, s0=[60]) == [(60, 44)]


def test_windows_of_processing_time_fire_by_the_clock_without_input():
    step = run(lambda stream: stream.key_by(lambda v: v).window(TumblingProcessingTimeWindows.of(100)).process(Contents()))
    assert step(10, s0=["a", "b"]) == []
    assert step(50, s0=["a"]) == []
    assert [(key, window.start, window.end, values) for key, window, values in step(40)] == [
        ("a", 0, 100, ["a", "a"]),
        ("b", 0, 100, ["b"]),
    ]
    sessions = run(lambda stream: stream.key_by(lambda v: v).window(ProcessingTimeSessionWindows.with_gap(100)).process(Contents()))
    sessions(0, s0=["a"])
    assert sessions(80, s0=["a"]) == []
    assert [(window.start, window.end, values) for _, window, values in sessions(100)] == [(0, 180, ["a", "a"])]


class _BothDomains(KeyedProcessFunction):
    def process_element(self, value, ctx):
        for _ in range(2):
            ctx.timer_service().register_event_time_timer(100)
            ctx.timer_service().register_processing_time_timer(100)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp, ctx.timestamp()


def test_timers_of_one_time_in_event_time_and_in_processing_time_are_two():
    step = run(lambda stream: stream.key_by(lambda value: value % 2).process(_BothDomains()), strategy=STRATEGY)
    assert step(0, s0=[1, 2]) == []
    assert step(99) == []
    assert step(1) == [(0, "PROCESSING_TIME", 100, 100), (1, "PROCESSING_TIME", 100, 100)]
    step(0, s0=[101, 102])
    assert step(300) == [(0, "EVENT_TIME", 100, 100), (1, "EVENT_TIME", 100, 100)]
    assert step(1) == []


def test_an_input_that_holds_event_time_back_for_long_is_named_once(caplog):
    step = run(lambda stream: stream.process(Watermark()), splits=2, strategy=STRATEGY)
    step(0, s0=[10], s1=[])
    for _ in range(50):
        step(1000, s0=[20])
    warnings = [record.getMessage() for record in caplog.records if "stood still" in record.getMessage()]
    assert len(warnings) == 1
    assert "'Source: scripted -> Process -> Sink: Writer (1/1)' has stood still for 30 s: it waits for split 1" in warnings[0]
    assert "with_idleness" in warnings[0]
