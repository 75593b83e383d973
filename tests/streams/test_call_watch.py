"""Calls that compute for ever are ended, and calls that wait for long are told of."""

from __future__ import annotations

import cProfile
import logging
import threading
import time

import pytest

from airflow_pipelines.datastream import Configuration, StreamExecutionEnvironment
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.streams.errors import FunctionTimeLimitError
from airflow_pipelines.streams.function_source import SourceFunction
from tests.datastream.programs import collected


def environment(seconds=0.2):
    configuration = Configuration()
    configuration.set_float("execution.call-time-limit-seconds", seconds)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def spin(number):
    while number == 3:
        try:
            sum(range(100))
        except Exception:  # noqa: BLE001 (what is tried: it must not keep the loop running)
            continue
    return number


def test_a_loop_without_end_is_ended_with_its_place_and_element():
    stream = environment().from_collection([1, 2, 3, 4]).map(spin).name("spinning")
    with pytest.raises(
        FunctionTimeLimitError, match=r"One call of 'spinning' .* 0.2 s, in spin\(\) of .*test_call_watch.py"
    ) as raised:
        collected(stream)
    assert raised.value.__notes__ == ["in operator 'spinning', element: 3"]
    assert [entry.name for entry in raised.traceback if "airflow_pipelines/streams" in str(entry.path)] == []
    assert raised.traceback[-1].name == "spin"


def test_also_in_another_thread():
    env = environment()
    env.from_collection([3]).flat_map(spin).print()
    with pytest.raises(FunctionTimeLimitError, match="One call of 'Flat Map'"):
        env.execute_async().get_job_execution_result().result(60)


def test_also_in_a_timer():
    class Timer(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value)

        def on_timer(self, timestamp, ctx):
            spin(timestamp)

    with pytest.raises(FunctionTimeLimitError, match="One call of 'Keyed Process'"):
        collected(environment().from_collection([3]).key_by(lambda number: number).process(Timer()))


@pytest.mark.rest
def test_many_short_calls_may_take_longer_than_the_limit():
    def compute(number):
        end = time.thread_time() + 0.04
        while time.thread_time() < end:
            pass
        return number

    assert collected(environment().from_collection(range(15)).map(compute)) == list(range(15))


def test_a_call_that_waits_goes_on_and_is_told_of_once(caplog):
    def wait(number):
        time.sleep(0.8)
        return number

    with caplog.at_level(logging.WARNING):
        assert collected(environment().from_collection([1]).map(wait)) == [1]
    (said,) = caplog.messages
    assert said.startswith("One call of 'Map' has gone on for 0 s, and the program waits for it: it is in wait() of ")


@pytest.mark.rest
def test_sources_may_take_their_time(caplog):
    class Slow(SourceFunction):
        is_bounded = True

        def run(self, ctx):
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                pass
            time.sleep(0.5)
            yield 1

    assert collected(environment().add_source(Slow())) == [1]
    assert caplog.messages == []


def test_the_watcher_ends_with_the_program():
    assert collected(environment().from_collection([1])) == [1]
    deadline = time.monotonic() + 10
    while any(thread.name == "stream-calls" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "a thread is left"
        time.sleep(0.01)


@pytest.mark.timeout(60)
def test_a_program_can_be_profiled():
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        assert collected(environment().from_collection([1, 2]).map(spin)) == [1, 2]
    finally:
        profiler.disable()
