"""Asynchronous requests about elements: how many at a time, in which order, how long, and how often."""

import asyncio
import threading

import pytest

from airflow_pipelines.datastream import AsyncDataStream, AsyncFunction, OutputTag, StreamProgramError, Time
from airflow_pipelines.datastream.async_retry_strategies import (
    ExponentialBackoffDelayRetryStrategyBuilder,
    FixedDelayRetryStrategyBuilder,
    empty_result_predicate,
    has_exception_predicate,
)
from airflow_pipelines.datastream.common import Duration
from airflow_pipelines.datastream.functions import KeyedProcessFunction, MapFunction
from airflow_pipelines.streams.functions import Function
from tests.datastream.programs import collected, environment, timed

LONG = Time.seconds(60)


class Waits(AsyncFunction[int, int]):
    """Answers in the order in which a test lets it: each element waits for the one after it."""

    most = running = 0

    def open(self, runtime_context):
        self.answered = {}

    async def async_invoke(self, value):
        Waits.running += 1
        Waits.most = max(Waits.most, Waits.running)
        try:
            own = self.answered.setdefault(value, asyncio.Event())
            if value % 4 != 3:
                await self.answered.setdefault(value + 1, asyncio.Event()).wait()
            own.set()
        finally:
            Waits.running -= 1
        return [value]


@pytest.fixture(autouse=True)
def _afresh():
    Waits.most = Waits.running = 0


def test_results_come_in_the_order_of_answers_or_of_elements():
    elements = list(range(8))
    unordered = AsyncDataStream.unordered_wait(environment().from_collection(elements), Waits(), LONG)
    assert collected(unordered) == [3, 7, 2, 6, 1, 5, 0, 4]
    ordered = AsyncDataStream.ordered_wait(environment().from_collection(elements), Waits(), LONG)
    assert collected(ordered) == elements


def test_no_more_requests_run_at_the_same_time_than_the_capacity():
    stream = environment().from_collection(list(range(400)))
    assert collected(AsyncDataStream.ordered_wait(stream, Waits(), LONG, capacity=4)) == list(range(400))
    assert Waits.most == 4


