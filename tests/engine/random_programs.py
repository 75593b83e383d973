"""Random programs for the oracle test."""

from __future__ import annotations

import datetime
import decimal
import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from airflow_pipelines.rows.variant_binary import encode_float, encode_integer, encode_text, encode_variant
from tests.engine import random_features

TEXTS = st.sampled_from(["", "a", "A", "b", "a'b"])
TYPES = {
    "i": ("int", st.one_of(st.none(), st.integers(-3, 3))),
    "b": ("bigint", st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**40, -(2**40)]))),
    "d": ("decimal(6,2)", st.one_of(st.none(), st.integers(-300, 300).map(lambda n: decimal.Decimal(n).scaleb(-2)))),
    "s": ("varchar", st.one_of(st.none(), TEXTS)),
    "t": ("date", st.one_of(st.none(), st.integers(0, 3).map(lambda n: datetime.date(2025, 1, 30) + datetime.timedelta(n)))),
    "f": ("double", st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")]))),
    "o": ("boolean", st.one_of(st.none(), st.booleans())),
}
"""Every table has these columns and a number ``k``, and all views have them too."""
ZEROS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), -float("nan")]))
MAPS = st.one_of(st.none(), st.permutations([("b", 1), ("a", 2), ("é", None)]).map(lambda pairs: pairs[:2]))
VARIANTS = st.one_of(
    st.none(),
    st.sampled_from(
        [
            encode_variant({"b": encode_text(b"2020-01-01"), "a": encode_integer(1) or b""}),
            encode_variant({"b": b"\x2c" + (18262).to_bytes(4, "little"), "a": encode_integer(1) or b""}),
            # The same with a dictionary in another order.
            {
                "value": b"\x02\x02\x01\x00\x00\x02\x07\x0c\x01" + b"\x2c" + (18262).to_bytes(4, "little"),
                "metadata": b"\x01\x02\x00\x01\x02ba",
            },
            encode_variant([encode_float(0.0), encode_float(float("nan"))]),
            encode_variant(b"\x20\x02" + (150).to_bytes(4, "little")),
            encode_variant(b"\x20\x01" + (15).to_bytes(4, "little")),
        ]
    ),
)
SEEN = {
    "m": ("map<varchar, int>", MAPS),
    "z": (
        "struct<a: double, b: array<double>>",
        st.one_of(st.none(), st.builds(lambda a, b: {"a": a, "b": b}, ZEROS, st.one_of(st.none(), st.lists(ZEROS, max_size=2)))),
    ),
    "v": ("variant", VARIANTS),
}
"""Columns of tables only, of types the values of which have several representations."""
COLUMNS = ["k", *TYPES, *SEEN]
TABLES = {"t0": None, "t1": ("k",), "t2": ("k", "s")}
"""Tables and their primary keys."""
KEY_VALUES = {"s": TEXTS}
"""Of columns of primary keys, which have no NULL. To filter NULLs out would reject most examples with many rows."""


def ddl() -> str:
    statements = []
    for table, key in TABLES.items():
        columns = ["k int" + (" not null" if key else "")]
        for name, (kind, _) in {**TYPES, **SEEN}.items():
            columns.append(f"{name} {kind}" + (" not null" if key and name in key else ""))
        tail = f", primary key ({', '.join(key)})" if key else ""
        statements.append(f"create table {table} ({', '.join(columns)}{tail}) with ('materialized' = 'true');")
    return "\n".join(statements)


