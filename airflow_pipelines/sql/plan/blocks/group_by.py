"""Plans GROUP BY and HAVING: the keys, calls and accumulators of an aggregate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, ValueCall, kept_value, linear_form, value_call
from airflow_pipelines.sql.plan.blocks.grouping_sets import grouping_sets, in_sets, is_session, over_sets
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, is_key_type
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    distinct,
    is_generator,
    require_row_or_group,
    sql,
    substitute,
)
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call
from airflow_pipelines.sql.plan.ir.linear import Item, Select
from airflow_pipelines.sql.plan.ir.to_sql import groups_over, linear_to_sql
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls

Outputs = list[tuple[str, exp.Expr]]
"""The SELECT list: names and trees."""


@dataclass(frozen=True, slots=True)
class Groups:
    """A query with GROUP BY: its keys and calls as trees of the query.

    :param sets: the grouping sets where there are several, as numbers of keys
    """

    keys: list[exp.Expr]
    calls: list[exp.Expr]
    sets: tuple[frozenset[int], ...] = ()


def groups_of(tree: exp.Select, outputs: Outputs, above: Sequence[exp.Expr]) -> Groups | None:
    """The grouping of a SELECT.

    :param tree: the SELECT
    :param outputs: its SELECT list
    :param above: all expressions that are evaluated per group
    :returns: None when the SELECT does not group
    """
    group = tree.args.get("group")
    calls = distinct(call for part in above for call in aggregate_calls(part))
    if group is None and not calls and tree.args.get("having") is None:
        return None
    keys, sets = grouping_sets(group, [item for _, item in outputs])
    for part in [*keys, *(argument for call in calls for argument in call.iter_expressions())]:
        require_row_or_group(part)
    return Groups(keys, calls, sets)


def expand_grouping_sets(block: Block, groups: Groups) -> tuple[Groups, Callable[[exp.Expr], exp.Expr]]:
    """Repeat each row of a block once per grouping set.

    :param block: the rows; it is changed
    :param groups: the grouping, with its sets
    :returns: the grouping of the repeated rows, and a function that rewrites the expressions above for it
    """
    alias = block.builder.name("s")
    block.required = block.required | {(alias, "n")}
    numbers = ", ".join(str(at) for at in range(len(groups.sets)))
    block.laterals.append(f"LATERAL VIEW EXPLODE(ARRAY({numbers})) {quote(alias)} AS `n`")
    block.add_columns(alias, ["n"])
    number = exp.column("n", table=alias, quoted=True)
    keys = [number, *in_sets(groups.keys, groups.sets, number)]
    return Groups(distinct(keys), groups.calls), lambda tree: over_sets(tree, groups.keys, groups.sets, number)


def aggregate(block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None) -> Aggregate | AffectedKeys | Select:
    """Plan an aggregate.

    :param block: the rows
    :param groups: keys and calls
    :param outputs: the SELECT list, over keys and calls
    :param having: the condition of HAVING, if there is one
    :returns: the node that gives ``outputs`` for each group for which ``having`` holds
    """
    above = [item for _, item in outputs] + ([having] if having is not None else [])
    for part in above:
        require_row_or_group(part)
        if is_generator(part):
            # An aggregate's items are evaluated inside CASE, where Spark does not allow what gives several rows.
            raise NotIncremental("a generator over an aggregate has no incremental rule yet")
    node = _plain(block, groups, outputs, having)
    if any(is_session(key) for key in groups.keys):
        return _sessions(block, node)
    by_value = _by_value(node, groups.calls)
    if by_value is not None:
        return _by_pairs(block, groups, by_value, outputs, having)
    if not node.is_linear:
        rows = _rereadable(block, node.input)
        node = replace(node, input=rows)
    return node


ByValue = Mapping[exp.Expr, ValueCall]
"""Calls that depend only on the distinct values of their arguments."""


def _by_value(node: Aggregate, calls: Sequence[exp.Expr]) -> ByValue | None:
    """The calls to compute from groups of equal arguments: when some have DISTINCT, and all others are linear, MAX or MIN."""
    found: dict[exp.Expr, ValueCall] = {}
    for call, tree in zip(node.calls, calls, strict=True):
        value = value_call(tree)
        if value is not None and (value.distinct or call.value is None):
            found[tree] = value
        elif call.value is None:
            return None
    return found if any(value.distinct for value in found.values()) else None


def _plain(block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None) -> Aggregate:
    """One aggregate with all calls."""
    fields = distinct(found for part in [*groups.keys, *groups.calls] for found in part.find_all(exp.Column))
    below: dict[exp.Expr, exp.Expr] = {found: exp.column(f"__c{at}") for at, found in enumerate(fields)}
    rows = block.select([(f"__c{at}", found) for at, found in enumerate(fields)])
    keys = tuple(Item(f"__k{at}", _text(key, below)) for at, key in enumerate(groups.keys))
    named: dict[exp.Expr, exp.Expr] = {key: exp.column(f"__k{at}") for at, key in enumerate(groups.keys)}
    named |= {call: exp.column(f"__r{at}") for at, call in enumerate(groups.calls)}
    items = tuple(Item(name, _text(item, named)) for name, item in outputs)
    condition = _text(having, named) if having is not None else None
    calls, accumulators, key_types, input_types = _typed(block, rows, keys, [substitute(call, below) for call in groups.calls])
    if any("map<" in kind for kind in key_types):
        # Spark groups by a MAP, but cannot compare one, and affected groups are found by comparing.
        raise NotIncremental("groups by a MAP have no incremental rule yet")
    return Aggregate(rows, keys, key_types, calls, tuple(accumulators.found), items, condition, input_types)


def _sessions(block: Block, node: Aggregate) -> AffectedKeys:
    """Plan groups by ``session_window``: a session depends on all rows that have its other keys."""
    typed = zip(node.keys, node.key_types, strict=True)
    keyed = [(key.text, kind) for key, kind in typed if "session_window(" not in key.text.lower() and is_key_type(kind)]
    source = block.builder.name("s")
    columns = ", ".join(quote(item.name) for item in node.input.items)
    items = ", ".join(f"{item.text} AS {quote(item.name)}" for item in node.items)
    having = f" WHERE {node.having}" if node.having else ""
    query = f"SELECT {items} FROM ({groups_over(node, f'SELECT {columns} FROM {quote(source)}')}){having}"
    rows = KeyedSource(source, block.builder.rereadable(node.input), tuple(key for key, _ in keyed))
    return AffectedKeys((rows,), query, node.columns, tuple(kind for _, kind in keyed), Shape.WINDOW)


def _by_pairs(
    block: Block, groups: Groups, by_value: ByValue, outputs: Outputs, having: exp.Expr | None
) -> Aggregate | AffectedKeys | Select:
    """Plan DISTINCT calls over groups of equal arguments and the others over the rows, and join the parts by the keys."""
    builder = block.builder
    packed, names = block.as_node()
    arguments = list(dict.fromkeys(value.arguments for value in by_value.values()))
    plain = [call for call in groups.calls if call not in by_value]
    if len(arguments) > 1 or plain:
        # Several aggregates read the same rows, which are computed once.
        rows = builder.rereadable(packed)
        if rows is not packed:
            block.replace_by(rows, names)
    parts: list[tuple[Block, Groups, dict[exp.Expr, exp.Expr]]] = []
    for argument in arguments:
        chosen = {call: value for call, value in by_value.items() if value.arguments == argument}
        parts.append(_pairs(block, groups.keys, argument, chosen))
    if plain:
        parts.append((block, Groups(groups.keys, plain), {tree: tree for tree in [*groups.keys, *plain]}))
    if len(parts) == 1:
        inner, level, named = parts[0]
        condition = substitute(having, named) if having is not None else None
        return aggregate(inner, level, [(name, substitute(item, named)) for name, item in outputs], condition)
    whole = Block(builder, frozenset())
    replaced: dict[exp.Expr, exp.Expr] = {}
    for number, (inner, level, named) in enumerate(parts):
        alias = builder.name("p")
        members = [*level.keys, *level.calls]
        scan = builder.stage(aggregate(inner, level, [(f"g{at}", tree) for at, tree in enumerate(members)] or [_ONE], None))
        whole.required = whole.required | {(alias, name) for name in scan.columns}
        whole.add(alias, scan)
        found: dict[exp.Expr, exp.Expr] = {
            tree: exp.column(f"g{members.index(now)}", table=alias, quoted=True) for tree, now in named.items() if now in members
        }
        for key in groups.keys if number else ():
            whole.filter(exp.NullSafeEQ(this=replaced[key].copy(), expression=found[key].copy()))
        replaced = {**found, **replaced}
    if having is not None:
        whole.filter(substitute(having, replaced))
    return whole.select([(name, substitute(item, replaced)) for name, item in outputs])


_ONE = ("g0", exp.Literal.number(1))


def _pairs(
    block: Block, keys: Sequence[exp.Expr], argument: tuple[exp.Expr, ...], calls: ByValue
) -> tuple[Block, Groups, dict[exp.Expr, exp.Expr]]:
    """The groups of equal keys and arguments as a block, the calls over it, and what replaces the query's keys and calls."""
    builder, alias = block.builder, block.builder.name("d")
    counts: dict[exp.Expr, exp.Expr] = {
        call.condition: exp.CountIf(this=call.condition.copy()) for call in calls.values() if call.condition is not None
    }
    members = distinct([*keys, *argument])
    outputs = [(f"m{at}", tree) for at, tree in enumerate(members)] + [(f"n{at}", tree) for at, tree in enumerate(counts.values())]
    scan = builder.stage(_plain(block, Groups(members, list(counts.values())), outputs, None))
    inner = Block(builder, frozenset((alias, name) for name in scan.columns))
    inner.add(alias, scan)
    place = {tree: exp.column(f"m{at}", table=alias, quoted=True) for at, tree in enumerate(members)}
    there = {
        condition: exp.GT(this=exp.column(f"n{at}", table=alias, quoted=True), expression=exp.Literal.number(0))
        for at, condition in enumerate(counts)
    }
    named: dict[exp.Expr, exp.Expr] = {key: place[key] for key in keys}
    for tree, call in calls.items():
        function = call.over([place[one].copy() for one in argument])
        if call.condition is not None:
            function = exp.Filter(this=function, expression=exp.Where(this=there[call.condition].copy()))
        named[tree] = function
    return inner, Groups([named[key] for key in keys], distinct(named[call] for call in calls)), named


