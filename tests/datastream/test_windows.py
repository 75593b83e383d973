"""Windows: assigners, triggers, late elements, sessions."""

from typing import ClassVar

import pytest

from airflow_pipelines.datastream.common import Time
from airflow_pipelines.streams.elements import MAX_TIMESTAMP, OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.function_source import SourceFunction
from airflow_pipelines.streams.functions import AggregateFunction
from airflow_pipelines.streams.process_functions import ProcessFunction
from airflow_pipelines.streams.state.descriptors import ValueStateDescriptor
from airflow_pipelines.streams.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from airflow_pipelines.streams.windows.assigners import WindowAssigner
from airflow_pipelines.streams.windows.count_windows import CountSlidingWindowAssigner, GlobalWindows
from airflow_pipelines.streams.windows.time_windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from airflow_pipelines.streams.windows.trigger import Trigger, TriggerResult
from airflow_pipelines.streams.windows.triggers import ContinuousEventTimeTrigger, CountTrigger, EventTimeTrigger, PurgingTrigger
from airflow_pipelines.streams.windows.window import CountWindow, GlobalWindow, TimeWindow
from tests.datastream.programs import Contents, collected, environment, first, timed


def keyed(elements, delay=0):
    return timed(environment().from_collection(elements), delay=delay).key_by(first)


def spans(found):
    return [(key, window[0], window[1], [time for _, time in elements]) for key, window, elements in found]


# Type parameters as in published programs.
class Numbered(WindowAssigner[tuple, CountWindow]):
    def assign_windows(self, element, timestamp, context):
        return [CountWindow(element[1] // 10)]

    def get_default_trigger(self, env) -> Trigger[tuple, CountWindow]:
        return AtTwo()

    def is_event_time(self):
        return False


class AtTwo(Trigger[tuple, CountWindow]):
    def on_element(self, element, timestamp, window, ctx: Trigger.TriggerContext):
        number = ctx.get_partitioned_state(ValueStateDescriptor("number"))
        number.update((number.value() or 0) + 1)
        return TriggerResult.FIRE_AND_PURGE if number.value() == 2 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx: Trigger.OnMergeContext):
        raise AssertionError("these windows do not merge")

    def clear(self, window, ctx):
        ctx.get_partitioned_state(ValueStateDescriptor("number")).clear()


class Sums(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs):
        return [(key, window.id, sum(number for _, number in inputs))]


class Spans(ProcessWindowFunction[tuple, tuple, str, CountWindow]):
    def process(self, key: str, content: ProcessWindowFunction.Context[CountWindow], elements):
        yield key, content.window().id, len(list(elements))

    def clear(self, context: ProcessWindowFunction.Context[CountWindow]) -> None:
        pass


class AllSums(AllWindowFunction[tuple, int, CountWindow]):
    def apply(self, window: CountWindow, inputs):
        return [sum(number for _, number in inputs)]


class AllSpans(ProcessAllWindowFunction[tuple, int, CountWindow]):
    def process(self, context: ProcessAllWindowFunction.Context[CountWindow], elements):
        yield len(list(elements))


def test_tumbling_windows_fire_when_the_watermark_passes_their_end():
    found = collected(
        keyed([("a", 0), ("a", 9), ("b", 3), ("a", 10), ("a", 25)])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .process(Contents())
    )
    assert spans(found) == [("a", 0, 10, [0, 9]), ("b", 0, 10, [3]), ("a", 10, 20, [10]), ("a", 20, 30, [25])]


def test_classes_of_windows_take_type_parameters_as_published_programs_give_them():
    elements = [("a", 1), ("b", 12), ("a", 2), ("b", 13), ("b", 21)]
    stream = environment().from_collection(elements)
    windows = stream.key_by(first).window(Numbered())
    assert collected(windows.apply(Sums())) == [("a", 0, 3), ("b", 1, 25)]
    stream = environment().from_collection(elements)
    assert collected(stream.key_by(first).window(Numbered()).process(Spans())) == [("a", 0, 2), ("b", 1, 2)]
    assert collected(environment().from_collection(elements).window_all(Numbered()).apply(AllSums())) == [3, 25]
    assert collected(environment().from_collection(elements).window_all(Numbered()).process(AllSpans())) == [2, 2]


def test_windows_may_be_moved_and_start_below_zero():
    found = collected(keyed([("a", 1), ("a", 5)]).window(TumblingEventTimeWindows.of(5, 2)).process(Contents()))
    assert spans(found) == [("a", -3, 2, [1]), ("a", 2, 7, [5])]
    found = collected(keyed([("a", 1)]).window(SlidingEventTimeWindows.of(5, 2)).process(Contents()))
    assert sorted(spans(found)) == [("a", -2, 3, [1]), ("a", 0, 5, [1])]


def test_sessions_merge_when_they_touch():
    found = collected(
        keyed([("a", 0), ("a", 8), ("a", 4), ("b", 4), ("b", 9), ("b", 15)], delay=None)
        .window(EventTimeSessionWindows.with_gap(5))
        .process(Contents())
    )
    assert sorted(spans(found)) == [("a", 0, 13, [0, 8, 4]), ("b", 4, 14, [4, 9]), ("b", 15, 20, [15])]


def test_of_the_times_0_8_4_6_the_element_4_is_late_when_each_element_has_a_watermark():
    found = collected(
        keyed([("a", 0), ("a", 8), ("a", 4), ("a", 6)]).window(EventTimeSessionWindows.with_gap(3)).process(Contents())
    )
    assert spans(found) == [("a", 0, 3, [0]), ("a", 6, 11, [8, 6])]


def test_a_session_may_take_its_gap_from_the_element_and_a_gap_of_nothing_is_refused():
    elements = [("a", 0, 2), ("a", 2, 10), ("a", 12, 1)]
    stream = timed(environment().from_collection(elements)).key_by(first)
    found = collected(stream.window(EventTimeSessionWindows.with_dynamic_gap(lambda v: v[2])).process(Contents()))
    assert [window for _, window, _ in found] == [TimeWindow(0, 13)]
    with pytest.raises(StreamProgramError, match="gap of a session is 0 ms"):
        collected(stream.window(EventTimeSessionWindows.with_dynamic_gap(lambda v: 0)).process(Contents()))


class _Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class _WithKey(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.start, list(inputs))]


