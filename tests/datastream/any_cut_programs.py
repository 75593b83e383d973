"""Programs with every kind of state, timer, window and trigger, whose output depends on their input only."""

from airflow_pipelines.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessJoinFunction,
    Time,
)
from airflow_pipelines.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from airflow_pipelines.datastream.window import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.datastream.programs import Contents, first, timed

LATE = OutputTag("late")


class Sum(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        accumulator[0] += value[2]
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator):
        return tuple(accumulator)

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class EveryKind(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("reducing", max))
        self.aggregating = runtime_context.get_aggregating_state(AggregatingStateDescriptor("aggregating", Sum()))

    def process_element(self, value, ctx):
        key, at, number = value
        kept = self.value.value() or {"seen": []}
        kept["seen"].append(number)
        self.value.update(kept)
        self.list.add(number)
        self.map.put(number % 3, at)
        self.reducing.add(number)
        self.aggregating.add(value)
        if number % 4 == 0:
            self.list.clear()
        timers = ctx.timer_service()
        timers.register_event_time_timer(at + number)
        if number % 5 == 0:
            timers.delete_event_time_timer(at + 3)
        yield "element", key, ctx.timestamp(), timers.current_watermark(), self._state()
        if number % 7 == 0:
            yield LATE, ("side", value)

    def _state(self):
        return repr((self.value.value(), self.list.get(), sorted(self.map.items()), self.reducing.get(), self.aggregating.get()))

    def on_timer(self, timestamp, ctx):
        if self.list.get():
            self.list.update(self.list.get()[1:])
        if timestamp % 4 == 0 and timestamp < 60:
            ctx.timer_service().register_event_time_timer(timestamp + 5)
        yield "timer", ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark(), self._state()


class Together(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums"))

    def process_element1(self, value, ctx):
        self._add(1, value, ctx)

    def process_element2(self, value, ctx):
        self._add(2, value, ctx)

    def _add(self, side, value, ctx):
        self.sums.put(side, (self.sums.get(side) or 0) + value[2])
        ctx.timer_service().register_event_time_timer(1000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), sorted(self.sums.items())


RULES = MapStateDescriptor("rules")


class WithRules(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(500)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[2], value[0])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.count.value(), sorted(ctx.get_broadcast_state(RULES).keys())


class CountRules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield "element", value

    def process_broadcast_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[2], (rules.get(value[2]) or 0) + 1)


def _windowed(assigner, trigger=None, lateness=0, late=False):
    def build(env, one, two):
        windows = timed_once(env.from_collection(one)).key_by(first).window(assigner)
        if trigger is not None:
            windows = windows.trigger(trigger)
        if lateness:
            windows = windows.allowed_lateness(lateness)
        if late:
            windows = windows.side_output_late_data(LATE)
        found = windows.process(Contents())
        return found.union(found.get_side_output(LATE)) if late else found

    return build


def timed_once(stream):
    """Event time is made by one task, so that every task sees the same watermarks."""
    return timed(stream, delay=4).set_parallelism(1)


def _every_kind(env, one, two):
    found = timed_once(env.from_collection(one)).key_by(first).process(EveryKind())
    return found.union(found.get_side_output(LATE))


def _downstream(env, one, two):
    """Windows over windows, and a rolling reduce after an exchange."""
    sums = (
        timed_once(env.from_collection(one))
        .key_by(first)
        .window(TumblingEventTimeWindows.of(8))
        .reduce(lambda a, b: (a[0], a[1], a[2] + b[2]))
    )
    return sums.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(24)).aggregate(Sum())


def _union(env, one, two):
    both = timed(env.from_collection(one)).union(timed(env.from_collection(two)))
    return both.map(lambda v: (v[0], v[1], v[2] + 1)).key_by(first).window(SlidingEventTimeWindows.of(10, 5)).aggregate(Sum())


def _connected(env, one, two):
    return timed(env.from_collection(one)).connect(timed(env.from_collection(two))).key_by(first, first).process(Together())


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right, ctx.get_timestamp()


def _interval_join(env, one, two):
    left, right = timed(env.from_collection(one)).key_by(first), timed(env.from_collection(two)).key_by(first)
    return left.interval_join(right).between(Time.milliseconds(-5), Time.milliseconds(3)).process(Pairs())


def _window_join(env, one, two):
    joined = timed(env.from_collection(one)).join(timed(env.from_collection(two))).where(first).equal_to(first)
    return joined.window(EventTimeSessionWindows.with_gap(4)).apply(lambda left, right: (left, right))


def _broadcast(env, one, two):
    return (
        timed(env.from_collection(one)).key_by(first).connect(timed(env.from_collection(two)).broadcast(RULES)).process(WithRules())
    )


def _broadcast_unkeyed(env, one, two):
    return env.from_collection(one).connect(env.from_collection(two).broadcast(RULES)).process(CountRules())


PROGRAMS = {
    "state and timers": _every_kind,
    "tumbling": _windowed(TumblingEventTimeWindows.of(10, 3), late=True),
    "tumbling, late allowed": _windowed(TumblingEventTimeWindows.of(10), lateness=6, late=True),
    "tumbling, purging": _windowed(
        TumblingEventTimeWindows.of(10), PurgingTrigger.of(EventTimeTrigger.create()), lateness=6, late=True
    ),
    "tumbling, continuous": _windowed(TumblingEventTimeWindows.of(20), ContinuousEventTimeTrigger.of(6)),
    "tumbling, count": _windowed(TumblingEventTimeWindows.of(20), CountTrigger.of(2)),
    "sliding": _windowed(SlidingEventTimeWindows.of(10, 4), late=True),
    "sessions": _windowed(EventTimeSessionWindows.with_gap(5), late=True),
    "sessions, late allowed": _windowed(EventTimeSessionWindows.with_gap(5), lateness=5, late=True),
    "sessions, count": _windowed(EventTimeSessionWindows.with_gap(5), CountTrigger.of(2)),
    "sessions, continuous": _windowed(EventTimeSessionWindows.with_gap(5), ContinuousEventTimeTrigger.of(4)),
    "sessions, dynamic": _windowed(EventTimeSessionWindows.with_dynamic_gap(lambda v: v[2] + 1)),
    "count": _windowed(CountSlidingWindowAssigner.of(3, 2)),
    "global": _windowed(GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(3))),
    "reduce": lambda env, one, two: env.from_collection(one).key_by(first).reduce(lambda a, b: (a[0], b[1], a[2] + b[2])),
    "all": lambda env, one, two: timed_once(env.from_collection(one)).window_all(TumblingEventTimeWindows.of(10)).aggregate(Sum()),
    "downstream": _downstream,
    "union": _union,
    "connected": _connected,
    "interval join": _interval_join,
    "window join": _window_join,
    "broadcast": _broadcast,
    "broadcast without keys": _broadcast_unkeyed,
}
