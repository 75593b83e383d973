"""Functions over two streams. The order between the two is undefined, so results do not depend on it."""

from __future__ import annotations

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


def _halves(api, env, given, delay=100):
    return api.timed(env.from_collection(given[::2]), delay=delay), api.timed(env.from_collection(given[1::2]), delay=delay)


@case("two inputs: map", inputs=events, order=Order.BY_KEY)
def co_map(api, env, given):
    """Map each input by its own method."""

    class Both(api.CoMapFunction):
        def map1(self, value):
            return "one", value

        def map2(self, value):
            return "two", value * 10

    return env.from_collection(given).connect(env.from_collection([1, 2, 3])).map(Both())


@case("two inputs: flat_map", inputs=events, order=Order.BY_KEY)
def co_flat_map(api, env, given):
    """Return generators and lists."""

    class Both(api.CoFlatMapFunction):
        def flat_map1(self, value):
            for _ in range(value[2] % 3):
                yield "one", value

        def flat_map2(self, value):
            return [("two", value)] if value > 1 else []

    return env.from_collection(given).connect(env.from_collection([1, 2, 3])).flat_map(Both())


@case("two inputs: map with keys and state", inputs=events, order=Order.NONE)
def keyed_co_map(api, env, given):
    """Share the state of the key between both inputs, and count each side."""

    class Count(api.CoMapFunction):
        def open(self, runtime_context):
            self.counts = [runtime_context.get_state(api.ValueStateDescriptor(name, api.Types.LONG())) for name in ("one", "two")]

        def map1(self, value):
            return self._count(0, value)

        def map2(self, value):
            return self._count(1, value)

        def _count(self, side, value):
            self.counts[side].update((self.counts[side].value() or 0) + 1)
            return value[0], side, self.counts[side].value()

    one, two = env.from_collection(given[::2]), env.from_collection(given[1::2])
    return one.connect(two).key_by(lambda event: event[0], lambda event: event[0]).map(Count())


@case("two inputs: flat_map with keys", inputs=events, order=Order.NONE)
def keyed_co_flat_map(api, env, given):
    """Connect streams that are keyed already."""

    class Count(api.CoFlatMapFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_map_state(api.MapStateDescriptor("seen", api.Types.STRING(), api.Types.LONG()))

        def flat_map1(self, value):
            self.seen.put("one", (self.seen.get("one") or 0) + value[2])
            yield value[0], "one", self.seen.get("one")

        def flat_map2(self, value):
            self.seen.put("two", (self.seen.get("two") or 0) + value[2])
            yield value[0], "two", self.seen.get("two")

    one, two = env.from_collection(given[::2]), env.from_collection(given[1::2])
    return one.key_by(lambda event: event[0]).connect(two.key_by(lambda event: event[0])).flat_map(Count())


@case("two inputs: process", inputs=events, order=Order.BY_KEY)
def co_process(api, env, given):
    """Process two streams without keys, with timestamps."""

    class Both(api.CoProcessFunction):
        def process_element1(self, value, ctx):
            yield "one", value, ctx.timestamp()

        def process_element2(self, value, ctx):
            yield "two", value, ctx.timestamp()

    one, two = _halves(api, env, given)
    return one.connect(two).process(Both())


@case("two inputs: process with keys, state and timers", inputs=events, order=Order.BY_KEY)
def keyed_co_process(api, env, given):
    """Join at the end of each ten milliseconds."""

    class Join(api.KeyedCoProcessFunction):
        def open(self, runtime_context):
            self.one = runtime_context.get_list_state(api.ListStateDescriptor("one", api.Types.LONG()))
            self.two = runtime_context.get_list_state(api.ListStateDescriptor("two", api.Types.LONG()))

        def process_element1(self, value, ctx):
            self.one.add(value[2])
            ctx.timer_service().register_event_time_timer(value[1] // 10 * 10 + 200)

        def process_element2(self, value, ctx):
            self.two.add(value[2])
            ctx.timer_service().register_event_time_timer(value[1] // 10 * 10 + 205)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp, list(self.one.get()), list(self.two.get())
            if timestamp % 10 == 5:
                self.two.clear()

    one, two = _halves(api, env, given)
    return one.connect(two).key_by(lambda event: event[0], lambda event: event[0]).process(Join())


@case("two inputs: event time is that of the slower one", inputs=events, order=Order.NONE)
def slower(api, env, given):
    """Let timers wait for the slower input, whose end fires them all."""

    class Wait(api.KeyedCoProcessFunction):
        def process_element1(self, value, ctx):
            ctx.timer_service().register_event_time_timer(value[1])

        def process_element2(self, value, ctx):
            pass

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    ahead = api.timed(env.from_collection(given), delay=0)
    behind = api.timed(env.from_collection([("a", -1_000, 0)]), delay=0)
    return ahead.connect(behind).key_by(lambda event: event[0], lambda event: event[0]).process(Wait())


def _rules(api):
    return api.MapStateDescriptor("rules", api.Types.LONG(), api.Types.STRING())


@case("two inputs: broadcast state with keys", inputs=events, order=Order.BY_KEY)
def keyed_broadcast(api, env, given):
    """Read the rules at the end, when all have arrived."""
    rules = _rules(api)

    class Ask(api.KeyedBroadcastProcessFunction):
        def open(self, runtime_context):
            self.sum = runtime_context.get_state(api.ValueStateDescriptor("sum", api.Types.LONG()))

        def process_element(self, value, ctx):
            self.sum.update((self.sum.value() or 0) + value[2])
            ctx.timer_service().register_event_time_timer(1_000)

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(rules).put(value[0], value[1])

        def on_timer(self, timestamp, ctx):
            found = ctx.get_broadcast_state(rules)
            yield ctx.get_current_key(), self.sum.value(), sorted(found.items()), found.get(self.sum.value()), found.contains(1)

    stream = api.timed(env.from_collection(given)).key_by(lambda event: event[0])
    told = api.timed(env.from_collection([(1, "one", 0), (2, "two", 0), (1, "one again", 0)]), at=lambda rule: rule[2])
    return stream.connect(told.broadcast(rules)).process(Ask())


@case("two inputs: broadcast state without keys", inputs=events, order=Order.BY_KEY)
def broadcast(api, env, given):
    """Emit the state of the broadcast side."""
    rules = _rules(api)

    class Tell(api.BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield "element", value

        def process_broadcast_element(self, value, ctx):
            found = ctx.get_broadcast_state(rules)
            if value[1] == "remove":
                found.remove(value[0])
            else:
                found.put(value[0], (found.get(value[0]) or "") + value[1])
            yield "rule", sorted(found.items()), found.is_empty()

    told = env.from_collection([(1, "a"), (2, "b"), (1, "c"), (2, "remove")])
    return env.from_collection(given).connect(told.broadcast(rules)).process(Tell())


@case("two inputs: broadcast state over several tasks", inputs=events, order=Order.NONE)
def broadcast_parallel(api, env, given):
    """Send every rule to every task."""
    rules = _rules(api)

    class Tell(api.BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield "element", value

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(rules).put(*value)
            yield "rule", value

    told = env.from_collection([(1, "a"), (2, "b")])
    return env.from_collection(given).connect(told.broadcast(rules)).process(Tell()).set_parallelism(2)