def test_results_before_a_watermark_come_before_it():
    class Late(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value[0], ctx.timer_service().current_watermark()

    elements = [("a", 10), ("b", 20), ("c", 30)]

    class Echo(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.sleep(0)
            return [value]

    asked = AsyncDataStream.unordered_wait(timed(environment().from_collection(elements)), Echo(), LONG)
    plain = timed(environment().from_collection(elements))
    expected = collected(plain.key_by(lambda value: value[0]).process(Late()))
    assert collected(asked.key_by(lambda value: value[0]).process(Late())) == expected


def test_any_number_of_results_and_side_outputs():
    tag = OutputTag("odd")

    class Split(AsyncFunction[int, int]):
        async def async_invoke(self, value):
            if value == 0:
                return None
            return (number if value % 2 == 0 else (tag, number) for number in range(value))

    env = environment()
    split = AsyncDataStream.ordered_wait(env.from_collection([0, 1, 2, 3]), Split(), LONG)
    assert collected(split) == [0, 1]
    env = environment()
    split = AsyncDataStream.ordered_wait(env.from_collection([0, 1, 2, 3]), Split(), LONG)
    assert collected(split.get_side_output(tag)) == [0, 0, 1, 2]


class Never(AsyncFunction[int, str]):
    async def async_invoke(self, value):
        if value == 2:
            await asyncio.Event().wait()
        return [str(value)]


def test_an_element_without_an_answer_in_time_is_an_error_with_the_element_or_what_the_function_says():
    stream = AsyncDataStream.ordered_wait(environment().from_collection([1, 2, 3]), Never(), Time.milliseconds(20))
    with pytest.raises(TimeoutError, match="no answer within the time limit") as late:
        collected(stream)
    assert "in operator 'Async Wait', element: 2" in late.value.__notes__

    class WithDefault(Never):
        def timeout(self, value):
            return [f"{value}?"]

    stream = AsyncDataStream.ordered_wait(environment().from_collection([1, 2, 3]), WithDefault(), Duration.of_millis(20))
    assert collected(stream) == ["1", "2?", "3"]


def test_a_time_out_of_the_function_itself_is_an_error_like_any_other():
    class Own(AsyncFunction[int, int]):
        async def async_invoke(self, value):
            raise TimeoutError("of the client")

        def timeout(self, value):
            raise AssertionError("the limit has not passed")

    with pytest.raises(TimeoutError, match="of the client"):
        collected(AsyncDataStream.ordered_wait(environment().from_collection([1]), Own(), LONG))


class Flaky(AsyncFunction[str, str]):
    """Fails, or gives nothing, as often as the element says."""

    def open(self, runtime_context):
        self.asked = {}

    async def async_invoke(self, value):
        kind, times = value.split()
        self.asked[value] = self.asked.get(value, 0) + 1
        if self.asked[value] > int(times):
            return [f"{value}: {self.asked[value]}"]
        if kind == "fails":
            raise ConnectionError("away")
        return []


def test_requests_are_repeated_as_the_strategy_says():
    elements = ["fails 0", "fails 2", "empty 2", "empty 3"]
    both = FixedDelayRetryStrategyBuilder(2, 1).if_exception(has_exception_predicate).if_result(empty_result_predicate).build()
    stream = environment().from_collection(elements)
    asked = AsyncDataStream.ordered_wait_with_retry(stream, Flaky(), LONG, both)
    # The last attempt counts, whatever its results are.
    assert collected(asked) == ["fails 0: 1", "fails 2: 3", "empty 2: 3"]
    stream = environment().from_collection(["fails 3"])
    with pytest.raises(ConnectionError, match="away"):
        collected(AsyncDataStream.unordered_wait_with_retry(stream, Flaky(), LONG, both))
    others = FixedDelayRetryStrategyBuilder(2, 1).if_exception(lambda error: isinstance(error, ValueError)).build()
    stream = environment().from_collection(["fails 1"])
    with pytest.raises(ConnectionError, match="away"):
        collected(AsyncDataStream.unordered_wait_with_retry(stream, Flaky(), LONG, others))


def test_all_attempts_together_have_the_time_limit():
    growing = ExponentialBackoffDelayRetryStrategyBuilder(1000, 1, 5, 2).if_exception(has_exception_predicate).build()
    stream = environment().from_collection(["fails 1000"])
    with pytest.raises(TimeoutError):
        collected(AsyncDataStream.unordered_wait_with_retry(stream, Flaky(), Time.milliseconds(50), growing))


@pytest.mark.parametrize(("ends", "says"), [("cancelled", "was cancelled from within"), ("exit", "raised SystemExit")])
def test_a_request_that_ends_without_an_error_of_its_own_loses_no_element(ends, says):
    class Ends(AsyncFunction[int, int]):
        async def async_invoke(self, value):
            if value == 2 and ends == "exit":
                raise SystemExit(3)
            if value == 2:
                other = asyncio.ensure_future(asyncio.sleep(60))
                other.cancel()
                await other
            return [value]

    with pytest.raises(StreamProgramError, match=says) as failed:
        collected(AsyncDataStream.ordered_wait(environment().from_collection([1, 2, 3]), Ends(), LONG))
    assert "in operator 'Async Wait', element: 2" in failed.value.__notes__


def test_the_wait_before_an_attempt_stays_at_its_longest():
    growing = ExponentialBackoffDelayRetryStrategyBuilder(10_000, 1, 5_000, 2.0).build()
    assert growing.get_backoff_time_millis(5_000) == 5_000


def test_a_failure_ends_the_other_requests():
    class Fails(AsyncFunction[int, int]):
        cancelled = 0

        async def async_invoke(self, value):
            if value == 3:
                raise ValueError("no such element")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                Fails.cancelled += 1
                raise

    with pytest.raises(ValueError, match="no such element") as failed:
        collected(AsyncDataStream.ordered_wait(environment().from_collection([1, 2, 3]), Fails(), LONG))
    assert "in operator 'Async Wait', element: 3" in failed.value.__notes__
    assert Fails.cancelled == 2


def test_what_a_request_leaves_behind_holds_the_end_up_for_a_while_only(monkeypatch, caplog):
    monkeypatch.setattr("airflow_pipelines.streams.operators.async_wait._CLOSE_S", 0.05)
    released = threading.Event()

    class Stubborn(AsyncFunction[int, int]):
        async def async_invoke(self, value):
            self.left = asyncio.get_running_loop().create_task(self.ignore_the_end())
            await asyncio.sleep(0.01)
            return [value]

        async def ignore_the_end(self):
            while not released.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue

    try:
        assert collected(AsyncDataStream.ordered_wait(environment().from_collection([1]), Stubborn(), LONG)) == [1]
        assert "has not ended 0.05 s after it was cancelled" in caplog.text
    finally:
        released.set()


def loops():
    return sum(thread.name == "async-requests" for thread in threading.enumerate())


def test_a_client_is_opened_and_closed_in_the_loop_of_its_requests():
    calls = []

    class Client(AsyncFunction[int, int]):
        async def open(self, runtime_context):
            calls.append(("open", asyncio.get_running_loop(), runtime_context.get_index_of_this_subtask()))

        async def async_invoke(self, value):
            calls.append(("ask", asyncio.get_running_loop(), value))
            return [value]

        async def close(self):
            calls.append(("close", asyncio.get_running_loop(), None))

        def __deepcopy__(self, memo):
            return self

    before = loops()
    assert collected(AsyncDataStream.ordered_wait(environment().from_collection([1, 2]), Client(), LONG)) == [1, 2]
    assert [(name, value) for name, _, value in calls] == [("open", 0), ("ask", 1), ("ask", 2), ("close", None)]
    assert len({loop for _, loop, _ in calls}) == 1
    assert loops() == before


def test_a_program_may_run_within_a_running_loop():
    async def in_a_notebook():
        stream = environment().from_collection([1, 2, 3])
        return collected(AsyncDataStream.ordered_wait(stream, Echo(), LONG))

    class Echo(AsyncFunction[int, int]):
        async def async_invoke(self, value):
            await asyncio.sleep(0)
            return [value]

    assert asyncio.run(in_a_notebook()) == [1, 2, 3]


def test_what_is_no_list_of_results_is_refused():
    class One(AsyncFunction[int, int]):
        async def async_invoke(self, value):
            return value

    with pytest.raises(StreamProgramError, match=r"async_invoke\(\) returned 1. It must return a list"):
        collected(AsyncDataStream.ordered_wait(environment().from_collection([1]), One(), LONG))


@pytest.mark.parametrize("method", ["map", "flat_map", "filter", "key_by"])
def test_asynchronous_functions_are_sent_to_where_they_belong(method):
    async def ask(value):
        return value

    with pytest.raises(StreamProgramError, match=rf"{method}\(\) was given .*, which is asynchronous.*AsyncDataStream"):
        getattr(environment().from_collection([1]), method)(ask)


def test_asynchronous_methods_of_functions_too():
    class Ask(MapFunction):
        async def map(self, value):
            return value

    class Process(KeyedProcessFunction):
        async def process_element(self, value, ctx):
            yield value

    stream = environment().from_collection([1])
    with pytest.raises(StreamProgramError, match=r"map\(\) was given .*, which is asynchronous"):
        stream.map(Ask())
    with pytest.raises(StreamProgramError, match=r"process\(\) was given .*, which is asynchronous"):
        stream.key_by(lambda value: value).process(Process())


def test_settings_that_make_no_sense_are_refused():
    stream = environment().from_collection([1])
    with pytest.raises(StreamProgramError, match="needs an AsyncFunction here"):
        AsyncDataStream.ordered_wait(stream, Function(), LONG)
    with pytest.raises(ValueError, match="capacity"):
        AsyncDataStream.ordered_wait(stream, Waits(), LONG, capacity=0)
    with pytest.raises(ValueError, match="timeout in ms"):
        AsyncDataStream.ordered_wait(stream, Waits(), Time.milliseconds(0))
    with pytest.raises(ValueError, match="multiplier"):
        ExponentialBackoffDelayRetryStrategyBuilder(1, 1, 1, 1.0)