PREDICATES = st.sampled_from(
    [
        "{a}.i > 0",
        "{a}.s like 'a%'",
        "{a}.o",
        "{a}.d is not null",
        "{a}.t >= date '2025-01-31'",
        "{a}.k <> 1",
        "coalesce({a}.b, 0) <= 1",
    ]
)
SCALARS = {
    "k": ["{a}.k", "{a}.k + 1", "coalesce({a}.i, {a}.k)"],
    "i": ["{a}.i", "case when {a}.o then {a}.i else 0 end", "cast({a}.s is null as int)"],
    "b": ["{a}.b", "{a}.b + {a}.i", "cast({a}.i as bigint)"],
    "d": ["{a}.d", "cast({a}.d * 2 as decimal(20,2))"],
    "s": ["{a}.s", "upper({a}.s)", "concat({a}.s, '-', cast({a}.i as string))"],
    "t": ["{a}.t", "date_add({a}.t, 1)"],
    "f": ["{a}.f", "{a}.f * 2"],
    "o": ["{a}.o", "not {a}.o", "{a}.i = {a}.k"],
}
LINEAR_CALLS = {
    "i": ["count(*)", "count({a}.i)", "sum({a}.i)", "count_if({a}.i > 0)", "cast(avg({a}.i) as decimal(20,6))"],
    "b": ["sum({a}.b)", "count({a}.b, {a}.s)", "sum({a}.k) filter (where {a}.o)"],
    "d": ["avg({a}.d)", "sum({a}.d)", "sum({a}.d) filter (where {a}.i > 0)"],
    "o": ["bool_and({a}.o)", "bool_or({a}.o)", "every({a}.o) filter (where {a}.k > 0)"],
}
OTHER_CALLS = {
    "i": ["min({a}.i)", "count(distinct {a}.s)", "max({a}.k)", "first({a}.i)", "last({a}.i) filter (where {a}.o)"],
    "d": ["max({a}.d)", "avg({a}.d)"],
    "s": ["max({a}.s)", "concat_ws(',', collect_list({a}.s))", "any_value({a}.s) ignore nulls"],
    "f": ["max({a}.f)", "min({a}.f)"],
    "t": ["min({a}.t)"],
}
DEFINITE = (
    (r"\bfirst\((\w\.i)\)", r"if(count(*) = count(\1), min(\1), null)"),
    (r"\blast\((\w\.i)\)", r"max(\1)"),
    (r"\bany_value\((\w\.s)\) ignore nulls", r"min(\1)"),
    (r"\bcollect_list\((\w\.s)\)", r"sort_array(collect_list(\1))"),
    (r", unnest\((split\(.*?\))\) with ordinality as x\(part, place\)", r" lateral view explode(\1) x as part"),
    (
        r"left join unnest\((array\(.*?\))\) with ordinality as x\(part, place\) on x\.place > 1",
        r"lateral view explode(slice(\1, 2, 9)) x as part",
    ),
)
"""Calls that Spark answers by the order of the rows, and clauses that it does not know, with what a view gives for them."""
CONDITIONS = [
    "{x}.k = {y}.k",
    "{x}.k = {y}.i and {x}.i >= {y}.k",
    "{x}.s <=> {y}.s",
    "{x}.k < {y}.k",
    "{x}.f = {y}.f",
    "{x}.t = {y}.t and {x}.o",
]
KEYS = ["{a}.k", "{a}.s", "{a}.t", "{a}.f", "{a}.i % 2", "{a}.o"]


