"""Declared types: their conversion of values, and the text of results."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from tools.compare_flink.case import Shape, case


def _as_it_is(_api, value):
    return value


def _row(api, value):
    return api.Row(*value)


def _type(name, values, of, make=_as_it_is, collected=None, text=None):
    """Make three cases: the values that leave a task with the type, their text, and the values in the next task.

    ``collected`` and ``text`` are settings of the first two.
    """

    def stream(api, env):
        return env.from_collection(list(range(len(values)))).map(lambda number: make(api, values[number]), of(api.Types))

    @case(f"types: {name}, collected", **(collected or {}))
    def collect(api, env, given):
        """Collect by execute_and_collect."""
        return stream(api, env)

    @case(f"types: {name}, as text", shape=Shape.TEXT, **(text or {}))
    def write(api, env, given):
        """Write by a sink of text."""
        return stream(api, env)

    @case(f"types: {name}, seen by the next task")
    def see(api, env, given):
        """Read by a function."""
        return stream(api, env).rebalance().map(lambda value: [value])


IDENTITY = {"differs": "PyFlink writes the class and the address of the array"}
BYTES = {"differs": "PyFlink writes the class and the address of the pickled bytes"}

_type("STRING", ["a", "", "grün", "a,b"], lambda t: t.STRING())
_type("BOOLEAN", [True, False], lambda t: t.BOOLEAN())
_type("BYTE", [1, -128, 127], lambda t: t.BYTE())
_type("SHORT that wraps", [1, -1, 43_878], lambda t: t.SHORT())
_type("INT that wraps", [1, -1, 2**31, 2**33 + 5], lambda t: t.INT())
_type("LONG", [1, -1, 2**62, -(2**63)], lambda t: t.LONG())
_type(
    "FLOAT",
    [1.0, 0.1, 1e10, -2.5],
    lambda t: t.FLOAT(),
    collected={"differs": "PyFlink gives the double with the same digits, here it is the value of 32 bits, as functions see it"},
)
_type("DOUBLE", [1.0, 0.1, 1e10, 1e-5, 123456789.125, float("inf"), float("nan"), -0.0], lambda t: t.DOUBLE())
_type("BIG_DEC", [Decimal("1.20"), Decimal("-0.001"), Decimal("1234567890.123456789")], lambda t: t.BIG_DEC())
_type("SQL_DATE", [dt.date(2021, 2, 3), dt.date(1969, 12, 31)], lambda t: t.SQL_DATE())
_type("SQL_TIME", [dt.time(4, 5, 6), dt.time(0, 0)], lambda t: t.SQL_TIME())
_type(
    "SQL_TIMESTAMP",
    [dt.datetime(2021, 2, 3, 4, 5, 6), dt.datetime(2021, 2, 3, 4, 5, 6, 789_000)],
    lambda t: t.SQL_TIMESTAMP(),
    collected={"only_here": "PyFlink cannot collect timestamps"},
)
_type("LIST", [[1, 2], []], lambda t: t.LIST(t.LONG()))
_type("MAP", [{"a": 1}, {}], lambda t: t.MAP(t.STRING(), t.LONG()))
_type("PRIMITIVE_ARRAY", [[1, 2], []], lambda t: t.PRIMITIVE_ARRAY(t.LONG()), text=IDENTITY)
_type("BASIC_ARRAY", [["a", "b"], []], lambda t: t.BASIC_ARRAY(t.STRING()), text=IDENTITY)
_type("OBJECT_ARRAY", [[("a", 1)], []], lambda t: t.OBJECT_ARRAY(t.TUPLE([t.STRING(), t.LONG()])), text=IDENTITY)
_type(
    "PRIMITIVE_ARRAY of BYTE",
    [b"ab", b""],
    lambda t: t.PRIMITIVE_ARRAY(t.BYTE()),
    collected={"differs": "PyFlink gives a list of numbers, here it is bytes, as functions see them"},
    text=IDENTITY,
)
_type("TUPLE", [("a", 1, True), ("b", -2, False)], lambda t: t.TUPLE([t.STRING(), t.INT(), t.BOOLEAN()]))
_type("TUPLE in TUPLE", [("a", (1, 2.0))], lambda t: t.TUPLE([t.STRING(), t.TUPLE([t.INT(), t.DOUBLE()])]))
_type("ROW", [("a", 1), ("b", 2)], lambda t: t.ROW([t.STRING(), t.LONG()]), _row)
_type("ROW_NAMED", [("a", 1), ("b", 2)], lambda t: t.ROW_NAMED(["name", "number"], [t.STRING(), t.LONG()]), _row)
_type("ROW with None", [("a", None), (None, 2)], lambda t: t.ROW([t.STRING(), t.LONG()]), _row)
_type(
    "ROW of all that nests",
    [("a", [1, 2], {"k": 1.5}, ("t", None))],
    lambda t: t.ROW([t.STRING(), t.LIST(t.LONG()), t.MAP(t.STRING(), t.DOUBLE()), t.ROW([t.STRING(), t.LONG()])]),
    lambda api, value: api.Row(*value[:3], api.Row(*value[3])),
)
_type("no type", [1, "a", ("a", 1), [1], {"k": None}, 1.5, True], lambda t: None, text=BYTES)
_type("PICKLED_BYTE_ARRAY", [("a", 1), {1, 2}, Decimal("1.5")], lambda t: t.PICKLED_BYTE_ARRAY(), text=BYTES)


@case("types: BIG_INT", only_here="PyFlink fails at such numbers")
def big(api, env, given):
    """Return a number of any size."""
    return env.from_collection([1]).map(lambda number: 10**40, api.Types.BIG_INT())


@case("types: ROW of tuples", only_here="PyFlink takes only a Row for one")
def of_tuples(api, env, given):
    """Return fields by position."""
    return env.from_collection([1]).map(lambda number: ("a", number), api.Types.ROW([api.Types.STRING(), api.Types.LONG()]))


@case("types: rows that a function makes")
def rows(api, env, given):
    """Return rows with names, without names, and with a kind."""

    def row(number):
        match number:
            case 0:
                return api.Row("a", 1)
            case 1:
                return api.Row(name="a", number=1)
            case _:
                found = api.Row(name="b", number=2)
                found.set_row_kind(api.RowKind.DELETE)
                return found

    return env.from_collection([0, 1, 2]).map(row)


@case("types: rows of a kind, with a declared type", shape=Shape.TEXT)
def kinds(api, env, given):
    """Write the kind of rows as text."""

    def row(number):
        found = api.Row("a", number)
        found.set_row_kind(list(api.RowKind)[number])
        return found

    return env.from_collection([0, 1, 2, 3]).map(row, api.Types.ROW([api.Types.STRING(), api.Types.LONG()]))


@case("types: rows by name in any order")
def by_name(api, env, given):
    """Return fields in any order; the declared type determines it."""
    of = api.Types.ROW_NAMED(["name", "number"], [api.Types.STRING(), api.Types.LONG()])
    return (
        env.from_collection([1]).map(lambda number: api.Row(name="a", number=number), of).map(lambda row: (row.name, row[1], row))
    )


@case("types: instants", shape=Shape.TEXT)
def instants(api, env, given):
    """Write seconds and nanoseconds as text."""
    return env.from_collection([0, 1]).map(lambda number: api.Instant.of_epoch_milli(number * 1_500), api.Types.INSTANT())


@case("types: instants, collected", only_here="PyFlink cannot collect instants")
def instants_collected(api, env, given):
    """Collect seconds and nanoseconds."""
    return env.from_collection([1]).map(lambda number: api.Instant.of_epoch_milli(number * 1_500), api.Types.INSTANT())


@case("types: state with a declared type")
def state(api, env, given):
    """Store values, which the type of the state converts."""

    class Short(api.KeyedProcessFunction):
        def open(self, runtime_context):
            of = api.Types.ROW_NAMED(["n", "d"], [api.Types.LONG(), api.Types.DOUBLE()])
            self.state = runtime_context.get_state(api.ValueStateDescriptor("state", of))

        def process_element(self, value, ctx):
            before = self.state.value()
            self.state.update(api.Row(value, value / 2))
            yield before, self.state.value()[1]

    return env.from_collection([1, 2, 3]).key_by(lambda number: "k").process(Short())


@case(
    "types: a declared type between two functions",
    shape=Shape.TEXT,
    differs="PyFlink does not apply it where it runs the two together",
)
def between(api, env, given):
    """Convert values by each declared type."""
    of = api.Types.TUPLE([api.Types.STRING(), api.Types.SHORT()])
    stream = env.from_collection([("a", 40_000), ("b", 2)]).map(lambda pair: pair, of)
    return stream.map(lambda pair: api.Row(pair[1], pair[0]), api.Types.ROW([api.Types.LONG(), api.Types.STRING()]))
