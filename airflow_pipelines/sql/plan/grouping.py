"""GROUP BY and HAVING: the keys, calls and accumulators of an aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.sql.plan.aggregates import Accumulators, aggregate_calls, linear_form
from airflow_pipelines.sql.plan.blocks import Block
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    distinct,
    is_generator,
    only,
    require_row_or_group,
    require_scalar,
    sql,
    substituted,
)
from airflow_pipelines.sql.plan.nodes import Aggregate, Call, Item, Select
from airflow_pipelines.sql.plan.plain import plain_linear

Outputs = list[tuple[str, exp.Expr]]
"""The SELECT list: names and trees."""


@dataclass(frozen=True, slots=True)
class Groups:
    """A query with GROUP BY: its keys and calls as trees of the query."""

    keys: list[exp.Expr]
    calls: list[exp.Expr]


def groups_of(tree: exp.Select, outputs: Outputs, above: Sequence[exp.Expr]) -> Groups | None:
    """The groups that a SELECT makes, or None when it makes none; ``above``: all expressions that are evaluated per group."""
    group = tree.args.get("group")
    calls = distinct(call for part in above for call in aggregate_calls(part))
    if group is None and not calls and tree.args.get("having") is None:
        return None
    keys = _keys(group, [item for _, item in outputs])
    for part in [*keys, *(argument for call in calls for argument in call.iter_expressions())]:
        require_row_or_group(part)
    return Groups(keys, calls)


def aggregate(block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None) -> Aggregate:
    """The aggregate that gives ``outputs`` for each group that ``having`` holds for."""
    above = [item for _, item in outputs] + ([having] if having is not None else [])
    for part in above:
        require_row_or_group(part)
        if is_generator(part):
            # An aggregate's items are evaluated inside CASE, where Spark does not allow what gives several rows.
            raise NotIncremental("a generator over an aggregate has no incremental rule yet")
    fields = distinct(found for part in [*groups.keys, *groups.calls] for found in part.find_all(exp.Column))
    below: dict[exp.Expr, exp.Expr] = {found: exp.column(f"__c{at}") for at, found in enumerate(fields)}
    rows = block.select([(f"__c{at}", found) for at, found in enumerate(fields)])
    keys = tuple(Item(f"__k{at}", _text(key, below)) for at, key in enumerate(groups.keys))
    named: dict[exp.Expr, exp.Expr] = {key: exp.column(f"__k{at}") for at, key in enumerate(groups.keys)}
    named |= {call: exp.column(f"__r{at}") for at, call in enumerate(groups.calls)}
    items = tuple(Item(name, _text(item, named)) for name, item in outputs)
    condition = _text(having, named) if having is not None else None
    calls, accumulators, key_types, input_types = _typed(block, rows, keys, [substituted(call, below) for call in groups.calls])
    if any(call.value is None for call in calls):
        rows = _rereadable(block, rows)
    return Aggregate(rows, keys, key_types, calls, tuple(accumulators.found), items, condition, input_types)


def grouped(block: Block, groups: Groups, having: exp.Expr | None) -> dict[exp.Expr, exp.Expr]:
    """Make a block the groups themselves, for what is evaluated over them: windows, subqueries, generators.

    Gives what the query's keys and calls are to be replaced by in the expressions above.
    """
    alias = block.builder.name("g")
    trees = [*groups.keys, *groups.calls]
    names = [f"g{at}" for at in range(len(trees))]
    outputs = list(zip(names, trees, strict=True)) or [("g0", exp.Literal.number(1))]
    scan = block.builder.stage(aggregate(block, groups, outputs, having))
    block.wanted = block.wanted | {(alias, name) for name in names}
    block.become(scan, {(alias, name): name for name in names})
    return {tree: exp.column(name, table=alias, quoted=True) for name, tree in zip(names, trees, strict=True)}


def _rereadable(block: Block, rows: Select) -> Select:
    """The rows as a relation of their own when making them anew in each step would be dear."""
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
    input_types = tuple(kind for _, kind in block.builder.types(plain_linear(rows))) if rows.items else ()
    if any("variant" in kind for kind in input_types):
        # Groups are made of consolidated rows, which Spark cannot make of VARIANT.
        raise NotIncremental("aggregates over VARIANT have no incremental rule yet")
    forms = [linear_form(call) for call in calls]
    arguments = [text for form in forms if form is not None for text in form.arguments if text != "*"]
    types = _probe(block, rows, [key.text for key in keys], calls, arguments)
    accumulators = Accumulators()
    finished = []
    for at, (call, form) in enumerate(zip(calls, forms, strict=True)):
        result, value = types[f"r{at}"], None
        if form is not None:
            value = accumulators.value(form, tuple(types.get(text, "") for text in form.arguments), result)
        finished.append(Call(f"__r{at}", sql(call), result, value))
    return tuple(finished), accumulators, tuple(types[f"k{at}"] for at in range(len(keys))), input_types


def _probe(block: Block, rows: Select, keys: list[str], calls: list[exp.Expr], arguments: list[str]) -> dict[str, str]:
    """Types of keys (``k0`` ...), calls (``r0`` ...) and arguments (by text), as Spark sees them."""
    wanted = {f"k{at}": f"FIRST({key})" for at, key in enumerate(keys)}
    wanted |= {f"r{at}": sql(call) for at, call in enumerate(calls)}
    wanted |= {argument: f"FIRST({argument})" for argument in arguments}
    if not wanted:
        return {}
    items = ", ".join(f"{text} AS `p{at}`" for at, text in enumerate(wanted.values()))
    found = block.builder.types(f"SELECT {items} FROM ({plain_linear(rows)})")
    return {name: kind for name, (_, kind) in zip(wanted, found, strict=True)}


def _keys(group: exp.Group | None, outputs: list[exp.Expr]) -> list[exp.Expr]:
    if group is None:
        return []
    only(group, {"expressions", "all"})
    if group.args.get("all"):
        if group.expressions:
            raise NotIncremental("GROUP BY ALL with expressions has no incremental rule")
        keys = [item for item in outputs if not any(True for _ in aggregate_calls(item))]
        if not keys:
            raise NotIncremental("GROUP BY ALL without keys has no incremental rule")
    else:
        keys = list(group.expressions)
    found = []
    for key in keys:
        inner = key.unnest()
        if isinstance(inner, exp.Literal) and inner.is_int:
            inner = outputs[int(inner.name) - 1].unnest()
        if isinstance(inner, exp.Tuple | exp.Cube | exp.Rollup | exp.GroupingSets):
            raise NotIncremental("grouping sets have no incremental rule yet")
        require_scalar(inner)
        found.append(inner)
    if not found:
        raise NotIncremental("GROUP BY () has no incremental rule yet")
    return distinct(found)


def _text(tree: exp.Expr, names: Mapping[exp.Expr, exp.Expr]) -> str:
    """A tree's text with names replaced. Raises NotIncremental when a column of the query is left."""
    result = substituted(tree, names)
    for found in result.find_all(exp.Column):
        if found.table:
            raise NotIncremental(f"{sql(found)} is neither grouped nor aggregated as far as the planner sees")
    return sql(result)
