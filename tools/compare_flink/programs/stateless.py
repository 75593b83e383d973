"""Functions on streams without keys, and the inputs of streams."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.compare_flink.case import Order, case
from tools.compare_flink.inputs import events


@case("stateless: map, filter and flat_map as lambdas", inputs=events)
def lambdas(api, env, given):
    """Chain lambdas."""
    stream = env.from_collection(given).map(lambda event: (event[0], event[2] * 2))
    return stream.filter(lambda pair: pair[1] % 3 != 0).flat_map(lambda pair: [pair] * (pair[1] % 3))


@case("stateless: function objects with open and close", inputs=events)
def objects(api, env, given):
    """Keep attributes of a function object for the life of its task."""

    class Number(api.MapFunction):
        def open(self, runtime_context):
            self.seen = 0

        def map(self, value):
            self.seen += 1
            return self.seen, value

        def close(self):
            self.seen = None

    class Odd(api.FilterFunction):
        def filter(self, value):
            return value[0] % 2 == 1

    class Split(api.FlatMapFunction):
        def flat_map(self, value):
            if value[1][0] != "b":
                yield value[0]
                yield from value[1]

    return env.from_collection(given).map(Number()).filter(Odd()).flat_map(Split())


@case("stateless: flat_map that gives empty lists and generators", inputs=events)
def nothing(api, env, given):
    """Return any iterable."""

    def some(event):
        return [] if event[2] == 1 else (each for each in [event[0], event[2]])

    return env.from_collection(given).flat_map(some)


@case("stateless: flat_map that returns None", only_here="PyFlink wants an iterable")
def flat_map_none(api, env, given):
    """Return None for no result."""
    return env.from_collection([1, 2]).flat_map(lambda number: [number] if number == 1 else None)


@case("stateless: None as a value", only_here="PyFlink cannot hand on an element that is None and has no declared type")
def none(api, env, given):
    """Pass None on as a value."""
    return env.from_collection([1, 2]).map(lambda number: None if number == 2 else number).rebalance().map(lambda value: (value,))


@case("stateless: process", inputs=events)
def process(api, env, given):
    """Emit any number of results."""

    class Twice(api.ProcessFunction):
        def process_element(self, value, ctx):
            yield value[0]
            if value[2] > 4:
                yield value

    return env.from_collection(given).process(Twice())


@case(
    "stateless: timestamps of elements that have none",
    differs="it is None here, as the documentation says, the smallest number in PyFlink",
)
def no_timestamp(api, env, given):
    """Read timestamps without a watermark strategy."""

    class Timestamp(api.ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    return env.from_collection([1]).process(Timestamp())


@case("stateless: process with timestamps and watermarks", inputs=events)
def process_timed(api, env, given):
    """Read the event time that a function sees."""

    class Times(api.ProcessFunction):
        def process_element(self, value, ctx):
            return [(value, ctx.timestamp(), ctx.timer_service().current_watermark())]

    return api.timed(env.from_collection(given)).process(Times())


@case("stateless: union of three streams", inputs=events, order=Order.NONE)
def union(api, env, given):
    """Unite all elements of three streams."""
    one, two = env.from_collection(given), env.from_collection([1, 2, 3])
    return one.union(two, env.from_collection(["x"])).map(lambda value: ("one", value))


@case("stateless: a stream that is read twice", inputs=events, order=Order.NONE)
def twice(api, env, given):
    """Read all elements in two readers, where one does not see the in-place changes of the other."""
    stream = env.from_collection([list(event) for event in given])

    def change(value):
        value.append("changed")
        return value

    return stream.map(change).union(stream.map(lambda value: (len(value), value)))


@case("stateless: project of a declared tuple")
def project(api, env, given):
    """Project fields by position."""
    of = api.Types.TUPLE([api.Types.STRING(), api.Types.INT(), api.Types.BOOLEAN()])
    return env.from_collection([("a", 1, True), ("b", 2, False)], of).project(2, 0)


@case("stateless: an input whose elements have a declared type")
def declared(api, env, given):
    """Read rows with names."""
    of = api.Types.ROW_NAMED(["name", "number"], [api.Types.STRING(), api.Types.LONG()])
    rows = env.from_collection([("a", 1), ("b", 2)], of)
    return rows.map(lambda row: (row.name, row["number"], row[0], row.as_dict(), len(row)))


@case("stateless: a sequence of numbers", order=Order.NONE)
def numbers(api, env, given):
    """Emit a sequence that includes both ends."""
    source = api.NumberSequenceSource(-2, 9)
    return env.from_source(source, api.WatermarkStrategy.no_watermarks(), "numbers", api.Types.LONG()).map(
        lambda number: number * 2
    )


@case("stateless: lines of files", order=Order.NONE)
def files(api, env, given):
    """Read the files of a folder except for hidden ones."""
    folder = Path(tempfile.mkdtemp(prefix="compare-lines-"))
    for name, text in {"a.txt": "one\ntwo\n\nthree", "b.txt": "grün\n", ".hidden": "no\n", "_hidden": "no\n"}.items():
        (folder / name).write_text(text)
    source = api.FileSource.for_record_stream_format(api.StreamFormat.text_line_format(), str(folder))
    strategy = api.WatermarkStrategy.no_watermarks()
    return env.from_source(source.process_static_file_set().build(), strategy, "files").map(lambda line: ("line", line))


@case("stateless: execute_and_collect with a limit")
def limit(api, env, given):
    """Collect a list with a maximum length."""
    return env.from_collection(list(range(10))).map(lambda number: number + 1).execute_and_collect(limit=3)


@case("stateless: what a function is told of its task")
def runtime(api, env, given):
    """Read numbers and names of tasks."""

    class Where(api.MapFunction):
        def open(self, runtime_context):
            self.found = (
                runtime_context.get_task_name(),
                runtime_context.get_number_of_parallel_subtasks(),
                runtime_context.get_index_of_this_subtask(),
                runtime_context.get_attempt_number(),
            )

        def map(self, value):
            return self.found[1:]

    return env.from_collection([1]).rebalance().map(Where()).name("where")