@dataclass
class Programs:
    """Draws views one after the other; each may read tables and earlier views.

    Every view has the columns ``k`` and ``i`` ... ``o``, so that all can be read in the same way.
    """

    draw: Any
    readable: list[str] = field(default_factory=lambda: list(TABLES))
    depth: int = 0
    """How many features the present text is inside of."""
    joined: set[str] = field(default_factory=set)
    """Views with joins, which are not joined again: rows would multiply beyond reason."""

    def relation(self, again: bool = True) -> str:
        return self.draw(st.sampled_from([name for name in self.readable if again or name not in self.joined]))

    def source(self, again: bool = True) -> str:
        kind = self.draw(st.sampled_from(["plain", "plain", "plain", "nested", "grouped", "widened", "feature"]))
        if kind == "nested":
            columns = ", ".join(["k", *TYPES])
            return f"(select {columns} from {self.relation(again)} as n where {self.draw(PREDICATES).format(a='n')})"
        if kind == "grouped":
            return f"({self.grouped()})"
        if kind == "feature" and self.depth < 2:
            self.depth += 1
            text = self.feature()
            self.depth -= 1
            return f"({text})"
        if kind == "widened":
            return (
                f"(select k, i, i as b, cast(i as decimal(3,1)) as d, s, t, cast(k as float) as f, o from {self.relation(again)}"
                f" union all select i, k, b, d, s, t, f, o from {self.relation(again)})"
            )
        return self.relation(again)

    def items(self, aliases: list[str]) -> str:
        parts = []
        for column, choices in SCALARS.items():
            alias = self.draw(st.sampled_from(aliases))
            parts.append(f"{self.draw(st.sampled_from(choices)).format(a=alias)} as {column}")
        return ", ".join(parts)

    def where(self, aliases: list[str], always: list[str]) -> str:
        parts = [*always]
        if self.draw(st.booleans()):
            parts.append(self.draw(PREDICATES).format(a=self.draw(st.sampled_from(aliases))))
        return f" where {' and '.join(parts)}" if parts else ""

    def project(self) -> str:
        return f"select {self.items(['a'])} from {self.source()} as a{self.where(['a'], [])}"

    def join(self, kind: str = "join") -> str:
        names = ["a", "b", "c"][: self.draw(st.integers(2, 3))]
        text = f"{self.source(again=False)} as a"
        for before, name in itertools.pairwise(names):
            condition = self.draw(st.sampled_from(CONDITIONS))
            text += f" {kind} {self.source(again=False)} as {name} on {condition.format(x=before, y=name)}"
        always = []
        if self.draw(st.integers(0, 3)) == 0:
            text += f" cross join (select count(*) as n, min(k) as m from {self.relation(False)}) as g"
            always.append("a.k < g.n" if self.draw(st.booleans()) else "(g.m is null or a.k >= g.m)")
        return f"select {self.items(names)} from {text}{self.where(names, always)}"

    def union(self) -> str:
        return " union all ".join(self.draw(st.sampled_from([self.project, self.grouped]))() for _ in range(2))

    def _calls(self, alias: str) -> dict[str, str]:
        calls = {name: self.draw(st.sampled_from(choices)) for name, choices in LINEAR_CALLS.items()}
        if self.draw(st.integers(0, 2)) == 0:
            other = self.draw(st.sampled_from(sorted(OTHER_CALLS)))
            calls[other] = self.draw(st.sampled_from(OTHER_CALLS[other]))
        return {name: text.format(a=alias) for name, text in calls.items()}

    def _assembled(self, calls: dict[str, str], keys: dict[str, str]) -> str:
        types = {"k": "int", **{name: kind for name, (kind, _) in TYPES.items()}}
        items = []
        for column in types:
            text = keys.get(column) or calls.get(column) or "null"
            # Sums and averages have wider types than the columns that everything else here expects.
            kind = {"varchar": "string", "decimal(6,2)": "decimal(20,2)"}.get(types[column], types[column])
            items.append(f"cast({text} as {kind}) as {column}")
        return ", ".join(items)

    def grouped(self) -> str:
        calls = self._calls("a")
        key = self.draw(st.sampled_from(KEYS)).format(a="a")
        keys = {"k": "cast(a.k as int)"} if key == "a.k" else {key[2] if key[1] == "." and len(key) == 3 else "k": key}
        having = self.draw(
            st.sampled_from(["", "", " having count(*) > 1", " having sum(a.i) > 0 or count(a.d) = 1", " having count(a.i)"])
        )
        source = self.source() if self.draw(st.booleans()) else self.relation()
        return f"select {self._assembled(calls, keys)} from {source} as a{self.where(['a'], [])} group by {key}{having}"

    def grouped_join(self) -> str:
        calls = self._calls("b")
        return (
            f"select {self._assembled(calls, {'s': 'a.s'})} from {self.relation(False)} as a join {self.relation(False)} as b"
            f" on a.k = b.k{self.where(['a', 'b'], [])} group by a.s"
        )

    def overall(self) -> str:
        having = self.draw(st.sampled_from(["", "", " having count(*) > 2"]))
        return f"select {self._assembled(self._calls('a'), {})} from {self.source()} as a{self.where(['a'], [])}{having}"

    def common(self) -> str:
        one, other = self.grouped(), self.project()
        # The name of a table is hidden from what follows, which must not ask for columns that only the table has.
        name = "d" if re.search(rf"\.({'|'.join(SEEN)})\b", other) else "t0"
        return f"with {name} as ({one}), c as ({other}) select {self.items(['a', 'b'])} from {name} as a join c as b on a.k = b.k"

    def feature(self) -> str:
        """One of the constructs that are not composed of others here."""
        return self.draw(st.sampled_from(random_features.FEATURES))(self)

    def view(self) -> str:
        linear, grouped = [self.project, self.join, self.union], [self.grouped, self.grouped, self.grouped_join]
        features = [self.feature] * 6
        return self.draw(st.sampled_from([*linear, *grouped, self.overall, self.common, *features]))()

    def program(self, views: int) -> tuple[str, dict[str, str]]:
        queries = {}
        for number in range(self.draw(st.integers(2, views))):
            name = f"v{number}"
            queries[name] = self.view()
            if " join " in queries[name] or any(f" {other} " in f"{queries[name]} " for other in self.joined):
                self.joined.add(name)
            self.readable.append(name)
        kinds = {name: self.draw(st.sampled_from(["materialized view", "view"])) for name in queries}
        if self.draw(st.booleans()):
            queries["x"], kinds["x"] = random_features.several_forms(self), "materialized view"
        views = [f"create {kinds[name]} {name} as {query};" for name, query in queries.items()]
        return "\n".join([ddl(), *views]), {name: _definite(query) for name, query in queries.items()}


def _definite(query: str) -> str:
    """The query with calls that Spark answers by the order of the rows replaced by what they are to give."""
    for call, same in DEFINITE:
        query = re.sub(call, same, query)
    return query


@st.composite
def programs(draw: Any, views: int) -> tuple[str, dict[str, str]]:
    """A program's text, and queries for Spark that its views should equal."""
    return Programs(draw).program(views)
