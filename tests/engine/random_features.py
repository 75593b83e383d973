"""Constructs of SQL for random programs: each gives a query with the columns that all relations of a random program have.

``p`` is what draws: relations, SELECT lists and conditions come from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.engine.random_programs import Programs

TOTAL_ORDERS = (
    "{a}.k, {a}.i, {a}.b, {a}.d, {a}.s, {a}.t, {a}.f, {a}.o",
    "{a}.s desc nulls first, {a}.i, {a}.k, {a}.b, {a}.d, {a}.t, {a}.f, {a}.o",
    "{a}.f desc, {a}.t nulls last, {a}.k desc, {a}.i, {a}.b, {a}.d, {a}.s, {a}.o",
)
"""Orders without ties between different rows."""
MATCHES = (
    "{y}.k = {x}.k",
    "{y}.i = {x}.i and {y}.k <= {x}.k",
    "{y}.s <=> {x}.s",
    "{y}.f = {x}.f",
    "{y}.t = {x}.t and {x}.o",
    "{y}.b = {x}.i",
    "cast({y}.t as timestamp) = {x}.t",
)


def _one(p: Programs, *choices: str) -> str:
    return str(p.draw(st.sampled_from(choices)))


def _match(p: Programs, x: str, y: str) -> str:
    return _one(p, *MATCHES).format(x=x, y=y)


def _columns(alias: str, **other: str) -> str:
    """All columns of ``alias``, some of them replaced by expressions."""
    kinds = {"k": "int", "i": "int", "b": "bigint", "d": "decimal(20,2)", "s": "string", "t": "date", "f": "double", "o": "boolean"}
    texts = {name: f"cast({text} as {kinds[name]})" for name, text in other.items()}
    for name, kind in kinds.items():
        kinds[name] = texts[name] if name in other else f"cast({alias}.{name} as {kind})"
    return ", ".join(f"{text} as {name}" for name, text in kinds.items())


def outer_join(p: Programs) -> str:
    kind = _one(p, "left join", "right join", "full join", "left outer join")
    kind_2 = _one(p, "", "", "left join", "join", "full join")
    third = f" {kind_2} {p.relation(False)} as c on {_match(p, _one(p, 'a', 'b'), 'c')}" if kind_2 else ""
    names = ["a", "b", "c"] if kind_2 else ["a", "b"]
    on = _one(p, _match(p, "a", "b"), _match(p, "a", "b"), "a.k < b.k", "a.k = b.k and b.i > 0 and a.o")
    text = f"{p.source(False)} as a {kind} {p.relation(False)} as b on {on}{third}"
    return f"select {p.items(names)} from {text}{p.where(names, [])}"


def shared_columns(p: Programs) -> str:
    kind = _one(p, "join", "left join", "right join", "full join")
    one, other = p.relation(False), p.relation(False)
    text = f"{one} as a {kind} (select k, s, i as i2, o as o2 from {other}) as r using (k{_one(p, '', ', s')})"
    return f"select k, i2 as i, a.b, a.d, {_one(p, 'a.s', 'r.s')} as s, a.t, a.f, o2 as o from {text}"


def chained(p: Programs) -> str:
    kinds = [_one(p, "join", "left join", "right join") for _ in range(2)]
    second = f"(select k, i as i2 from {p.relation(False)}) as y using (k)"
    third = f"(select k, o as o2 from {p.relation(False)}) as r using (k)"
    text = f"{p.relation(False)} as a {kinds[0]} {second} {kinds[1]} {third}"
    return f"select k, i2 as i, a.b, a.d, a.s, a.t, a.f, o2 as o from {text}"


def half_join(p: Programs) -> str:
    kind = _one(p, "left semi join", "left anti join", "semi join", "anti join")
    text = f"{p.source(False)} as a {kind} {p.relation()} as b on {_match(p, 'a', 'b')}"
    return f"select {p.items(['a'])} from {text}{p.where(['a'], [])}"


def set_operation(p: Programs) -> str:
    kind = _one(p, "union", "intersect", "intersect all", "except", "except all", "minus")
    return f"{p.project()} {kind} {p.project()}"


def distinct(p: Programs) -> str:
    return f"select distinct {p.items(['a'])} from {p.source()} as a{p.where(['a'], [])}"


def unnested(p: Programs) -> str:
    view = _one(
        p,
        "lateral view explode(split(a.s, '')) x as part",
        "lateral view explode(split(a.s, '')) as part",
        "lateral view outer explode(array(a.s, 'z', a.s)) x as part",
        "lateral view explode(map(coalesce(a.s, ''), 1)) x as part, place",
        "lateral view posexplode(sequence(0, a.k)) x as place, part",
        ", unnest(split(a.s, '')) with ordinality as x(part, place)",
        "left join unnest(array(a.s, 'z')) with ordinality as x(part, place) on x.place > 1",
        "lateral view outer inline(if(a.o, array(named_struct('n', 1, 'v', 'a'), named_struct('n', 2, 'v', a.s)), null))"
        " x as place, part",
    )
    return f"select {_columns('a', s='part')} from {p.source()} as a {view}{p.where(['a'], [])}"


def exists(p: Programs) -> str:
    call = _one(p, "exists", "not exists")
    inner = f"select 1 from {p.relation()} as b where {_match(p, 'a', 'b')}{_one(p, '', ' and b.i > 0', ' and b.i > a.k')}"
    return f"select {p.items(['a'])} from {p.source()} as a{p.where(['a'], [f'{call} ({inner})'])}"


def membership(p: Programs) -> str:
    outer, inner = _one(p, "a.k | b.k", "a.i | b.i", "a.s | b.s", "(a.k, a.s) | b.k, b.s").split(" | ")
    test = "in" if outer.startswith("(") else _one(p, "in", "not in")
    where = _one(p, "", " where b.i is not null", " where b.o", " where b.t = a.t")
    condition = f"{outer} {test} (select {inner} from {p.relation()} as b{where})"
    return f"select {p.items(['a'])} from {p.source()} as a{p.where(['a'], [condition])}"


def scalar(p: Programs) -> str:
    call = _one(p, "count(*)", "max(b.k)", "sum(b.i)", "min(b.i)", "count(b.s)")
    where = _one(p, "", " where b.k = a.k", " where b.s = a.s and b.o", " where b.k < a.k")
    text = f"(select {call} from {p.relation()} as b{where})"
    if p.draw(st.booleans()):
        return f"select {_columns('a', i=text)} from {p.source()} as a{p.where(['a'], [])}"
    return f"select {p.items(['a'])} from {p.source()} as a{p.where(['a'], [f'a.k {_one(p, chr(60), chr(62) + chr(61))} {text}'])}"


def mixed_subqueries(p: Programs) -> str:
    one = f"exists (select 1 from {p.relation()} as b where {_match(p, 'a', 'b')})"
    other = f"a.i in (select c.i from {p.relation()} as c)"
    where = _one(p, "true", f"({one} or a.k > 1)")
    return f"select {_columns('a', o=f'({one}) or {other}')} from {p.relation()} as a{p.where(['a'], [where])}"


def window(p: Programs) -> str:
    partition = _one(p, "partition by a.s ", "partition by a.k ", "partition by a.t, a.k ", "")
    order = "order by " + _one(p, *TOTAL_ORDERS).format(a="a")
    every, near = f"({partition}{order})", f"({partition}{order} rows between 1 preceding and 1 following)"
    calls = {
        "i": _one(p, f"row_number() over {every}", f"rank() over ({partition}order by a.i)", f"ntile(2) over {every}"),
        "b": _one(p, f"sum(a.i) over ({partition})", f"lag(a.b) over {every}", f"count(*) over ({partition}order by a.k)"),
        "k": _one(p, "a.k", f"max(a.k) over {near}", f"nth_value(a.k, 2) over {every}"),
    }
    text = f"select {_columns('a', **calls)} from {p.source()} as a{p.where(['a'], [])}"
    return text if p.draw(st.booleans()) else f"select * from ({text}) where i <= 2"


def window_over_groups(p: Programs) -> str:
    calls = {"i": "count(*)", "b": "sum(count(*)) over (partition by a.k % 2)", "f": "rank() over (order by count(*), a.k)"}
    other = dict.fromkeys(("d", "t", "o"), "null")
    return f"select {_columns('a', s='null', **calls, **other)} from {p.relation()} as a group by a.k"


def top(p: Programs) -> str:
    order = _one(p, *TOTAL_ORDERS).format(a="a")
    limit = _one(p, "limit 1", "limit 3", "limit 2 offset 1")
    return f"select {_columns('a')} from {p.source()} as a{p.where(['a'], [])} order by {order} {limit}"


def grouping_sets(p: Programs) -> str:
    group = _one(p, "rollup (a.k, a.s)", "cube (a.k, a.s)", "grouping sets ((a.k, a.s), (a.s), ())", "grouping sets ((a.k), (a.s))")
    calls = {
        "i": "grouping_id(a.k, a.s)",
        "b": _one(p, "count(*)", "sum(a.i)"),
        "d": _one(p, "sum(a.d)", "max(a.d)"),
        "o": "grouping(a.s) = 1",
    }
    return f"select {_columns('a', **calls, t='null', f='null')} from {p.source()} as a{p.where(['a'], [])} group by {group}"


def pivot(p: Programs) -> str:
    call = _one(p, "sum(i)", "count(*)", "max(d)", "count(distinct i)")
    rows = f"(select k, s, i, d from {p.relation(False)})"
    columns = _columns("a", k="0", i="a.one", b="a.two", d="null", t="null", f="null", o="null")
    return f"select {columns} from {rows} pivot ({call} for k in (0 as one, 1 as two)) as a"


def unpivot(p: Programs) -> str:
    rows = f"(select k, b, d, t, f, o, i as one, k + 1 as two from {p.relation(False)})"
    turned = f"unpivot{_one(p, '', ' include nulls')} (n for word in (one, two)) as a"
    return f"select {_columns('a', i='a.n', s='a.word')} from {rows} {turned}"


def distinct_calls(p: Programs) -> str:
    calls = {
        "i": _one(p, "count(distinct a.i)", "sum(distinct a.i)", "count(distinct a.i, a.s)"),
        "b": _one(p, "count(*)", "count(distinct a.s)", "sum(a.b)"),
        "k": _one(p, "count(distinct a.i) filter (where a.o)", "max(a.k)"),
    }
    key = _one(p, "a.s", "a.t", "a.k % 2")
    keys = {"a.s": {"s": "a.s", "t": "null"}, "a.t": {"s": "null", "t": "a.t"}, "a.k % 2": {"s": "null", "t": "null"}}[key]
    return f"select {_columns('a', **calls, **keys, d='null', f='null', o='null')} from {p.source()} as a group by {key}"


def latest_rows(p: Programs) -> str:
    calls = {"i": "max(struct(a.i, a.k)).i", "k": "max((a.i, a.k)).k", "b": "count(*)"}
    other = dict.fromkeys(("d", "t", "f", "o"), "null")
    return f"select {_columns('a', **calls, **other)} from {p.source()} as a group by a.s"


def generated(p: Programs) -> str:
    call = _one(p, "posexplode(split(a.s, '')) as (place, part)", "explode(map(a.k, a.s)) as (place, part)")
    return f"select {_columns('x', i='x.place', s='x.part')} from (select a.*, {call} from {p.source()} as a where a.k >= 0) as x"


def statistics(p: Programs) -> str:
    calls = {
        "d": _one(p, "round(stddev(a.i), 2)", "round(variance(a.k), 2)", "round(var_pop(a.d), 2)", "avg(a.d)"),
        "i": _one(p, "min(a.i)", "max(a.k)", "count_if(a.o)"),
        "f": _one(p, "max(a.f)", "percentile(a.i, 0.5)"),
    }
    other = dict.fromkeys(("k", "b", "t", "o"), "null")
    return f"select {_columns('a', **calls, **other)} from {p.source()} as a group by a.s"


def time_windows(p: Programs) -> str:
    spec = _one(p, "window(cast(a.t as timestamp), '2 days')", "window(cast(a.t as timestamp), '2 days', '1 day')")
    calls = {"t": "w.end", "i": "count(*)", "b": "sum(a.i)"}
    inner = f"select {spec} as w, a.* from {p.relation()} as a where a.t is not null"
    return f"select {_columns('a', **calls, k='0', d='max(a.d)', s='null', f='null', o='null')} from ({inner}) as a group by w"


def constants(p: Programs) -> str:
    rows = "values (1, 'a'), (2, null), (1, 'a')"
    return f"select {_columns('a', i='c.n', s='c.m')} from {p.source(False)} as a join ({rows}) as c(n, m) on a.k = c.n"


def lateral_alias(p: Programs) -> str:
    return f"select a.k + 1 as k, k + a.i as i, a.b, a.d, a.s, a.t, a.f, a.o from (select k as q, * from {p.relation()}) as a"


LOOKS = (
    "cast(-{a}.z.a as string)",
    "cast({a}.z.b[0] as string)",
    "to_json({a}.m)",
    "concat(schema_of_variant({a}.v), to_json({a}.v))",
    "to_json({a}.z)",
    "cast(-{a}.f as string)",
    "to_json(map_concat({a}.m, map('_', 1)))",
)
"""Expressions that see how a value is represented."""
HELD = ("-{a}.f", "{a}.f * -1", "coalesce({a}.z.a, -{a}.f)", "cast('-0' as double)")
MAPS = ("{a}.m", "from_json(concat('{{\"z\":', {a}.k, ',\"a\":1}}'), 'map<string,int>')", "map('b', {a}.k, 'a', {a}.i)")
VARIANTS = (
    "{a}.v",
    "parse_json(concat('{{\"b\":', {a}.k, ',\"a\":1.50}}'))",
    "cast({a}.t as variant)",
    "cast(cast({a}.t as string) as variant)",
)


def _table(p: Programs) -> str:
    """A relation with columns whose values have several representations."""
    return _one(p, "t0", "t0", "t1", "t2")


def looks(p: Programs) -> str:
    """What sees a representation directly."""
    return f"select {_columns('a', s=_one(p, *LOOKS).format(a='a'))} from {_table(p)} as a{p.where(['a'], [])}"


def looks_through(p: Programs) -> str:
    """What sees the representation of what a derived table computes, through a join, a window or groups."""
    held, maps = _one(p, *HELD).format(a="n"), _one(p, *MAPS).format(a="n")
    window = (
        "row_number() over (partition by n.k order by n.i, n.b, n.d, n.s, n.t, n.f, n.o, to_json(n.m), to_json(n.z), to_json(n.v))"
    )
    inner = f"(select n.k, n.i, n.b, n.d, n.s, n.t, n.f, n.o, {held} as y, {maps} as w, {window} as r from {_table(p)} as n)"
    look = _one(p, "cast(a.y as string)", "to_json(a.w)", "concat(cast(a.y as string), a.r)", "cast(a.y + 1 as string)")
    join = _one(
        p, "", f" left join {p.relation(False)} as b on {_match(p, 'a', 'b')}", f" full join {p.relation(False)} as b on a.f = b.f"
    )
    return f"select {_columns('a', s=look, i='a.r')} from {inner} as a{join}"


def looks_at_groups(p: Programs) -> str:
    """What sees the representation of aggregates and of keys."""
    look = _one(p, "cast(max(a.y) as string)", "cast(-min(a.y) as string)", "cast(sum(a.y) as string)", "to_json(max(a.e))")
    key = _one(p, "a.k", "a.y", "a.f", "a.e")
    inner = f"(select n.*, {_one(p, *HELD).format(a='n')} as y, named_struct('q', -n.f) as e from {_table(p)} as n)"
    other = dict.fromkeys(("k", "b", "d", "t", "f", "o"), "null")
    return f"select {_columns('a', s=look, i='count(*)', **other)} from {inner} as a group by {key}"


def several_forms(p: Programs) -> str:
    """A view with columns whose values have several representations."""
    texts = [_one(p, *choices).format(a="a") for choices in (HELD, MAPS, VARIANTS)]
    items = f"a.k, {texts[0]} as y, {texts[1]} as m, {texts[2]} as v, a.z"
    table = _table(p)
    tail = _one(
        p,
        "",
        f" left join {p.relation(False)} as b on {_match(p, 'a', 'b')}",
        f" where exists (select 1 from {p.relation()} as b where {_match(p, 'a', 'b')})",
        f" join {p.relation(False)} as b on a.k = b.k",
    )
    extra = _one(
        p,
        "a.i as n",
        "sum(a.i) over (partition by a.k) as n",
        "first_value(a.z) over (partition by a.k order by a.k, a.i, a.s, a.f, a.z) as n",
    )
    return f"select {items}, {extra} from {table} as a{tail}"


FEATURES: tuple[Callable[[Programs], str], ...] = (
    outer_join,
    outer_join,
    shared_columns,
    chained,
    half_join,
    set_operation,
    distinct,
    unnested,
    exists,
    membership,
    scalar,
    mixed_subqueries,
    window,
    window,
    window_over_groups,
    top,
    grouping_sets,
    pivot,
    unpivot,
    distinct_calls,
    latest_rows,
    generated,
    statistics,
    time_windows,
    constants,
    lateral_alias,
    looks,
    looks_through,
    looks_at_groups,
)
