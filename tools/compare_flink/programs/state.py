"""Programs with every kind of state."""

from __future__ import annotations

from tools.compare_flink.case import case
from tools.compare_flink.inputs import events


def _run(api, env, given, function):
    return env.from_collection(given).key_by(lambda event: event[0]).process(function)


@case("state: value", inputs=events)
def value(api, env, given):
    """Update and clear a value, and update it to None."""

    class Value(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_state(api.ValueStateDescriptor("state", api.Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value, ctx):
            before = self.state.value()
            self.state.update((before or ()) + (value[2],))
            if value[2] == 4:
                self.state.clear()
            if value[2] == 2:
                self.state.update(None)
            yield value[0], before, self.state.value()

    return _run(api, env, given, Value())


@case("state: list", inputs=events)
def list_state(api, env, given):
    """Use all methods of a list."""

    class Numbers(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_list_state(api.ListStateDescriptor("state", api.Types.LONG()))

        def process_element(self, value, ctx):
            before = list(self.state.get())
            self.state.add(value[2])
            match value[2]:
                case 1:
                    self.state.add_all([10, 11])
                case 3:
                    self.state.update([7, 7])
                case 5:
                    self.state.clear()
                case 7:
                    self.state.update([])
                case 8:
                    self.state.add_all([])
            yield value[0], before, list(self.state.get())

    return _run(api, env, given, Numbers())


@case("state: map", inputs=events)
def map_state(api, env, given):
    """Use all methods of a map."""

    class Map(api.KeyedProcessFunction):
        def open(self, runtime_context):
            of = api.MapStateDescriptor("state", api.Types.LONG(), api.Types.STRING())
            self.state = runtime_context.get_map_state(of)

        def process_element(self, value, ctx):
            key = value[2] % 4
            had, before = self.state.contains(key), self.state.get(key)
            match value[2]:
                case 0:
                    self.state.put_all({1: "put", 2: "all"})
                case 5:
                    self.state.remove(key)
                case 9:
                    self.state.clear()
                case _:
                    self.state.put(key, f"{before or ''}{value[2]}")
            items, keys, values = sorted(self.state.items()), sorted(self.state.keys()), sorted(self.state.values())
            yield value[0], had, before, items, keys, values, self.state.is_empty()

    return _run(api, env, given, Map())


@case("state: map as a dict", inputs=events)
def map_as_dict(api, env, given):
    """Use brackets, ``in``, ``del`` and a loop."""

    class Map(api.KeyedProcessFunction):
        def open(self, runtime_context):
            of = api.MapStateDescriptor("state", api.Types.PICKLED_BYTE_ARRAY(), api.Types.PICKLED_BYTE_ARRAY())
            self.state = runtime_context.get_map_state(of)

        def process_element(self, value, ctx):
            key = (value[2] % 3, "key")
            if key in self.state and value[2] > 6:
                del self.state[key]
            else:
                self.state[key] = [*(self.state[key] or []), value[2]] if key in self.state else [value[2]]
            yield value[0], sorted(self.state), key in self.state

    return _run(api, env, given, Map())


@case("state: a map that is changed while it is read", inputs=events)
def map_changed_while_read(api, env, given):
    """Copy the keys first, then remove some."""

    class Map(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_map_state(api.MapStateDescriptor("state", api.Types.LONG(), api.Types.LONG()))

        def process_element(self, value, ctx):
            self.state.put(value[1], value[2])
            for key in list(self.state.keys()):
                if key < value[1] - 10:
                    self.state.remove(key)
            yield value[0], sorted(self.state.items())

    return _run(api, env, given, Map())


@case("state: reducing", inputs=events)
def reducing(api, env, given):
    """Read None before the first element."""

    class Longest(api.KeyedProcessFunction):
        def open(self, runtime_context):
            of = api.ReducingStateDescriptor("state", lambda a, b: max(a, b), api.Types.LONG())
            self.state = runtime_context.get_reducing_state(of)

        def process_element(self, value, ctx):
            before = self.state.get()
            self.state.add(value[2])
            if value[2] == 9:
                self.state.clear()
            yield value[0], before, self.state.get()

    return _run(api, env, given, Longest())


@case("state: aggregating", inputs=events)
def aggregating(api, env, given):
    """Use an accumulator with a type of its own."""

    class Mean(api.AggregateFunction):
        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + value, accumulator[1] + 1

        def get_result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, a, b):
            return a[0] + b[0], a[1] + b[1]

    class Means(api.KeyedProcessFunction):
        def open(self, runtime_context):
            of = api.AggregatingStateDescriptor("state", Mean(), api.Types.PICKLED_BYTE_ARRAY())
            self.state = runtime_context.get_aggregating_state(of)

        def process_element(self, value, ctx):
            before = self.state.get()
            self.state.add(value[2])
            if value[2] == 6:
                self.state.clear()
            yield value[0], before, self.state.get()

    return _run(api, env, given, Means())


@case("state: several of them in one function", inputs=events)
def several(api, env, given):
    """Use several states, which their names distinguish."""

    class Several(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(api.ValueStateDescriptor("count", api.Types.LONG()))
            self.last = runtime_context.get_state(api.ValueStateDescriptor("last", api.Types.STRING()))
            self.all = runtime_context.get_list_state(api.ListStateDescriptor("all", api.Types.LONG()))
            self.by = runtime_context.get_map_state(api.MapStateDescriptor("by", api.Types.STRING(), api.Types.LONG()))

        def process_element(self, value, ctx):
            yield value[0], self.count.value(), self.last.value(), list(self.all.get()), sorted(self.by.items())
            self.count.update((self.count.value() or 0) + 1)
            self.last.update(str(value))
            self.all.add(value[2])
            self.by.put(str(value[2] % 2), value[1])

    return _run(api, env, given, Several())


@case("state: time to live that does not end", inputs=events)
def time_to_live(api, env, given):
    """Set a time to live of an hour, with all settings, so that nothing expires."""

    class Kept(api.KeyedProcessFunction):
        def open(self, runtime_context):
            builder = api.StateTtlConfig.new_builder(api.Time.hours(1))
            ttl = builder.set_update_type(api.StateTtlConfig.UpdateType.OnReadAndWrite).build()
            found = (
                api.ValueStateDescriptor("value", api.Types.LONG()),
                api.ListStateDescriptor("list", api.Types.LONG()),
                api.MapStateDescriptor("map", api.Types.LONG(), api.Types.LONG()),
            )
            for descriptor in found:
                descriptor.enable_time_to_live(ttl)
            self.value = runtime_context.get_state(found[0])
            self.list = runtime_context.get_list_state(found[1])
            self.map = runtime_context.get_map_state(found[2])

        def process_element(self, value, ctx):
            self.value.update((self.value.value() or 0) + 1)
            self.list.add(value[2])
            self.map.put(value[2], value[1])
            yield value[0], self.value.value(), list(self.list.get()), sorted(self.map.items())

    return _run(api, env, given, Kept())


@case("state: a value that is changed in place without update", inputs=events)
def in_place(api, env, given):
    """Store a new list, and change it then."""

    class InPlace(api.KeyedProcessFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_state(api.ValueStateDescriptor("state", api.Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value, ctx):
            kept = self.state.value()
            if kept is None:
                kept = []
            kept.append(value[2])
            self.state.update(kept)
            yield value[0], list(kept)

    return _run(api, env, given, InPlace())
