"""Thousands of random programs with windows and timers give the same results as a model in plain Python."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream import KeyedProcessFunction, OutputTag, ProcessWindowFunction
from airflow_pipelines.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.state import store
from tests.datastream.programs import IN_MEMORY, first, timed
from tests.datastream.test_any_cut import CUTS, Run
from tests.datastream.window_model import Sessions, Sliding, TimerModel, Tumbling, WindowModel, Windows, without_order_of_keys
from tests.tiers import examples

EXAMPLES = examples("WINDOW_EXAMPLES", 2000)
LATE = OutputTag("late")
NUMBERS = st.integers(0, 9)
ELEMENTS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 60), NUMBERS), max_size=30)
WINDOWS: st.SearchStrategy[Windows] = st.one_of(
    st.integers(1, 20).flatmap(lambda size: st.builds(Tumbling, st.just(size), st.integers(1 - size, size - 1))),
    st.integers(1, 20).flatmap(
        lambda slide: st.builds(Sliding, st.integers(1, 40), st.just(slide), st.integers(1 - slide, slide - 1))
    ),
    st.builds(Sessions, st.integers(1, 15), st.booleans()),
)
MEMORY = st.sampled_from([TaskSettings(), TaskSettings(hot_keys=1, scratch_folder=IN_MEMORY)])


def _assigner(windows: Windows) -> Any:
    if isinstance(windows, Tumbling):
        return TumblingEventTimeWindows.of(windows.size, windows.offset)
    if isinstance(windows, Sliding):
        return SlidingEventTimeWindows.of(windows.size, windows.slide, windows.offset)
    if windows.by_number:
        return EventTimeSessionWindows.with_dynamic_gap(lambda element: element[2] + 1)
    return EventTimeSessionWindows.with_gap(windows.gap)


class Contents(ProcessWindowFunction):
    """Each evaluation of a window: key, start and end, elements."""

    def process(self, key: str, context: Any, elements: Any) -> Any:
        window = context.window()
        yield key, (window.start, window.end), sorted(elements)


def _results(build: Any, elements: list[Any], cuts: list[int], memory: TaskSettings) -> list[Any]:
    with mock.patch.object(store, "_ROWS_AT_ONCE", 3):
        return Run(lambda env, source: build(env.from_collection(source)), (elements,), 1, settings=memory).to_the_end(cuts)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    elements=ELEMENTS, windows=WINDOWS, lateness=st.sampled_from([0, 0, 3, 20]), delay=st.integers(0, 15), cuts=CUTS, memory=MEMORY
)
def test_windows(elements: Any, windows: Windows, lateness: int, delay: int, cuts: list[int], memory: TaskSettings) -> None:
    expected = WindowModel(windows, lateness, delay).run(elements)

    def build(stream: Any) -> Any:
        windowed = timed(stream, delay=delay).key_by(first).window(_assigner(windows)).allowed_lateness(lateness)
        fired = windowed.side_output_late_data(LATE).process(Contents())
        return fired.map(lambda result: ("fired", result)).union(fired.get_side_output(LATE).map(lambda late: ("late", late)))

    results = _results(build, elements, cuts, memory)
    fired = [result for kind, result in results if kind == "fired"]
    expected_by_key = without_order_of_keys([(key, span, sorted(contents)) for key, span, contents in expected.fired])
    assert without_order_of_keys(fired) == expected_by_key
    assert sorted(result for kind, result in results if kind == "late") == sorted(expected.late)


class Alarms(KeyedProcessFunction):
    """Timers, with a state that shows which elements came before each."""

    def __init__(self, model: TimerModel) -> None:
        self.model = model

    def process_element(self, value: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        for at in self.model.after(value):
            timers.register_event_time_timer(at)
        for at in self.model.deleted(value):
            timers.delete_event_time_timer(at)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        later = self.model.follow(timestamp)
        if later is not None:
            ctx.timer_service().register_event_time_timer(later)
        yield ctx.get_current_key(), timestamp


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    elements=ELEMENTS,
    delay=st.integers(0, 15),
    offsets=st.lists(st.integers(-10, 40), max_size=3),
    dropped=st.integers(1, 5),
    step=st.integers(1, 30),
    cuts=CUTS,
    memory=MEMORY,
)
def test_timers(
    elements: Any, delay: int, offsets: list[int], dropped: int, step: int, cuts: list[int], memory: TaskSettings
) -> None:
    model = TimerModel(
        delay,
        after=lambda element: [element[1] + offset for offset in offsets] + [element[1] - element[1] % 10 + 50],
        deleted=lambda element: [element[1] + offset for offset in offsets[:1]] if element[2] % dropped == 0 else [],
        follow=lambda at: at + step if at % 3 == 0 and at < 90 else None,
    )
    expected = model.run(elements)
    results = _results(lambda stream: timed(stream, delay=delay).key_by(first).process(Alarms(model)), elements, cuts, memory)
    assert without_order_of_keys(results) == without_order_of_keys(expected)


def test_the_model_knows_the_textbook_case() -> None:
    """Elements 0, 8, 4, 6 with a watermark after each: tumbling windows of 5 have 0, and then 4 is late."""
    elements = [("a", 0, 1), ("a", 8, 2), ("a", 4, 3), ("a", 6, 4)]
    model = WindowModel(Tumbling(5, 0), 0, 0).run(elements)
    assert model.fired == [("a", (0, 5), [("a", 0, 1)]), ("a", (5, 10), [("a", 8, 2), ("a", 6, 4)])]
    assert model.late == [("a", 4, 3)]
