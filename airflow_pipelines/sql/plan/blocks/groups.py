"""Plans of one aggregate over the rows of a block: its keys, calls and accumulators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_pipelines.rows.spark_types import has_map, has_variant
from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, linear_form
from airflow_pipelines.sql.plan.blocks.query_blocks import Block
from airflow_pipelines.sql.plan.expressions import NotIncremental, distinct, sql, substitute
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Item, Select
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql

Outputs = list[tuple[str, exp.Expr]]
"""The SELECT list: names and trees."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The grouping of a query with GROUP BY: its keys and calls as trees of the query.

    :param sets: the grouping sets as positions of keys, if there are several
    """

    keys: list[exp.Expr]
    calls: list[exp.Expr]
    sets: tuple[frozenset[int], ...] = ()


def one_aggregate(
    block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None, *, gaining: bool | None = None
) -> Aggregate:
    """Plan one aggregate with all calls over the rows of a block.

    :param block: the rows
    :param groups: keys and calls
    :param outputs: the SELECT list, over keys and calls
    :param having: the condition of HAVING, if there is one
    :param gaining: True if no value that MAX or MIN is taken of is ever retracted; None if this holds only for append-only rows
    """
    fields = distinct(field for part in [*groups.keys, *groups.calls] for field in part.find_all(exp.Column))
    below: dict[exp.Expr, exp.Expr] = {field: exp.column(f"__c{at}") for at, field in enumerate(fields)}
    rows = block.select([(f"__c{at}", field) for at, field in enumerate(fields)])
    keys = tuple(Item(f"__k{at}", _text(key, below)) for at, key in enumerate(groups.keys))
    named: dict[exp.Expr, exp.Expr] = {key: exp.column(f"__k{at}") for at, key in enumerate(groups.keys)}
    named |= {call: exp.column(f"__r{at}") for at, call in enumerate(groups.calls)}
    items = tuple(Item(name, _text(item, named)) for name, item in outputs)
    condition = _text(having, named) if having is not None else None
    accumulators = Accumulators(append_only=block.builder.is_append_only(rows) if gaining is None else gaining)
    texts = [substitute(call, below) for call in groups.calls]
    calls, key_types, input_types = _find_types(block, rows, fields, keys, texts, accumulators)
    for key, kind in zip(groups.keys, key_types, strict=True):
        if has_map(kind):
            # Spark groups by a MAP, but cannot compare one, and affected groups are found by comparing.
            raise NotIncremental("groups by a MAP have no incremental rule yet", key)
    return Aggregate(rows, keys, key_types, calls, tuple(accumulators.accumulators), items, condition, input_types)


def with_rereadable_input(block: Block, node: Aggregate) -> Aggregate:
    """Materialise the input of an aggregate if the aggregate reads rows again that are expensive to compute in each step.

    :param block: the block whose plan the aggregate belongs to
    :param node: the aggregate
    """
    if node.is_linear:
        return node
    rows = block.builder.rereadable(node.input)
    if rows is node.input:
        return node
    copy = Block(block.builder, frozenset())
    copy.add("s", rows)
    return replace(node, input=Select(tuple(copy.sources), tuple(Item(name, Expression(f"`s`.`{name}`")) for name in rows.columns)))


def _find_types(
    block: Block,
    rows: Select,
    fields: list[exp.Expr],
    keys: tuple[Item, ...],
    calls: list[exp.Expr],
    accumulators: Accumulators,
) -> tuple[tuple[Call, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the calls with their types and, where they are linear, their values; also the types of the keys and of ``fields``."""
    input_types = tuple(kind for _, kind in block.builder.types(linear_to_sql(rows))) if rows.items else ()
    for field, kind in zip(fields, input_types, strict=False):
        if has_variant(kind):
            # Groups are made of consolidated rows, which Spark cannot make of VARIANT.
            raise NotIncremental("aggregates over VARIANT have no incremental rule yet", field)
    forms = [linear_form(call) for call in calls]
    arguments = [text for form in forms if form is not None for text in form.arguments if text != "*"]
    types = _probe(block, rows, [key.text for key in keys], calls, arguments)
    finished = []
    for at, (call, form) in enumerate(zip(calls, forms, strict=True)):
        result, value = types[f"r{at}"], None
        if form is not None:
            value = accumulators.value(form, tuple(types.get(text, "") for text in form.arguments), result)
        text, kept = (value.text, value.kept) if value is not None else (None, None)
        finished.append(Call(f"__r{at}", Expression(sql(call)), result, text, kept))
    return tuple(finished), tuple(types[f"k{at}"] for at in range(len(keys))), input_types


def _probe(block: Block, rows: Select, keys: list[str], calls: list[exp.Expr], arguments: list[str]) -> dict[str, str]:
    """Return the types of keys (``k0`` ...), calls (``r0`` ...) and arguments (by text), as Spark infers them."""
    wanted = {f"k{at}": f"FIRST({key})" for at, key in enumerate(keys)}
    wanted |= {f"r{at}": sql(call) for at, call in enumerate(calls)}
    wanted |= {argument: f"FIRST({argument})" for argument in arguments}
    if not wanted:
        return {}
    items = ", ".join(f"{text} AS `p{at}`" for at, text in enumerate(wanted.values()))
    kinds = block.builder.types(f"SELECT {items} FROM ({linear_to_sql(rows)})")
    return {name: kind for name, (_, kind) in zip(wanted, kinds, strict=True)}


def _text(tree: exp.Expr, names: Mapping[exp.Expr, exp.Expr]) -> Expression:
    """Return a tree's text with names replaced.

    :raises NotIncremental: if a column of the query is left
    """
    result = substitute(tree, names)
    for column in result.find_all(exp.Column):
        if column.table:
            raise NotIncremental(f"{sql(column)} is neither grouped nor aggregated as far as the planner sees", column)
    return Expression(sql(result))