def materialize_groups(block: Block, groups: Groups, having: exp.Expr | None) -> dict[exp.Expr, exp.Expr]:
    """Replace a block by its groups, for what is evaluated over them: window functions, subqueries, generators.

    :param block: the rows; it is changed
    :param groups: the grouping
    :param having: the condition of HAVING, if there is one
    :returns: what replaces the query's keys and calls in the expressions above
    """
    alias = block.builder.name("g")
    trees = [*groups.keys, *groups.calls]
    names = [f"g{at}" for at in range(len(trees))]
    outputs = list(zip(names, trees, strict=True)) or [("g0", exp.Literal.number(1))]
    scan = block.builder.stage(aggregate(block, groups, outputs, having))
    block.required = block.required | {(alias, name) for name in names}
    block.replace_by(scan, {(alias, name): name for name in names})
    return {tree: exp.column(name, table=alias, quoted=True) for name, tree in zip(names, trees, strict=True)}


def _rereadable(block: Block, rows: Select) -> Select:
    """The rows, as a relation of their own when it would be expensive to compute them again in each step."""
    node = block.builder.rereadable(rows)
    if node is rows:
        return rows
    copy = Block(block.builder, frozenset())
    copy.add("s", node)
    return Select(tuple(copy.sources), tuple(Item(name, f"`s`.`{name}`") for name in node.columns))


