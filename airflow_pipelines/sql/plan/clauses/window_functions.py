"""Plans of window functions: one stage for all functions that share PARTITION BY keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, ColumnRef, column, is_key_type, key_types, without_source
from airflow_pipelines.sql.plan.expressions import NotIncremental, distinct, planning, require_row_or_group, sql, substitute
from airflow_pipelines.sql.plan.ir.affected_keys import KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import QueryExpression


def window_functions(tree: exp.Expr) -> list[exp.Window]:
    """Return the window functions in an expression, without those of its subqueries."""
    if isinstance(tree, exp.Window):
        return [tree]
    if isinstance(tree, exp.Query | exp.Subquery):
        return []
    return [window for child in tree.iter_expressions() for window in window_functions(child)]


def inline_windows(tree: exp.Expr, definitions: Sequence[exp.Expr]) -> exp.Expr:
    """Return a copy of an expression with the definitions of the WINDOW clause written out in its window functions.

    :param tree: the expression
    :param definitions: the entries of the WINDOW clause
    :raises NotIncremental: if a window is not defined there
    """
    named = {definition.name: definition for definition in definitions}

    def written_out(node: exp.Expr) -> exp.Expr:
        while isinstance(node, exp.Window) and node.args.get("alias") is not None:
            definition = named.get(node.alias)
            if definition is None:
                raise NotIncremental(f"the window {node.alias} is not defined where the planner looks for it")
            node.set("alias", None)
            for part in ("partition_by", "order", "spec", "alias"):
                value = definition.args.get(part)
                if value is not None:
                    node.set(part, [item.copy() for item in value] if isinstance(value, list) else value.copy())
        return node

    return tree.copy().transform(written_out, copy=False) if named else tree


def qualify_of(tree: exp.Select, outputs: Sequence[tuple[str, exp.Expr]]) -> exp.Expr | None:
    """Return the condition of QUALIFY, with names of the SELECT list and of the WINDOW clause replaced by their definitions.

    :param tree: the SELECT
    :param outputs: its SELECT list
    :returns: None if it has no QUALIFY
    """
    clause = tree.args.get("qualify")
    if clause is None:
        return None
    named: dict[exp.Expr, exp.Expr] = {exp.column(name, quoted=True): item for name, item in outputs}
    return inline_windows(substitute(clause.this, named), tree.args.get("windows") or [])


def apply_windows(block: Block, calls: Sequence[exp.Window]) -> dict[exp.Expr, exp.Expr]:
    """Add window functions to a block, in as few stages as their partitions allow.

    :param block: the rows that the functions read; afterwards it has a column for each function
    :param calls: the functions, each with its definition, as trees of the query
    :returns: the mapping from the functions to their replacements in the expressions above
    """
    replaced: dict[exp.Expr, exp.Expr] = {}
    for level in _levels(distinct(calls)):
        alias = block.builder.name("w")
        names: dict[ColumnRef, str] = {(alias, f"w{at}"): f"w{at}" for at in range(len(level.calls))}
        _add(block, level, names)
        for call, place in zip(level.calls, names, strict=True):
            replaced[call] = column(place)
    return replaced


@dataclass(slots=True)
class _Level:
    """The window functions that one stage computes; ``keys`` are in the PARTITION BY of all of them."""

    keys: list[exp.Expr]
    calls: list[exp.Window] = field(default_factory=list)


def _levels(calls: Sequence[exp.Expr]) -> list[_Level]:
    """Group the functions by common PARTITION BY keys. Functions without keys come last, because every change affects them."""
    levels: list[_Level] = []
    whole = _Level([])
    for call in calls:
        if not isinstance(call, exp.Window):
            continue
        keys = distinct(call.args.get("partition_by") or [])
        if not keys:
            whole.calls.append(call)
            continue
        for level in levels:
            common = [key for key in level.keys if key in keys]
            if common:
                level.keys = common
                level.calls.append(call)
                break
        else:
            levels.append(_Level(keys, [call]))
    return [*levels, *([whole] if whole.calls else [])]


def _add(block: Block, level: _Level, added: dict[ColumnRef, str]) -> None:
    """Replace the block by a stage that has the functions of one level as further columns."""
    for call in level.calls:
        for part in call.iter_expressions():
            with planning(call):
                require_row_or_group(part)
    node, names = block.as_node()
    source = block.builder.name("s")
    trees: dict[exp.Expr, exp.Expr] = {column(place): column((source, name)) for place, name in names.items()}
    keys = tuple(without_source(substitute(key, trees)) for key in level.keys)
    kinds = key_types(block.builder, node, keys) if keys else ()
    usable = tuple(key for key, kind in zip(keys, kinds, strict=True) if is_key_type(kind))
    items = [f"{quote(source)}.{quote(name)} AS {quote(name)}" for name in names.values()]
    items += [f"{sql(substitute(call, trees))} AS {quote(name)}" for call, name in zip(level.calls, added.values(), strict=True)]
    query = f"SELECT {', '.join(items)} FROM {quote(source)}"
    reason = None
    if not usable:
        why = (
            "values of the types of PARTITION BY cannot be compared" if keys else "without PARTITION BY all rows are one partition"
        )
        reason = block.builder.places.reason(why, level.calls[0])
    block.replace_by_keyed([KeyedSource(source, node, usable)], QueryExpression(query), {**names, **added}, Shape.WINDOW, reason)
