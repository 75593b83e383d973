"""Programs with timers, most of them of event time."""

from __future__ import annotations

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


def _run(api, env, given, function, **settings):
    return api.timed(env.from_collection(given), **settings).key_by(lambda event: event[0]).process(function)


@case("timers: fire in order, with the state of their key", inputs=events, order=Order.BY_KEY)
def in_order(api, env, given):
    """Register one timer for every element."""

    class Timers(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))

        def process_element(self, value, ctx):
            timers = ctx.timer_service()
            self.count.update((self.count.value() or 0) + 1)
            timers.register_event_time_timer(value[1] + value[2])
            yield value[0], "element", value, ctx.timestamp(), timers.current_watermark()

        def on_timer(self, timestamp, ctx):
            yield (
                ctx.get_current_key(),
                "timer",
                timestamp,
                ctx.timestamp(),
                ctx.timer_service().current_watermark(),
                self.count.value(),
            )

    return _run(api, env, given, Timers())


@case("timers: the same time twice is one timer", inputs=events, order=Order.BY_KEY)
def once(api, env, given):
    """Register equal timers, which are one."""

    class Once(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            for _ in range(2):
                ctx.timer_service().register_event_time_timer(100 + value[2] % 2)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    return _run(api, env, given, Once())


@case("timers: are deleted", inputs=events, order=Order.BY_KEY)
def deleted(api, env, given):
    """Delete timers, of which some do not exist."""

    class Deleted(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            timers = ctx.timer_service()
            timers.register_event_time_timer(value[1] + 10)
            timers.delete_event_time_timer(value[1] + 10 - value[2])
            timers.delete_event_time_timer(1_000_000)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()

    return _run(api, env, given, Deleted())


@case("timers: in the past", inputs=events, order=Order.BY_KEY)
def in_the_past(api, env, given):
    """Register timers in the past, which fire with the next watermark."""

    class Past(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value[1] - 50)
            yield value[0], "element", value

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), "timer", timestamp, ctx.timer_service().current_watermark()

    return _run(api, env, given, Past())


@case("timers: register later ones", inputs=events, order=Order.BY_KEY)
def later(api, env, given):
    """Register timers in a timer; one that is due fires in the same round."""

    class Later(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value[1] + 1)

        def on_timer(self, timestamp, ctx):
            if timestamp % 4 and timestamp < 70:
                ctx.timer_service().register_event_time_timer(timestamp + 3)
            yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()

    return _run(api, env, given, Later())


@case("timers: change and clear state", inputs=events, order=Order.BY_KEY)
def with_state(api, env, given):
    """Emit the elements since the last timer."""

    class Since(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.list = runtime_context.get_list_state(api.ListStateDescriptor("list", api.Types.LONG()))
            self.due = runtime_context.get_state(api.ValueStateDescriptor("due", api.Types.LONG()))

        def process_element(self, value, ctx):
            self.list.add(value[2])
            if self.due.value() is not None:
                ctx.timer_service().delete_event_time_timer(self.due.value())
            self.due.update(value[1] + 7)
            ctx.timer_service().register_event_time_timer(value[1] + 7)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp, list(self.list.get())
            self.list.clear()
            self.due.clear()

    return _run(api, env, given, Since())


@case("timers: say their domain", inputs=events, order=Order.BY_KEY)
def domain(api, env, given):
    """Read the time domain, which is event time."""

    class Domain(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), ctx.time_domain().name

    return _run(api, env, given, Domain())


@case("timers: of processing time that are not due do not fire at the end", inputs=events, order=Order.BY_KEY)
def of_processing_time(api, env, given):
    """Register timers an hour ahead."""

    class Hour(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 3_600_000)
            yield value[0], "element"

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), "timer"

    return _run(api, env, given, Hour())


@case("timers: elements behind the watermark reach a function with keys", inputs=events, order=Order.BY_KEY)
def late(api, env, given):
    """Process late elements, which only windows drop."""

    class Lateness(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value[0], value, ctx.timestamp() <= ctx.timer_service().current_watermark()

    return _run(api, env, given, Lateness(), delay=0)


@case("timers: of two functions one after the other", inputs=events, order=Order.BY_KEY)
def chained(api, env, given):
    """Read the timestamp of a timer in its result."""

    class First(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value[1] + 5)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    class Second(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value[1] + 10)
            yield value[0], "element", value[1], ctx.timestamp()

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), "timer", timestamp, ctx.timestamp()

    return _run(api, env, given, First()).key_by(lambda pair: pair[0]).process(Second())