def _typed(
    block: Block, rows: Select, keys: tuple[Item, ...], calls: list[exp.Expr]
) -> tuple[tuple[Call, ...], Accumulators, tuple[str, ...], tuple[str, ...]]:
    """The calls with their types and, where they are linear, accumulators; types of the keys and of the rows' columns."""
    input_types = tuple(kind for _, kind in block.builder.types(linear_to_sql(rows))) if rows.items else ()
    if any("variant" in kind for kind in input_types):
        # Groups are made of consolidated rows, which Spark cannot make of VARIANT.
        raise NotIncremental("aggregates over VARIANT have no incremental rule yet")
    forms = [linear_form(call) for call in calls]
    arguments = [text for form in forms if form is not None for text in form.arguments if text != "*"]
    types = _probe(block, rows, [key.text for key in keys], calls, arguments)
    accumulators = Accumulators(append_only=block.builder.is_append_only(rows))
    finished = []
    for at, (call, form) in enumerate(zip(calls, forms, strict=True)):
        result, value = types[f"r{at}"], None
        if form is not None:
            value = accumulators.value(form, tuple(types.get(text, "") for text in form.arguments), result)
        finished.append(Call(f"__r{at}", sql(call), result, value, kept_value(value) if value is not None else None))
    return tuple(finished), accumulators, tuple(types[f"k{at}"] for at in range(len(keys))), input_types


def _probe(block: Block, rows: Select, keys: list[str], calls: list[exp.Expr], arguments: list[str]) -> dict[str, str]:
    """Types of keys (``k0`` ...), calls (``r0`` ...) and arguments (by text), as Spark sees them."""
    wanted = {f"k{at}": f"FIRST({key})" for at, key in enumerate(keys)}
    wanted |= {f"r{at}": sql(call) for at, call in enumerate(calls)}
    wanted |= {argument: f"FIRST({argument})" for argument in arguments}
    if not wanted:
        return {}
    items = ", ".join(f"{text} AS `p{at}`" for at, text in enumerate(wanted.values()))
    found = block.builder.types(f"SELECT {items} FROM ({linear_to_sql(rows)})")
    return {name: kind for name, (_, kind) in zip(wanted, found, strict=True)}


def _text(tree: exp.Expr, names: Mapping[exp.Expr, exp.Expr]) -> str:
    """A tree's text with names replaced.

    :raises NotIncremental: when a column of the query is left
    """
    result = substitute(tree, names)
    for found in result.find_all(exp.Column):
        if found.table:
            raise NotIncremental(f"{sql(found)} is neither grouped nor aggregated as far as the planner sees")
    return sql(result)