def test_windows_combine_their_elements_as_they_come():
    stream = keyed([("a", 1), ("a", 2), ("a", 11)]).window(TumblingEventTimeWindows.of(10))
    assert collected(stream.reduce(lambda a, b: (a[0], a[1] + b[1]))) == [("a", 3), ("a", 11)]
    assert collected(stream.reduce(lambda a, b: (a[0], a[1] + b[1]), _WithKey())) == [("a", 0, [("a", 3)]), ("a", 10, [("a", 11)])]
    assert collected(stream.aggregate(_Sum())) == [3, 11]
    assert collected(stream.aggregate(_Sum(), _WithKey())) == [("a", 0, [3]), ("a", 10, [11])]
    assert collected(stream.apply(_WithKey())) == [("a", 0, [("a", 1), ("a", 2)]), ("a", 10, [("a", 11)])]
    sessions = keyed([("a", 1), ("a", 5), ("a", 3)], delay=9).window(EventTimeSessionWindows.with_gap(2))
    assert collected(sessions.aggregate(_Sum())) == [9]
    assert collected(sessions.reduce(lambda a, b: (a[0], a[1] + b[1]))) == [("a", 9)]


def test_a_late_element_that_is_allowed_fires_again_and_one_behind_that_goes_to_the_side_output():
    late = OutputTag("late")
    elements = [("a", 1), ("a", 12), ("a", 2), ("a", 30), ("a", 3)]
    windows = keyed(elements).window(TumblingEventTimeWindows.of(10)).allowed_lateness(5).side_output_late_data(late)
    found = windows.process(Contents())
    assert spans(collected(found)) == [("a", 0, 10, [1]), ("a", 0, 10, [1, 2]), ("a", 10, 20, [12]), ("a", 30, 40, [30])]
    assert collected(found.get_side_output(late)) == [("a", 3)]


