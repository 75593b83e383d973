"""Programs with side outputs."""

from __future__ import annotations

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


def _both(main, side):
    return main.map(lambda value: ("main", value)).union(side.map(lambda value: ("side", value)))


@case("side outputs: of a process function", inputs=events, order=Order.BY_KEY)
def of_process(api, env, given):
    """Use two tags, one with a declared type."""
    low, high = api.OutputTag("low", api.Types.LONG()), api.OutputTag("high")

    class Split(api.ProcessFunction):
        def process_element(self, value, ctx):
            yield value
            if value[2] < 3:
                yield low, value[2]
            if value[2] > 6:
                yield high, value

    main = env.from_collection(given).process(Split())
    return _both(main, main.get_side_output(low)).union(main.get_side_output(high).map(lambda value: ("high", value)))


@case("side outputs: of a function with keys and its timers", inputs=events, order=Order.BY_KEY)
def of_keyed(api, env, given):
    """Emit to a side output from a timer as well."""
    tag = api.OutputTag("side", api.Types.TUPLE([api.Types.STRING(), api.Types.LONG()]))

    class Split(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(60 + value[2])
            if value[2] % 2:
                yield tag, (value[0], value[2])
            else:
                yield value

        def on_timer(self, timestamp, ctx):
            if ctx.get_current_key() == "a":
                yield tag, ("timer", timestamp)

    main = api.timed(env.from_collection(given)).key_by(lambda event: event[0]).process(Split())
    return _both(main, main.get_side_output(tag))


@case(
    "side outputs: that nobody reads",
    inputs=events,
    differs="PyFlink gives them to the main output, with their tags",
)
def unread(api, env, given):
    """Drop the elements of a side output without a reader."""
    tag = api.OutputTag("side", api.Types.LONG())

    class Split(api.ProcessFunction):
        def process_element(self, value, ctx):
            yield tag, value[2]
            yield value[0]

    return env.from_collection(given).process(Split())


@case("side outputs: late elements of windows", inputs=events, order=Order.BY_KEY)
def late(api, env, given):
    """Collect the elements that are too late for a window."""
    tag = api.OutputTag("late")
    windows = api.timed(env.from_collection(given), delay=2).key_by(lambda event: event[0])
    windows = windows.window(api.TumblingEventTimeWindows.of(api.Time.milliseconds(5))).side_output_late_data(tag)
    main = windows.reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))
    return _both(main, main.get_side_output(tag)).filter(lambda pair: pair[0] == "side" or pair[1][0] == "a")


@case("side outputs: late elements of windows that allow lateness", inputs=events, order=Order.NONE)
def late_allowed(api, env, given):
    """Collect the elements beyond the allowed lateness."""
    tag = api.OutputTag("late")
    windows = api.timed(env.from_collection(given), delay=0).key_by(lambda event: event[0])
    windows = windows.window(api.TumblingEventTimeWindows.of(api.Time.milliseconds(5))).allowed_lateness(6)
    main = windows.side_output_late_data(tag).reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))
    return _both(main, main.get_side_output(tag))


@case("side outputs: of a function over two inputs", inputs=events, order=Order.NONE)
def of_two_inputs(api, env, given):
    """Emit to a side output from both methods."""
    tag = api.OutputTag("side", api.Types.STRING())

    class Split(api.CoProcessFunction):
        def process_element1(self, value, ctx):
            yield "one", value
            yield tag, f"one {value}"

        def process_element2(self, value, ctx):
            yield tag, f"two {value}"

    main = env.from_collection(given).connect(env.from_collection([1, 2, 3])).process(Split())
    return _both(main, main.get_side_output(tag))
