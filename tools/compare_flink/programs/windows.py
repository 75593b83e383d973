"""Programs with windows of every kind, and the functions over them."""

from __future__ import annotations

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


def _keyed(api, env, given, delay=4):
    return api.timed(env.from_collection(given), delay=delay).key_by(lambda event: event[0])


def _contents(api):
    class Contents(api.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, context.window().end, list(elements), context.current_watermark()

    return Contents()


def _of_time(name, assigner, delay=4):
    @case(f"windows: {name}", inputs=events, order=Order.BY_KEY)
    def program(api, env, given):
        """Emit the contents of each window."""
        return _keyed(api, env, given, delay).window(assigner(api)).process(_contents(api))

    return program


_of_time("tumbling", lambda api: api.TumblingEventTimeWindows.of(api.Time.milliseconds(10)))
_of_time(
    "tumbling, with an offset", lambda api: api.TumblingEventTimeWindows.of(api.Time.milliseconds(10), api.Time.milliseconds(3))
)
_of_time("tumbling, elements out of order by nothing", lambda api: api.TumblingEventTimeWindows.of(api.Time.milliseconds(10)), 0)
_of_time("sliding", lambda api: api.SlidingEventTimeWindows.of(api.Time.milliseconds(10), api.Time.milliseconds(5)))
_of_time(
    "sliding, with an offset and a slide that does not divide the size",
    lambda api: api.SlidingEventTimeWindows.of(api.Time.milliseconds(10), api.Time.milliseconds(4), api.Time.milliseconds(1)),
)
_of_time("sliding, with gaps", lambda api: api.SlidingEventTimeWindows.of(api.Time.milliseconds(3), api.Time.milliseconds(5)))
_of_time("sessions", lambda api: api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(5)))
_of_time("sessions, long", lambda api: api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(12)), 15)


@case("windows: sessions with a gap of each element", inputs=events, order=Order.BY_KEY)
def dynamic(api, env, given):
    """Use gaps whose length is a number of the element."""

    class Gap(api.SessionWindowTimeGapExtractor):
        def extract(self, element):
            return element[2] + 1

    return _keyed(api, env, given).window(api.EventTimeSessionWindows.with_dynamic_gap(Gap())).process(_contents(api))


@case("windows: by count", inputs=events, order=Order.BY_KEY)
def by_count(api, env, given):
    """Emit full windows only."""
    stream = env.from_collection(given).key_by(lambda event: event[0])
    return stream.count_window(3).reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))


@case("windows: by count, sliding", inputs=events, order=Order.BY_KEY)
def by_count_sliding(api, env, given):
    """Emit full windows only."""
    stream = env.from_collection(given).key_by(lambda event: event[0])
    return stream.count_window(3, 2).reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))


@case("windows: by count, apply", inputs=events, order=Order.BY_KEY)
def by_count_apply(api, env, given):
    """Read the number of a count window."""

    class Sum(api.WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.id, sum(event[2] for event in inputs))]

    return env.from_collection(given).key_by(lambda event: event[0]).count_window(2).apply(Sum())


@case("windows: global, with a trigger that counts and purges", inputs=events, order=Order.BY_KEY)
def of_all_time(api, env, given):
    """Use the window without an end."""

    class Contents(api.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, list(elements)

    windows = env.from_collection(given).key_by(lambda event: event[0]).window(api.GlobalWindows.create())
    return windows.trigger(api.PurgingTrigger.of(api.CountTrigger.of(3))).process(Contents())


@case("windows: global, without a trigger, never fire", inputs=events)
def never(api, env, given):
    """Fire nothing, also at the end."""
    windows = _keyed(api, env, given).window(api.GlobalWindows.create())
    return windows.reduce(lambda a, b: b)


def _ten(api, env, given, delay=4):
    return _keyed(api, env, given, delay).window(api.TumblingEventTimeWindows.of(api.Time.milliseconds(10)))


def _add(a, b):
    return a[0], max(a[1], b[1]), a[2] + b[2]


@case("windows: reduce", inputs=events, order=Order.BY_KEY)
def reduce(api, env, given):
    """Reduce with a function."""
    return _ten(api, env, given).reduce(_add)


@case("windows: reduce with a function for the window", inputs=events, order=Order.BY_KEY)
def reduce_apply(api, env, given):
    """Pass one element to the window function."""

    class Around(api.WindowFunction):
        def apply(self, key, window, inputs):
            for value in inputs:
                yield key, window.start, window.end, window.max_timestamp(), value

    return _ten(api, env, given).reduce(_add, window_function=Around())


@case("windows: reduce with a function for window and context", inputs=events, order=Order.BY_KEY)
def reduce_process(api, env, given):
    """Pass one element to the window function."""
    return _ten(api, env, given).reduce(_add, window_function=_contents(api))


def _mean(api):
    class Mean(api.AggregateFunction):
        def create_accumulator(self):
            return 0, 0, ""

        def add(self, value, accumulator):
            return accumulator[0] + value[2], accumulator[1] + 1, value[0]

        def get_result(self, accumulator):
            return accumulator[2], accumulator[0] / accumulator[1]

        def merge(self, acc_a, acc_b):
            return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], acc_a[2] or acc_b[2]

    return Mean()


