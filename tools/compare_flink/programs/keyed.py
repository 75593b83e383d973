"""Keyed streams, and the functions that combine elements of a key."""

from __future__ import annotations

from tools.compare_flink.case import case
from tools.compare_flink.inputs import events


@case("keyed: reduce", inputs=events)
def reduce(api, env, given):
    """Reduce by key; every element gives a result."""
    return env.from_collection(given).key_by(lambda event: event[0]).reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))


@case("keyed: reduce with an object that has state of its own", inputs=events)
def reduce_object(api, env, given):
    """Reduce with one object for all keys."""

    class Last(api.ReduceFunction):
        def open(self, runtime_context):
            self.calls = 0

        def reduce(self, value1, value2):
            self.calls += 1
            return value1[0], self.calls, max(value1[2], value2[2])

    return env.from_collection(given).key_by(lambda event: event[0]).reduce(Last())


def _rolling(name, position):
    @case(f"keyed: {name}({position!r}) of tuples", inputs=events)
    def tuples(api, env, given):
        """Compute a rolling aggregate by position."""
        return getattr(env.from_collection(given).key_by(lambda event: event[0]), name)(position)

    return tuples


for _name in ("sum", "min", "max", "min_by", "max_by"):
    _rolling(_name, 2)


@case("keyed: sum of a field by its name", inputs=events)
def sum_by_name(api, env, given):
    """Sum a field of rows with names."""
    of = api.Types.ROW_NAMED(["key", "at", "number"], [api.Types.STRING(), api.Types.LONG(), api.Types.LONG()])
    return env.from_collection(given, of).key_by(lambda row: row["key"]).sum("number")


@case("keyed: max_by of a field by its name", inputs=events)
def max_by_name(api, env, given):
    """Find the greatest row by a field with a name."""
    of = api.Types.ROW_NAMED(["key", "at", "number"], [api.Types.STRING(), api.Types.LONG(), api.Types.LONG()])
    return env.from_collection(given, of).key_by(lambda row: row["key"]).max_by("number")


@case("keyed: keys that are tuples", inputs=events)
def tuples(api, env, given):
    """Group by tuples, of which equal ones are one key."""
    return env.from_collection(given).key_by(lambda event: (event[0], event[2] % 2)).reduce(lambda a, b: (*a[:2], a[2] + b[2]))


@case("keyed: a key with a declared type", inputs=events)
def declared_key(api, env, given):
    """Read the key, which has the declared type."""

    class Key(api.KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.get_current_key(), value

    return env.from_collection(given).key_by(lambda event: event[2] % 3, api.Types.LONG()).process(Key())


@case("keyed: a selector object", inputs=events)
def selector(api, env, given):
    """Select keys by a class instead of a lambda."""

    class ByNumber(api.KeySelector):
        def get_key(self, value):
            return value[2] % 2

    return env.from_collection(given).key_by(ByNumber()).reduce(lambda a, b: (a[0] + b[0], 0, b[2]))


@case("keyed: one key after the other", inputs=events)
def again(api, env, given):
    """Give a keyed stream other keys."""
    sums = env.from_collection(given).key_by(lambda event: event[0]).sum(2)
    return sums.key_by(lambda event: event[2] % 2).reduce(lambda a, b: (b[0], a[1], a[2] + b[2]))


@case("keyed: map, flat_map and filter with state", inputs=events)
def with_state(api, env, given):
    """Use state in any function on a keyed stream."""

    def state(runtime_context):
        return runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))

    class Count(api.MapFunction):
        def open(self, runtime_context):
            self.count = state(runtime_context)

        def map(self, value):
            self.count.update((self.count.value() or 0) + 1)
            return (*value, self.count.value())

    class EverySecond(api.FilterFunction):
        def open(self, runtime_context):
            self.count = state(runtime_context)

        def filter(self, value):
            self.count.update((self.count.value() or 0) + 1)
            return self.count.value() % 2 == 0

    class Repeat(api.FlatMapFunction):
        def open(self, runtime_context):
            self.count = state(runtime_context)

        def flat_map(self, value):
            self.count.update((self.count.value() or 0) + 1)
            yield from [value] * self.count.value()

    stream = env.from_collection(given)
    for method, function in (("map", Count()), ("filter", EverySecond()), ("flat_map", Repeat())):
        stream = getattr(stream.key_by(lambda event: event[0]), method)(function)
    return stream


@case("keyed: execute_and_collect of a stream with keys", inputs=events)
def collected(api, env, given):
    """Collect rows of key and element."""
    of = api.Types.TUPLE([api.Types.STRING(), api.Types.LONG(), api.Types.LONG()])
    return env.from_collection(given, of).key_by(lambda event: event[0], api.Types.STRING())


@case(
    "keyed: execute_and_collect of a stream with keys, without types",
    inputs=events,
    differs="PyFlink gives pickled bytes where no type is declared",
)
def collected_untyped(api, env, given):
    """Collect rows of key and element."""
    return env.from_collection(given).key_by(lambda event: event[0])


@case("keyed: attributes of one object serve all keys of a task", inputs=events)
def attributes(api, env, given):
    """Share an attribute among keys, because only state is by key."""

    class Previous(api.KeyedProcessFunction):
        def __init__(self):
            self.previous = None

        def process_element(self, value, ctx):
            yield ctx.get_current_key(), self.previous
            self.previous = value

    return env.from_collection(given).key_by(lambda event: event[0]).process(Previous())
