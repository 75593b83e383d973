"""Plans of PIVOT as an aggregate with one filtered call per value, and of UNPIVOT as the unnesting of an array of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.sql.plan.blocks.group_by import aggregate
from airflow_pipelines.sql.plan.blocks.groups import Groups, Outputs
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, is_number
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, distinct, function_name, require_only, sql, substitute
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls

_PASS_NULL_OVER = frozenset({"avg", "count", "max", "min", "sum"})
"""Aggregates that ignore NULLs, so that a filter on their rows gives the same result."""
_PIVOT_PARTS = frozenset(
    {
        "expressions", "fields", "unpivot", "include_nulls", "alias", "columns", "pivot_column_naming",
    }
)  # fmt: skip


def plan_pivot(builder: Builder, rows: Linear, alias: str, pivots: Sequence[exp.Pivot]) -> tuple[str, Linear]:
    """Plan PIVOT or UNPIVOT.

    :param builder: the plan
    :param rows: its input
    :param alias: the name by which ``pivots`` reads ``rows``
    :param pivots: the clauses
    :returns: the name of the result in the query, and its node
    :raises NotIncremental: if the form has no rule
    """
    if len(pivots) > 1:
        raise NotIncremental("a PIVOT of a PIVOT has no incremental rule yet")
    (pivot,) = pivots
    require_only(pivot, _PIVOT_PARTS)
    name = pivot.args.get("alias")
    if name is None or name.columns or len(pivot.args["fields"]) != 1:
        raise NotIncremental("this form of PIVOT has no incremental rule yet")
    turned = pivot.copy()
    turned.set("alias", None)
    # Spark determines the names of the columns.
    columns = builder.types(f"SELECT * FROM ({linear_to_sql(rows)}) AS {quote(alias)}{sql(turned)}")
    block = Block(builder, frozenset((alias, column) for column in rows.columns))
    block.add(alias, rows)
    turn = _unpivot if pivot.args.get("unpivot") else _pivot
    node = turn(block, alias, rows, pivot, columns)
    if [kind for _, kind in builder.types(linear_to_sql(node))] != [kind for _, kind in columns]:
        raise NotIncremental("the types of a PIVOT's plan differ from the query's")
    return name.name, node


def _pivot(block: Block, alias: str, rows: Linear, pivot: exp.Pivot, columns: ColumnTypes) -> Linear:
    """Group by the columns that PIVOT does not name, with its aggregates over the rows of each pivot value."""
    (field,) = pivot.args["fields"]
    over = list(field.this.expressions) if isinstance(field.this, exp.Tuple) else [field.this]
    items = [item.unalias() for item in pivot.expressions]
    read = {column.name for part in (*over, *items) for column in part.find_all(exp.Column)}
    keys: list[exp.Expr] = [exp.column(name, table=alias, quoted=True) for name in rows.columns if name not in read]
    values = [value.this if isinstance(value, exp.PivotAlias) else value for value in field.expressions]
    conditions = [_has_value(block, over, value) for value in values]
    if len(columns) != len(keys) + len(conditions) * len(items) or len({name for name, _ in columns}) < len(columns):
        raise NotIncremental("the columns of a PIVOT could not be found symbolically")
    kinds = [kind for _, kind in columns[len(keys) : len(keys) + len(items)]]
    # Spark groups by the pivot value first, and puts each result into its column, if all results are numbers or truth values.
    placed = all(spark_type(kind).is_boolean or is_number(kind) for kind in kinds)
    trees: list[exp.Expr] = list(keys)
    for condition in conditions:
        trees += [_filter_pivot_rows(condition, item) if placed else _filter_all_rows(condition, item) for item in items]
    outputs: Outputs = [(name, tree) for (name, _), tree in zip(columns, trees, strict=True)]
    calls = distinct(call for tree in trees for call in aggregate_calls(tree))
    return block.builder.stage(aggregate(block, Groups(keys, calls), outputs, None))


def _has_value(block: Block, columns: Sequence[exp.Expr], value: exp.Expr) -> exp.Expr:
    """Return the condition that a row has one of the values that PIVOT lists."""
    values = list(value.expressions) if isinstance(value, exp.Tuple) else [value]
    if len(values) != len(columns) or value.find(exp.Column) is not None:
        raise NotIncremental("a PIVOT over something else than constants has no incremental rule")
    outputs = [(f"p{at}", tree) for at, tree in enumerate((*columns, *values))]
    kinds = [kind for _, kind in block.builder.types(linear_to_sql(block.select(outputs)))]
    parts = []
    for column, own, constant, other in zip(columns, kinds, values, kinds[len(columns) :], strict=False):
        # Spark casts the value to the column's type, which is what a comparison does with numbers.
        if spark_type(own).is_floating or not (own == other or other == "void" or (is_number(own) and is_number(other))):
            raise NotIncremental(f"a PIVOT of {own} for values of {other} has no incremental rule")
        parts.append(exp.NullSafeEQ(this=column.copy(), expression=constant.copy()))
    return exp.and_(*parts, copy=False)


def _filter_pivot_rows(condition: exp.Expr, item: exp.Expr) -> exp.Expr:
    """Return an expression over the rows of one pivot value; it is NULL if there is no such row."""
    there = exp.GT(this=exp.CountIf(this=condition.copy()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=there, true=_filter_aggregates(condition, item))])


def _filter_all_rows(condition: exp.Expr, item: exp.Expr) -> exp.Expr:
    """Return an expression over all rows, whose aggregates see NULL for rows of other pivot values."""
    for call in aggregate_calls(item):
        if (function_name(call) or "") not in _PASS_NULL_OVER:
            raise NotIncremental(f"PIVOT with {sql(call)} has no incremental rule yet")
    return _filter_aggregates(condition, item)


def _filter_aggregates(condition: exp.Expr, item: exp.Expr) -> exp.Expr:
    """Restrict the aggregates of an expression to the rows of one pivot value."""
    return substitute(item, {call: _with_filter(call, condition) for call in aggregate_calls(item)})


def _with_filter(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    if not isinstance(call, exp.Filter):
        return exp.Filter(this=call.copy(), expression=exp.Where(this=condition.copy()))
    both = exp.and_(call.expression.this, condition)
    return exp.Filter(this=call.this.copy(), expression=exp.Where(this=both))


def _unpivot(block: Block, alias: str, rows: Linear, pivot: exp.Pivot, columns: ColumnTypes) -> Linear:
    """Repeat each row once per listed column, with the column's name and value."""
    (field,) = pivot.args["fields"]
    listed = [(_label(part), list(_values(part))) for part in field.expressions]
    taken = {value.name for _, values in listed for value in values}
    kept = [name for name in rows.columns if name not in taken]
    value_columns = columns[len(kept) + 1 :]
    if [name for name, _ in columns[: len(kept)]] != kept or any(len(values) != len(value_columns) for _, values in listed):
        raise NotIncremental("the columns of an UNPIVOT could not be found symbolically")
    name = block.builder.name("u")
    entries = []
    for label, values in listed:
        cast = [f"CAST({block.text(value)} AS {kind})" for value, (_, kind) in zip(values, value_columns, strict=True)]
        entries.append(f"STRUCT({', '.join([sql(exp.Literal.string(label)), *cast])})")
    made = ["n", *(f"v{at}" for at in range(len(value_columns)))]
    block.laterals.append(f"LATERAL VIEW INLINE(ARRAY({', '.join(entries)})) {quote(name)} AS {', '.join(map(quote, made))}")
    block.required = block.required | {(name, column) for column in made}
    block.add_columns(name, made)
    cells: list[exp.Expr] = [exp.column(column, table=name, quoted=True) for column in made]
    if not pivot.args.get("include_nulls"):
        # Spark itself casts several values to one type too, with the same errors.
        first, *others = cells[1:]
        value = exp.Coalesce(this=first.copy(), expressions=[cell.copy() for cell in others]) if others else first.copy()
        block.filter(exp.Not(this=exp.Is(this=value, expression=exp.Null())))
    trees: list[exp.Expr] = [*(exp.column(column, table=alias, quoted=True) for column in kept), *cells]
    return block.select([(column, tree) for (column, _), tree in zip(columns, trees, strict=True)])


def _values(part: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns of one entry of UNPIVOT's list."""
    tree = part.this if isinstance(part, exp.PivotAlias) else part
    for value in tree.expressions if isinstance(tree, exp.Tuple) else [tree]:
        if not isinstance(value, exp.Column):
            raise NotIncremental("an UNPIVOT of something else than columns has no incremental rule")
        yield value


def _label(part: exp.Expr) -> str:
    """Return the label that UNPIVOT gives to an entry of its list."""
    if isinstance(part, exp.PivotAlias):
        return str(part.args["alias"].name)
    return "_".join(value.name for value in _values(part))
