"""Joins of two streams, compared with what plain loops over all elements give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    StreamProgramError,
    Time,
)
from airflow_pipelines.datastream.common import Duration
from airflow_pipelines.datastream.window import CountTrigger, EventTimeSessionWindows, GlobalWindows, TumblingEventTimeWindows
from tests.datastream.programs import collected, environment, first, timed

ELEMENTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-30, 30)), max_size=12)


class Pair(JoinFunction):
    def join(self, first, second):
        return first, second


class Twice(FlatJoinFunction):
    def join(self, first, second):
        if first[1] != 0:
            yield first, second
            yield second, first


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield sorted(first), sorted(second)


class At(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


class Near(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        assert (ctx.get_left_timestamp(), ctx.get_right_timestamp()) == (left[1], right[1])
        assert ctx.get_timestamp() == max(left[1], right[1])
        yield left, right


def by_window(left, right, function, size=10):
    env = environment()
    streams = [timed(env.from_collection(elements)) for elements in (left, right)]
    kind = streams[0].co_group if isinstance(function, CoGroupFunction) else streams[0].join
    windows = kind(streams[1]).where(first).equal_to(lambda value: value[0]).window(TumblingEventTimeWindows.of(size))
    return windows.apply(function)


def _windows(elements, size=10):
    found = {}
    for key, at in elements:
        found.setdefault((key, at // size), []).append((key, at))
    return found


@settings(max_examples=40, deadline=None)
@given(ELEMENTS, ELEMENTS)
def test_a_join_gives_each_pair_of_a_window_once(left, right):
    # Elements of all times come before the watermark of the end.
    ones, others = _windows(left), _windows(right)
    pairs = [(one, other) for window in ones for one in ones[window] for other in others.get(window, ())]
    assert sorted(collected(by_window(left, right, Pair()))) == sorted(pairs)
    assert sorted(collected(by_window(left, right, lambda one, other: (one, other)))) == sorted(pairs)
    both = [result for one, other in pairs if one[1] != 0 for result in ((one, other), (other, one))]
    assert sorted(collected(by_window(left, right, Twice()))) == sorted(both)


@settings(max_examples=40, deadline=None)
@given(ELEMENTS, ELEMENTS)
def test_a_co_group_has_elements_without_partners_too(left, right):
    ones, others = _windows(left), _windows(right)
    expected = [(sorted(ones.get(window, ())), sorted(others.get(window, ()))) for window in {*ones, *others}]
    assert sorted(collected(by_window(left, right, Groups()))) == sorted(expected)


def test_windows_of_joins_have_triggers_and_late_elements_and_may_merge():
    env = environment()
    one, other = env.from_collection([1, 2, 3]), env.from_collection([10, 20])
    grouped = one.co_group(other).where(lambda _: 0).equal_to(lambda _: 0).window(GlobalWindows.create())
    assert len(collected(grouped.trigger(CountTrigger.of(2)).apply(Groups()))) == 2
    env = environment()
    one, other = timed(env.from_collection([("a", 0), ("a", 9)])), timed(env.from_collection([("a", 4)]))
    joined = one.join(other).where(first).equal_to(first).window(EventTimeSessionWindows.with_gap(6)).allowed_lateness(5)
    assert sorted(collected(joined.apply(Pair()))) == [(("a", 0), ("a", 4)), (("a", 9), ("a", 4))]


def test_keys_are_needed_and_functions_of_the_right_kind():
    env = environment()
    one, other = env.from_collection([1]), env.from_collection([1])
    windows = TumblingEventTimeWindows.of(10)
    with pytest.raises(StreamProgramError, match=r"window\(\) needs keys"):
        one.join(other).where(first).window(windows)
    with pytest.raises(StreamProgramError, match=r"equal_to\(\) sets the key of the second stream"):
        one.join(other).equal_to(first)
    keyed = one.join(other).where(first).equal_to(first).window(windows)
    with pytest.raises(StreamProgramError, match="needs a JoinFunction here"):
        keyed.apply(Groups())
    with pytest.raises(StreamProgramError, match="needs a CoGroupFunction here"):
        one.co_group(other).where(first).equal_to(first).window(windows).apply(lambda a, b: a)
    with pytest.raises(StreamProgramError, match="two environments"):
        one.join(environment().from_collection([1]))


def near(left, right, lower, upper, delay=None):
    env = environment()
    streams = [timed(env.from_collection(elements), delay=delay).key_by(first) for elements in (left, right)]
    return streams[0].interval_join(streams[1]).between(Time.milliseconds(lower), Duration.of_millis(upper))


@settings(max_examples=80, deadline=None)
@given(ELEMENTS, ELEMENTS, st.integers(-15, 15), st.integers(0, 15), st.booleans(), st.booleans())
def test_an_interval_join_gives_each_pair_whose_times_are_near(left, right, lower, width, without_lower, without_upper):
    left, right, upper = sorted(left, key=lambda e: e[1]), sorted(right, key=lambda e: e[1]), lower + width
    joined = near(left, right, lower, upper, delay=100)
    if without_lower and width > 1:
        joined, lower = joined.lower_bound_exclusive(), lower + 1
    if without_upper and width > 1:
        joined, upper = joined.upper_bound_exclusive(), upper - 1
    pairs = [(one, other) for one in left for other in right if one[0] == other[0] and lower <= other[1] - one[1] <= upper]
    expected = sorted(((one, other), max(one[1], other[1])) for one, other in pairs)
    assert sorted(collected(joined.process(Near()).process(At()))) == expected


@settings(max_examples=40, deadline=None)
@given(ELEMENTS, ELEMENTS, st.integers(-15, 15), st.integers(0, 15))
def test_an_interval_join_forgets_no_element_too_early(left, right, lower, width):
    # The watermark follows each element, so that all are forgotten as early as they may be.
    left, right = sorted(left, key=lambda e: e[1]), sorted(right, key=lambda e: e[1])
    pairs = [(one, other) for one in left for other in right if one[0] == other[0] and lower <= other[1] - one[1] <= lower + width]
    assert sorted(collected(near(left, right, lower, lower + width, delay=0).process(Near()))) == sorted(pairs)


@pytest.mark.parametrize("late_side", ["left", "right"])
def test_late_elements_are_dropped_or_go_to_a_side_output(late_side):
    late = OutputTag("late")

    def joined():
        env = environment()
        # The elements of the stream that is made first come first, so that only the other has late ones.
        early, later = (
            timed(env.from_collection(elements), delay=0).key_by(first) for elements in ([("a", 50)], [("a", 50), ("a", 20)])
        )
        left, right = (later, early) if late_side == "left" else (early, later)
        return left.interval_join(right).between(Time.milliseconds(-100), Time.milliseconds(100))

    assert collected(joined().process(Near())) == [(("a", 50), ("a", 50))]
    with_side = getattr(joined(), f"side_output_{late_side}_late_data")(late)
    assert collected(with_side.process(Near()).get_side_output(late)) == [("a", 20)]


def test_what_cannot_be_joined_by_time_is_refused():
    env = environment()
    keyed = timed(env.from_collection([("a", 1)])).key_by(first)
    with pytest.raises(StreamProgramError, match="needs a stream with keys"):
        keyed.interval_join(env.from_collection([("a", 1)]))
    with pytest.raises(StreamProgramError, match="the lower bound is 2 ms and the upper one 1 ms"):
        keyed.interval_join(keyed).between(Time.milliseconds(2), Time.milliseconds(1)).process(Near())
    untimed = env.from_collection([("a", 1)]).key_by(first)
    with pytest.raises(StreamProgramError, match="assign_timestamps_and_watermarks"):
        collected(untimed.interval_join(untimed).between(Time.milliseconds(0), Time.milliseconds(1)).process(Near()))
