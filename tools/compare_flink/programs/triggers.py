"""Programs with triggers, built-in ones and ones of the program."""

from __future__ import annotations

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


def _contents(api):
    class Contents(api.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, context.window().end, list(elements)

    return Contents()


def _with(name, assigner, trigger, delay=4, lateness=0, order=Order.BY_KEY):
    @case(f"triggers: {name}", inputs=events, order=order)
    def program(api, env, given):
        """Emit the contents whenever the trigger fires."""
        windows = api.timed(env.from_collection(given), delay=delay).key_by(lambda event: event[0]).window(assigner(api))
        return windows.trigger(trigger(api)).allowed_lateness(lateness).process(_contents(api))

    return program


def _tumbling(api):
    return api.TumblingEventTimeWindows.of(api.Time.milliseconds(20))


def _sessions(api):
    return api.EventTimeSessionWindows.with_gap(api.Time.milliseconds(8))


_with("by count over tumbling windows", _tumbling, lambda api: api.CountTrigger.of(2))
_with("by count over sessions", _sessions, lambda api: api.CountTrigger.of(2), delay=15)
_with("by count and purging", _tumbling, lambda api: api.PurgingTrigger.of(api.CountTrigger.of(2)))
_with("by event time and purging, with lateness", _tumbling, lambda api: api.PurgingTrigger.of(api.EventTimeTrigger()), 0, 15)
_with("by event time, with lateness", _tumbling, lambda api: api.EventTimeTrigger(), 0, 15)
_with(
    "continuous event time over tumbling windows",
    _tumbling,
    lambda api: api.ContinuousEventTimeTrigger.of(api.Time.milliseconds(6)),
)
_with(
    "continuous event time over sliding windows",
    lambda api: api.SlidingEventTimeWindows.of(api.Time.milliseconds(20), api.Time.milliseconds(10)),
    lambda api: api.ContinuousEventTimeTrigger.of(api.Time.milliseconds(7)),
    # Two windows of a key may fire at the same time, in any order.
    order=Order.NONE,
)
_with(
    "continuous event time over sessions",
    _sessions,
    lambda api: api.ContinuousEventTimeTrigger.of(api.Time.milliseconds(6)),
    delay=15,
)


def _own(api):
    """Return a trigger that fires for large numbers, every third element, and at 20 ms after the first; it counts in its state."""

    class Own(api.Trigger):
        def __init__(self):
            self.count = api.ReducingStateDescriptor("count", lambda a, b: a + b, api.Types.LONG())
            self.first = api.ValueStateDescriptor("first", api.Types.LONG())

        def on_element(self, element, timestamp, window, ctx):
            count = ctx.get_partitioned_state(self.count)
            count.add(1)
            first = ctx.get_partitioned_state(self.first)
            if first.value() is None:
                first.update(timestamp)
                ctx.register_event_time_timer(timestamp + 20)
            if element[2] > 7:
                return api.TriggerResult.FIRE_AND_PURGE
            return api.TriggerResult.FIRE if count.get() % 3 == 0 else api.TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx):
            first = ctx.get_partitioned_state(self.first).value()
            return api.TriggerResult.FIRE if first is not None and time == first + 20 else api.TriggerResult.CONTINUE

        def on_processing_time(self, time, window, ctx):
            return api.TriggerResult.CONTINUE

        def on_merge(self, window, ctx):
            raise AssertionError("these windows do not merge")

        def clear(self, window, ctx):
            ctx.get_partitioned_state(self.count).clear()
            ctx.get_partitioned_state(self.first).clear()

    return Own()


_with("of the program, with state and timers", lambda api: api.TumblingEventTimeWindows.of(api.Time.milliseconds(30)), _own)


@case("triggers: never", inputs=events)
def never(api, env, given):
    """Use the trigger of the global window by name."""
    windows = api.timed(env.from_collection(given)).key_by(lambda event: event[0])
    return windows.window(_tumbling(api)).trigger(api.NeverTrigger()).process(_contents(api))


@case("triggers: by count over the global window with a reduce", inputs=events, order=Order.BY_KEY)
def global_reduce(api, env, given):
    """Keep the elements after the trigger fires."""
    windows = env.from_collection(given).key_by(lambda event: event[0]).window(api.GlobalWindows.create())
    return windows.trigger(api.CountTrigger.of(2)).reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))
