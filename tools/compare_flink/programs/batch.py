"""Programs in batch mode."""

from __future__ import annotations

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


@case("batch: reduce gives one result for each key", inputs=events, order=Order.BY_KEY, batch=True)
def reduce(api, env, given):
    """Emit the last result only. The order of elements without timestamps is undefined."""
    return env.from_collection(given).key_by(lambda event: event[0]).reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))


@case("batch: elements of a key in the order of their timestamps", inputs=events, order=Order.BY_KEY, batch=True)
def in_order(api, env, given):
    """Process elements of which none is late, with timers that fire at the end of the key."""

    class Seen(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(value[1] + 5)
            yield value[0], "element", value[1], self.count.value(), ctx.timer_service().current_watermark()

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), "timer", timestamp, self.count.value(), ctx.timer_service().current_watermark()

    return api.timed(env.from_collection(given)).key_by(lambda event: event[0]).process(Seen())


@case("batch: windows", inputs=events, order=Order.BY_KEY, batch=True)
def windows(api, env, given):
    """Fire each window once."""

    class Contents(api.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, sorted(elements)

    stream = api.timed(env.from_collection(given), delay=0).key_by(lambda event: event[0])
    return stream.window(api.TumblingEventTimeWindows.of(api.Time.milliseconds(10))).process(Contents())


@case("batch: sum", inputs=events, order=Order.BY_KEY, batch=True)
def sums(api, env, given):
    """Emit the last value of a rolling aggregate."""
    return env.from_collection(given).key_by(lambda event: event[0]).sum(2).map(lambda event: (event[0], event[2]))


@case("batch: functions without keys", inputs=events, batch=True)
def stateless(api, env, given):
    """Map and filter as in streaming mode."""
    return env.from_collection(given).map(lambda event: event[2]).filter(lambda number: number > 2)