@case("windows: aggregate", inputs=events, order=Order.BY_KEY)
def aggregate(api, env, given):
    """Use an accumulator with another type."""
    return _ten(api, env, given).aggregate(_mean(api))


@case("windows: aggregate with a function for the window", inputs=events, order=Order.BY_KEY)
def aggregate_process(api, env, given):
    """Pass the result to the window function."""
    return _ten(api, env, given).aggregate(_mean(api), window_function=_contents(api))


@case("windows: aggregate over sessions that merge", inputs=events, order=Order.BY_KEY)
def aggregate_sessions(api, env, given):
    """Merge accumulators."""
    windows = _keyed(api, env, given, 15).window(api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(6)))
    return windows.aggregate(_mean(api), window_function=_contents(api))


@case("windows: reduce over sessions that merge", inputs=events, order=Order.BY_KEY)
def reduce_sessions(api, env, given):
    """Merge sessions by elements that fill a gap."""
    windows = _keyed(api, env, given, 15).window(api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(6)))
    return windows.reduce(_add)


@case("windows: apply", inputs=events, order=Order.BY_KEY)
def apply(api, env, given):
    """Emit all elements, in order of arrival."""

    class Apply(api.WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.start, [event[2] for event in inputs])]

    return _ten(api, env, given).apply(Apply())


@case("windows: process with state of the window and of the key", inputs=events, order=Order.BY_KEY)
def states(api, env, given):
    """Use state of a window, which ends with it."""

    class States(api.ProcessWindowFunction):
        def process(self, key, context, elements):
            window = context.window_state().get_state(api.ValueStateDescriptor("of window", api.Types.LONG()))
            everywhere = context.global_state().get_state(api.ValueStateDescriptor("of key", api.Types.LONG()))
            for state in (window, everywhere):
                state.update((state.value() or 0) + 1)
            yield key, context.window().start, window.value(), everywhere.value(), [event[2] for event in elements]

        def clear(self, context):
            context.window_state().get_state(api.ValueStateDescriptor("of window", api.Types.LONG())).clear()

    return _ten(api, env, given, 0).allowed_lateness(12).process(States())


@case(
    "windows: state of the window and of the key with one name",
    differs="they are two states here, and one in PyFlink",
)
def states_of_one_name(api, env, given):
    """Use the same descriptor for both states."""

    class States(api.ProcessWindowFunction):
        def process(self, key, context, elements):
            of = api.ValueStateDescriptor("calls", api.Types.LONG())
            states = context.window_state().get_state(of), context.global_state().get_state(of)
            for state in states:
                state.update((state.value() or 0) + 1)
            yield key, context.window().start, *(state.value() for state in states)

        def clear(self, context):
            pass

    return _ten(api, env, [("a", 1, 1), ("a", 12, 1), ("a", 30, 1)]).process(States())


@case("windows: late elements are dropped", inputs=events, order=Order.BY_KEY)
def late(api, env, given):
    """Drop late elements, with watermarks without delay."""
    return _ten(api, env, given, 0).process(_contents(api))


@case("windows: lateness that is allowed fires again", inputs=events, order=Order.BY_KEY)
def lateness(api, env, given):
    """Emit the contents again for each late element."""
    return _ten(api, env, given, 0).allowed_lateness(12).process(_contents(api))


@case("windows: sliding, with lateness that is allowed", inputs=events, order=Order.BY_KEY)
def sliding_lateness(api, env, given):
    """Process elements that are late for one of two windows."""
    assigner = api.SlidingEventTimeWindows.of(api.Time.milliseconds(12), api.Time.milliseconds(6))
    return _keyed(api, env, given, 0).window(assigner).allowed_lateness(7).process(_contents(api))


@case("windows: sessions, with lateness that is allowed", inputs=events, order=Order.BY_KEY)
def session_lateness(api, env, given):
    """Add a late element to a session that has fired."""
    windows = _keyed(api, env, given, 0).window(api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(5)))
    return windows.allowed_lateness(8).process(_contents(api))


