"""Windows of event time over streams without timestamps are refused before anything runs."""

from __future__ import annotations

import pytest

from airflow_pipelines.datastream import Time, WatermarkStrategy
from airflow_pipelines.datastream.connectors import NumberSequenceSource
from airflow_pipelines.datastream.functions import CoMapFunction, KeyedProcessFunction
from airflow_pipelines.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.function_source import SourceFunction
from tests.datastream.programs import collected, environment, first, timed

HOURS = TumblingEventTimeWindows.of(Time.hours(1))
PAIRS = [("a", 1), ("b", 2)]


def windowed(stream):
    return stream.key_by(first).window(HOURS).reduce(lambda a, _: a)


def refused(stream, match):
    ran = []
    with pytest.raises(StreamProgramError, match=match):
        windowed(stream.map(lambda pair: ran.append(pair) or pair)).execute_and_collect()
    assert ran == []


class _OfSource(SourceFunction):
    is_bounded = True

    def run(self, ctx):
        yield ctx.with_timestamp(("a", 1), 10)


class _Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return None


def test_no_strategy_and_a_source_without_timestamps():
    env = environment()
    refused(env.from_collection(PAIRS), r"'Window Reduce' would get .* from 'Source: Collection Source'. Put assign_timestamps")
    numbers = env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks(), "numbers")
    refused(numbers.map(lambda number: (number, 0)), "'Source: numbers'. The WatermarkStrategy .* has no timestamp assigner")
    monotonous = WatermarkStrategy.for_monotonous_timestamps()
    refused(env.from_collection(PAIRS).assign_timestamps_and_watermarks(monotonous), "has no timestamp assigner")
    with pytest.raises(StreamProgramError, match="'Window Reduce' would get"):
        env.from_collection(PAIRS).window_all(HOURS).reduce(lambda a, _: a).execute_and_collect()


def test_every_part_of_a_union_needs_timestamps_and_one_of_two_inputs():
    env = environment()
    with_time, without = timed(env.from_collection(PAIRS)), env.from_collection(PAIRS)
    refused(with_time.union(without), "from 'Source: Collection Source'")
    assert len(collected(windowed(with_time.union(timed(without))))) == 2
    assert len(collected(windowed(with_time.connect(without).map(_Both())))) == 2
    refused(without.connect(env.from_collection([])).map(_Both()), "would get elements without timestamps")


def test_what_may_have_timestamps_is_not_refused():
    class OnTimer(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    env = environment()
    assert collected(windowed(env.add_source(_OfSource()))) == [("a", 1)]
    assert len(collected(windowed(env.from_collection(PAIRS).key_by(first).process(OnTimer())))) == 2
    assert len(collected(windowed(windowed(timed(env.from_collection(PAIRS)))))) == 2
    by_clock = env.from_collection(PAIRS).key_by(first).window(TumblingProcessingTimeWindows.of(Time.hours(1)))
    assert collected(by_clock.reduce(lambda a, _: a)) == []
