"""Watermarks and timers."""

import pytest

from airflow_pipelines.datastream.common import Configuration, Duration, WatermarkStrategy
from airflow_pipelines.datastream.environment import StreamExecutionEnvironment
from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from airflow_pipelines.streams.errors import FunctionTimeLimitError, StreamProgramError
from airflow_pipelines.streams.process_functions import KeyedProcessFunction, ProcessFunction
from airflow_pipelines.streams.timers import TimeDomain
from tests.datastream.programs import collected, environment, first, timed


class _Watermarks(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class _Timers(KeyedProcessFunction):
    """An element is (key, time, timers to register, timers to delete)."""

    def process_element(self, value, ctx):
        for timestamp in value[2]:
            ctx.timer_service().register_event_time_timer(timestamp)
        for timestamp in value[3] if len(value) > 3 else ():
            ctx.timer_service().delete_event_time_timer(timestamp)

    def on_timer(self, timestamp, ctx):
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        yield ctx.get_current_key(), timestamp, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_the_watermark_is_one_below_the_latest_time_so_that_equal_times_are_not_late():
    found = collected(timed(environment().from_collection([("a", 5), ("b", 5), ("c", 9)]), delay=0).process(_Watermarks()))
    assert found == [(("a", 5), 5, MIN_TIMESTAMP), (("b", 5), 5, 4), (("c", 9), 9, 4)]


def test_a_bounded_input_gets_no_watermark_before_its_end_unless_a_generator_emits_one_for_an_element():
    stream = environment().from_collection([("a", 5), ("b", 50)])
    assert [each[2] for each in collected(timed(stream).process(_Watermarks()))] == [MIN_TIMESTAMP, MIN_TIMESTAMP]


def test_elements_without_a_strategy_have_no_timestamp():
    assert collected(environment().from_collection([1]).process(_Watermarks())) == [(1, None, MIN_TIMESTAMP)]


def test_the_assigner_is_told_the_earlier_timestamp_and_survives_what_is_set_later():
    seen = []
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, before: seen.append(before) or value
    )
    stream = environment().from_collection([7]).assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_seconds(1)))
    assert collected(stream.process(_Watermarks())) == [(7, 7, MIN_TIMESTAMP)]
    assert seen == [MIN_TIMESTAMP]


def test_a_timestamp_that_is_no_number_is_refused_with_the_element():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 1.5)
    with pytest.raises(StreamProgramError, match=r"returned 1\.5 for the element 'x'.*milliseconds"):
        collected(environment().from_collection(["x"]).assign_timestamps_and_watermarks(strategy))


def test_timers_fire_in_the_order_of_their_times_once_each_and_those_left_at_the_end():
    stream = timed(environment().from_collection([("a", 0, [30, 10, 10]), ("b", 1, [20]), ("a", 25, []), ("a", 26, [40])]), delay=0)
    found = collected(stream.key_by(first).process(_Timers()))
    assert found == [("a", 10, 10, 24), ("b", 20, 20, 24), ("a", 30, 30, MAX_TIMESTAMP), ("a", 40, 40, MAX_TIMESTAMP)]


def test_a_timer_that_is_behind_the_watermark_fires_when_it_moves_next():
    stream = timed(environment().from_collection([("a", 50, []), ("a", 50, [10]), ("a", 60, [])]), delay=0)
    assert collected(stream.key_by(first).process(_Timers())) == [("a", 10, 10, 59)]


def test_a_timer_that_was_deleted_does_not_fire():
    stream = timed(environment().from_collection([("a", 0, [10, 20]), ("a", 1, [], [10]), ("b", 2, [10])]), delay=0)
    assert collected(stream.key_by(first).process(_Timers())) == [("b", 10, 10, MAX_TIMESTAMP), ("a", 20, 20, MAX_TIMESTAMP)]


def test_only_a_timer_that_is_there_can_be_deleted():
    elements = [("a", 0, [], [10]), ("a", 1, [10]), ("a", 2, [20], [20, 30]), ("a", 3, [30])]
    found = collected(timed(environment().from_collection(elements), delay=0).key_by(first).process(_Timers()))
    assert [each[1] for each in found] == [10, 30]


def test_timers_that_a_timer_registers_fire_as_well():
    class Chain(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

        def on_timer(self, timestamp, ctx):
            if timestamp < 3:
                ctx.timer_service().register_event_time_timer(timestamp + 1)
            yield timestamp

    assert collected(environment().from_collection([0]).key_by(lambda x: x).process(Chain())) == [1, 2, 3]


def test_the_watermark_of_a_union_is_the_smallest_of_its_inputs():
    env = environment()
    ahead = timed(env.from_collection([("a", 100)]), delay=0)
    behind = timed(env.from_collection([("b", 3), ("b", 4)]), delay=0)
    found = collected(behind.union(ahead).process(_Watermarks()))
    assert max(watermark for _, _, watermark in found) <= 3


def test_a_function_that_never_ends_is_named():
    def endless(value):
        while True:
            yield value

    configuration = Configuration().set_string("execution.call-time-limit-seconds", "0.05")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    with pytest.raises(FunctionTimeLimitError, match=r"'Flat Map' has given results for more than 0\.05 s"):
        collected(env.from_collection([1]).flat_map(endless).filter(lambda x: False))


def test_timers_that_go_on_after_the_end_of_the_input_are_named():
    class Heartbeat(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value)

        def on_timer(self, timestamp, ctx):
            ctx.timer_service().register_event_time_timer(timestamp + 1)
            yield timestamp

    configuration = Configuration().set_string("execution.call-time-limit-seconds", "0.05")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    with pytest.raises(FunctionTimeLimitError, match="'Keyed Process' register later ones for ever"):
        collected(env.from_collection([1]).key_by(lambda x: x).process(Heartbeat()).filter(lambda x: False))