@case("windows: over windows", inputs=events, order=Order.BY_KEY)
def over_windows(api, env, given):
    """Use the timestamp of a result, which is the last of its window."""
    sums = _ten(api, env, given).reduce(_add)
    return (
        sums.key_by(lambda event: event[0])
        .window(api.TumblingEventTimeWindows.of(api.Time.milliseconds(20)))
        .process(_contents(api))
    )


@case("windows: timestamps of results that a timer made", inputs=events, order=Order.BY_KEY)
def timestamps(api, env, given):
    """Read the timestamps of results, which are the last of the window."""

    class Stamp(api.ProcessFunction):
        def process_element(self, value, ctx):
            yield value[0], value, ctx.timestamp()

    return _ten(api, env, given).reduce(_add).process(Stamp())


@case(
    "windows: timestamps of results that an element made",
    inputs=events,
    order=Order.BY_KEY,
    differs="it is the last timestamp of the window here, and that of the element in PyFlink",
)
def timestamps_of_elements(api, env, given):
    """Read the timestamps of results of windows that fire by count."""

    class Stamp(api.ProcessFunction):
        def process_element(self, value, ctx):
            yield value[0], value, ctx.timestamp()

    return _ten(api, env, given).trigger(api.CountTrigger.of(1)).reduce(_add).process(Stamp())


@case("windows: of a union", inputs=events, order=Order.BY_KEY)
def of_union(api, env, given):
    """Unite two streams with event time, of which nothing is late."""
    one, two = api.timed(env.from_collection(given[::2]), delay=100), api.timed(env.from_collection(given[1::2]), delay=100)
    windows = one.union(two).key_by(lambda event: event[0]).window(api.TumblingEventTimeWindows.of(api.Time.milliseconds(10)))
    return windows.reduce(_add)


@case("windows: of several tasks", inputs=events, order=Order.BY_KEY)
def parallel(api, env, given):
    """Distribute keys over tasks."""
    return _ten(api, env, given).process(_contents(api)).set_parallelism(3)


@case("windows: without keys, reduce", inputs=events)
def all_reduce(api, env, given):
    """Reduce in one window for all keys."""
    windows = api.timed(env.from_collection(given)).window_all(api.TumblingEventTimeWindows.of(api.Time.milliseconds(10)))
    return windows.reduce(_add)


@case("windows: without keys, aggregate", inputs=events)
def all_aggregate(api, env, given):
    """Aggregate in one window for all keys."""
    windows = api.timed(env.from_collection(given)).window_all(api.TumblingEventTimeWindows.of(api.Time.milliseconds(10)))
    return windows.aggregate(_mean(api))


@case("windows: accumulators of an element between two sessions", differs="PyFlink loses the accumulator of one of them")
def aggregate_between(api, env, given):
    """Merge two sessions by an element between them: times 0, 8 and 4 with a gap of 5."""
    windows = _keyed(api, env, [("a", 0, 1), ("a", 8, 2), ("a", 4, 6)], 100)
    return windows.window(api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(5))).aggregate(_mean(api))


@case("windows: without keys, apply and process", inputs=events, order=Order.BY_KEY)
def all_functions(api, env, given):
    """Apply functions without a key."""

    class Apply(api.AllWindowFunction):
        def apply(self, window, inputs):
            yield "apply", window.start, window.end, list(inputs)

    class Process(api.ProcessAllWindowFunction):
        def process(self, context, elements):
            yield "process", context.window().start, list(elements)

    stream = api.timed(env.from_collection(given))
    one = stream.window_all(api.TumblingEventTimeWindows.of(api.Time.milliseconds(10))).apply(Apply())
    return one.union(
        stream.window_all(api.SlidingEventTimeWindows.of(api.Time.milliseconds(10), api.Time.milliseconds(5))).process(Process())
    )


@case("windows: an assigner of the program", inputs=events, order=Order.BY_KEY)
def own_assigner(api, env, given):
    """Assign windows by the number of the element."""

    class ByNumber(api.WindowAssigner):
        def assign_windows(self, element, timestamp, context):
            return [api.TimeWindow(0, 20 + element[2]), api.TimeWindow(100, 110)]

        def get_default_trigger(self, env):
            return api.EventTimeTrigger()

        def get_window_serializer(self):
            return api.TimeWindowSerializer()

        def is_event_time(self):
            return True

    return _keyed(api, env, given, 100).window(ByNumber()).process(_contents(api))