def test_without_lateness_late_elements_are_dropped_and_counted():
    env = environment()
    timed(env.from_collection([("a", 1), ("a", 12), ("a", 2)]), delay=0).key_by(first).window(
        TumblingEventTimeWindows.of(10)
    ).process(Contents()).print()
    result = env.execute()
    assert [value for value in result.get_all_accumulator_results().values()] == [{"numLateRecordsDropped": 1}]


def test_a_result_has_the_last_timestamp_of_its_window():
    class Timestamp(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp()

    stream = keyed([("a", 1), ("a", 12)]).window(TumblingEventTimeWindows.of(10))
    assert collected(stream.process(Contents()).process(Timestamp())) == [9, 19]
    assert collected(stream.trigger(CountTrigger.of(1)).process(Contents()).process(Timestamp())) == [9, 19]


def test_a_trigger_that_fires_keeps_the_contents_and_a_purging_one_drops_them():
    elements = [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("a", 5)]
    windows = keyed(elements, delay=None).window(GlobalWindows.create())
    assert [len(each[2]) for each in collected(windows.trigger(CountTrigger.of(2)).process(Contents()))] == [2, 4]
    assert [len(each[2]) for each in collected(windows.trigger(PurgingTrigger.of(CountTrigger.of(2))).process(Contents()))] == [
        2,
        2,
    ]
    assert collected(keyed(elements).window(GlobalWindows.create()).process(Contents())) == []
    purged = (
        keyed([("a", 1), ("a", 20)]).window(TumblingEventTimeWindows.of(10)).trigger(PurgingTrigger.of(EventTimeTrigger.create()))
    )
    assert spans(collected(purged.process(Contents()))) == [("a", 0, 10, [1]), ("a", 20, 30, [20])]


def test_a_continuous_trigger_fires_in_intervals_and_at_the_end():
    windows = keyed([("a", 1), ("a", 4), ("a", 7), ("a", 20)]).window(TumblingEventTimeWindows.of(10))
    found = spans(collected(windows.trigger(ContinuousEventTimeTrigger.of(3)).process(Contents())))
    assert [each[3] for each in found if each[1] == 0] == [[1, 4], [1, 4, 7], [1, 4, 7]]


def test_count_windows_fire_when_they_are_full_and_an_incomplete_one_never():
    stream = environment().from_collection([("a", n) for n in (1, 3, 5)]).key_by(first)
    total = lambda a, b: (a[0], a[1] + b[1])  # noqa: E731
    assert collected(stream.count_window(2).reduce(total)) == [("a", 4)]
    assert collected(stream.count_window(2, 1).reduce(total)) == [("a", 4), ("a", 8)]
    assert [each[1] for each in collected(stream.window(CountSlidingWindowAssigner.of(2, 1)).process(Contents()))] == [
        CountWindow(0),
        CountWindow(1),
    ]


def test_windows_over_a_stream_without_keys():
    class Everything(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().start, sorted(elements)

    class Applied(AllWindowFunction):
        def apply(self, window, inputs):
            yield window.end, len(list(inputs))

    env = environment(4)
    stream = timed(env.from_collection([("a", 1), ("b", 2), ("c", 15)]))
    assert collected(stream.window_all(TumblingEventTimeWindows.of(10)).process(Everything())) == [
        (0, [("a", 1), ("b", 2)]),
        (10, [("c", 15)]),
    ]
    assert collected(stream.window_all(TumblingEventTimeWindows.of(10)).apply(Applied())) == [(10, 2), (20, 1)]
    assert collected(stream.count_window_all(3).reduce(max)) == [("c", 15)]


def test_window_functions_have_state_of_the_window_and_of_the_key():
    class Stateful(ProcessWindowFunction):
        def process(self, key, context, elements):
            mine = context.window_state().get_state(ValueStateDescriptor("firings"))
            ours = context.global_state().get_state(ValueStateDescriptor("firings"))
            mine.update((mine.value() or 0) + 1)
            ours.update((ours.value() or 0) + 1)
            yield context.window().start, mine.value(), ours.value()

        def clear(self, context):
            context.window_state().get_state(ValueStateDescriptor("firings")).clear()

    windows = keyed([("a", 1), ("a", 12), ("a", 2), ("a", 40)]).window(TumblingEventTimeWindows.of(10)).allowed_lateness(5)
    assert collected(windows.process(Stateful())) == [(0, 1, 1), (0, 2, 2), (10, 1, 3), (40, 1, 4)]
    with pytest.raises(StreamProgramError, match="State of a window is not possible where windows merge"):
        collected(keyed([("a", 1)]).window(EventTimeSessionWindows.with_gap(2)).process(Stateful()))


def test_windows_that_cannot_work_are_refused_with_what_to_do():
    class Timeless(SourceFunction):
        def run(self, ctx):
            yield "a", 1

    stream = environment().add_source(Timeless()).key_by(first)
    with pytest.raises(StreamProgramError, match=r"without a timestamp.*assign_timestamps_and_watermarks") as refused:
        collected(stream.window(TumblingEventTimeWindows.of(10)).process(Contents()))
    assert "('a', 1)" in refused.value.__notes__[0]
    stream = environment().from_collection([("a", 1)]).key_by(first)
    with pytest.raises(StreamProgramError, match="can_merge"):
        stream.window(EventTimeSessionWindows.with_gap(1)).trigger(_CannotMerge())
    with pytest.raises(StreamProgramError, match="windows of event time"):
        stream.count_window(2).allowed_lateness(1).process(Contents())
    with pytest.raises(StreamProgramError, match="size must be more than 0"):
        TumblingEventTimeWindows.of(0)


class _CannotMerge(EventTimeTrigger):
    def can_merge(self):
        return False


def test_an_element_is_late_only_when_all_its_windows_are_over():
    late = OutputTag("late")
    windows = (
        keyed([("a", 3), ("a", 11), ("a", 7), ("a", 30), ("a", 12)])
        .window(SlidingEventTimeWindows.of(10, 5))
        .side_output_late_data(late)
    )
    found = windows.process(Contents())
    assert [each for each in spans(collected(found)) if 0 <= each[1] <= 10] == [
        ("a", 0, 10, [3]),
        ("a", 5, 15, [11, 7]),
        ("a", 10, 20, [11]),
    ]
    assert collected(found.get_side_output(late)) == [("a", 12)]


def test_a_window_whose_contents_were_purged_does_not_call_the_function():
    stream = keyed([("a", 1), ("a", 20)]).window(TumblingEventTimeWindows.of(10)).trigger(_PurgesAtOnce())
    assert collected(stream.process(Contents())) == []


class _PurgesAtOnce(EventTimeTrigger):
    def on_element(self, element, timestamp, window, ctx):
        super().on_element(element, timestamp, window, ctx)
        return TriggerResult.PURGE


def test_windows_end_with_the_last_moment_before_the_next_and_those_of_counts_never():
    assert TimeWindow(0, 10).max_timestamp() == 9
    assert CountWindow(3).max_timestamp() == GlobalWindow().max_timestamp() == MAX_TIMESTAMP
    stream = environment().from_collection([("a", n) for n in range(5)]).key_by(first)
    assert [each[1] for each in collected(stream.count_window(2).process(Contents()))] == [CountWindow(0), CountWindow(1)]


def test_a_lateness_beyond_the_end_of_time_keeps_windows_for_ever():
    windows = keyed([("a", 1), ("a", 500), ("a", 2), ("a", 3)]).window(TumblingEventTimeWindows.of(10))
    found = spans(collected(windows.allowed_lateness(2**63 - 1).process(Contents())))
    assert [each[3] for each in found if each[1] == 0] == [[1], [1, 2], [1, 2, 3]]


class _First(TumblingEventTimeWindows):
    """Puts all elements into the first window."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(0, 10)]


def test_an_element_that_is_not_behind_is_not_late_though_its_window_is_over():
    late = OutputTag("late")
    windows = keyed([("a", 1), ("a", 50), ("a", 60), ("a", 7)]).window(_First(10)).side_output_late_data(late)
    assert spans(collected(windows.process(Contents()))) == [("a", 0, 10, [1, 50])]
    assert collected(windows.process(Contents()).get_side_output(late)) == [("a", 7)]


class Noted:
    """Notes calls in one list, also those of the copies that run."""

    calls: ClassVar[list] = []

    def append(self, call):
        Noted.calls.append(call)


@pytest.fixture
def calls(monkeypatch):
    monkeypatch.setattr(Noted, "calls", [])
    return Noted.calls


class _Told(EventTimeTrigger):
    """Notes which windows it is told to clear and to merge."""

    def __init__(self):
        self.calls = Noted()

    def clear(self, window, ctx):
        self.calls.append(("trigger", window))
        super().clear(window, ctx)

    def on_merge(self, window, ctx):
        self.calls.append(("merge", window))
        super().on_merge(window, ctx)


class _Clearing(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield list(elements)

    def clear(self, context):
        Noted.calls.append(("function", context.window()))


def test_the_end_of_a_window_clears_its_trigger_and_calls_clear_once_after_the_time_for_late_elements(calls):
    windows = keyed([("a", 1), ("a", 12), ("a", 2), ("a", 30)]).window(TumblingEventTimeWindows.of(10)).trigger(_Told())
    found = collected(windows.allowed_lateness(5).process(_Clearing()))
    assert found == [[("a", 1)], [("a", 1), ("a", 2)], [("a", 12)], [("a", 30)]]
    assert calls == [(who, TimeWindow(start, start + 10)) for start in (0, 10, 30) for who in ("trigger", "function")]


def test_merging_tells_the_trigger_what_becomes_of_its_windows_and_clears_the_old_ones(calls):
    windows = keyed([("a", 0), ("a", 8), ("a", 4)], delay=100).window(EventTimeSessionWindows.with_gap(5)).trigger(_Told())
    assert collected(windows.process(Contents())) == [("a", TimeWindow(0, 13), [("a", 0), ("a", 8), ("a", 4)])]
    assert calls[0] == ("merge", TimeWindow(0, 13))
    assert sorted(calls[1:3]) == [("trigger", TimeWindow(0, 5)), ("trigger", TimeWindow(8, 13))]
    assert calls[3:] == [("trigger", TimeWindow(0, 13))]


def test_what_a_trigger_has_counted_is_added_up_when_windows_merge():
    windows = keyed([("a", 0), ("a", 8), ("a", 4), ("a", 5)], delay=100).window(EventTimeSessionWindows.with_gap(5))
    assert [len(each[2]) for each in collected(windows.trigger(CountTrigger.of(3)).process(Contents()))] == [3]


class _Shrinking(EventTimeSessionWindows):
    """Makes of windows that touch one that ends with the first of them."""

    def merge_windows(self, windows, callback):
        parts = sorted(windows)
        if len(parts) > 1:
            callback.merge(parts, TimeWindow(parts[0].start, parts[0].start + 1))


def test_windows_that_merge_into_the_past_are_refused():
    elements = [("a", 0), ("b", 3), ("a", 4)]
    windows = keyed(elements, delay=1).window(_Shrinking(lambda element: 5))
    with pytest.raises(StreamProgramError, match=r"_Shrinking.merge_windows\(\) made TimeWindow\(start=0, end=1\)") as refused:
        collected(windows.process(Contents()))
    assert refused.value.__notes__ == ["in operator 'Window Process', element: ('a', 4)"]
