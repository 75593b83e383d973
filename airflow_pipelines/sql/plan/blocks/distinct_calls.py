"""Plans of aggregates with DISTINCT: groups of equal arguments below, and above them one group for all calls of a query's group.

The rows of the query and the groups of equal arguments are parts of one union. Each part has columns for its own calls and NULL in
the columns of the others, which the functions ignore. A group of the union exists exactly when the query's group does: every row of
the query is in one group of equal arguments, also when these are NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, ValueCall, linear_form, value_call
from airflow_pipelines.sql.plan.blocks.groups import Groups, Outputs, one_aggregate, with_rereadable_input
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, column
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import distinct, substitute
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql

ByValue = Mapping[exp.Expr, ValueCall]
"""Calls that depend only on the distinct values of their arguments."""

_ONE = exp.Literal.number(1)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows over which some of a query's calls are evaluated by group.

    :param node: the rows, with the keys as ``k0`` and so on, and the values
    :param values: the names and types of the columns that are not keys
    :param calls: each of the query's calls as an expression over these columns
    :param gaining: True if no value that MAX or MIN is taken of is ever retracted
    """

    node: Linear
    values: ColumnTypes
    calls: Mapping[exp.Expr, exp.Expr]
    gaining: bool = False

    @property
    def is_summed(self) -> bool:
        """True if all calls can be computed from accumulators even when rows are retracted."""
        kinds = dict(self.values)
        forms = [(linear_form(call), kinds[next(iter(call.find_all(exp.Column))).name]) for call in self.calls.values()]
        return all(form is not None and Accumulators().value(form, (kind,), "") is not None for form, kind in forms)


@dataclass(slots=True)
class _Values:
    """The columns of rows that are not keys; equal ones are shared.

    :param prefix: the prefix of their names, which differs in each part of a union
    """

    prefix: str
    columns: dict[exp.Expr, tuple[str, str]] = field(default_factory=dict)

    def column(self, tree: exp.Expr, kind: str) -> exp.Column:
        """Return the column with the values of an expression; add it if it is new."""
        name, _ = self.columns.setdefault(tree, (f"{self.prefix}v{len(self.columns)}", kind))
        return exp.column(name, quoted=True)

    def outputs(self) -> Outputs:
        """Return the columns' names with their expressions."""
        return [(name, tree) for tree, (name, _) in self.columns.items()]

    def types(self) -> ColumnTypes:
        """Return the columns' names with their types."""
        return tuple(self.columns.values())


def by_distinct_values(node: Aggregate, calls: Sequence[exp.Expr]) -> ByValue | None:
    """Return the calls to compute from groups of equal arguments, or None if the aggregate cannot be planned in this way.

    It can if some calls have DISTINCT and all others are linear, MAX or MIN.

    :param node: one aggregate with all calls
    :param calls: the calls as trees of the query
    """
    value_calls: dict[exp.Expr, ValueCall] = {}
    for call, tree in zip(node.calls, calls, strict=True):
        value = value_call(tree)
        if value is not None and (value.distinct or call.value is None):
            value_calls[tree] = value
        elif call.value is None:
            return None
    return value_calls if any(value.distinct for value in value_calls.values()) else None


def aggregate_with_distinct(
    block: Block, groups: Groups, by_value: ByValue, outputs: Outputs, having: exp.Expr | None
) -> Aggregate | Select:
    """Plan an aggregate that has calls with DISTINCT.

    :param block: the rows; it may be changed
    :param groups: keys and calls
    :param by_value: the calls to compute from groups of equal arguments; all others are linear
    :param outputs: the SELECT list, over keys and calls
    :param having: the condition of HAVING, if there is one
    """
    builder, keys = block.builder, groups.keys
    packed, names = block.as_node()
    arguments = list(dict.fromkeys(value.arguments for value in by_value.values()))
    linear = [call for call in groups.calls if call not in by_value]
    if len(arguments) > 1 or linear:
        # Several parts read the same rows, which are computed once.
        rows = builder.rereadable(packed)
        if rows is not packed:
            block.replace_by(rows, names)
    kinds = _kinds(block, [*keys, *(argument for call in groups.calls for argument in _arguments(call))])
    summed: list[_Rows] = []
    reread: list[_Rows] = []
    if linear:
        summed.append(_of_rows(block, keys, linear, kinds))
    for argument in arguments:
        chosen = {call: value for call, value in by_value.items() if value.arguments == argument}
        part = _of_equal_arguments(block, keys, argument, chosen, kinds)
        (summed if part.is_summed else reread).append(part)
    levels = [_unite(builder, summed, [kinds[key] for key in keys]), *reread] if summed else reread
    if len(levels) > 1:
        return _join_levels(builder, levels, keys, outputs, having)
    inner, level, named = _level(builder, levels[0], keys)
    condition = substitute(having, named) if having is not None else None
    return _aggregate(inner, level, [(name, substitute(item, named)) for name, item in outputs], condition, levels[0])


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call; ``COUNT(*)`` has none."""
    value = value_call(call)
    if value is not None:
        return list(value.arguments)
    function = call.this if isinstance(call, exp.Filter) else call
    arguments = [function.this, *function.expressions] if isinstance(function.this, exp.Expr) else function.expressions
    return [argument for argument in arguments if not isinstance(argument, exp.Star)]


def _kinds(block: Block, trees: Sequence[exp.Expr]) -> dict[exp.Expr, str]:
    """Return the types of expressions over a block's rows."""
    wanted = distinct(trees)
    if not wanted:
        return {}
    kinds = block.builder.types(linear_to_sql(block.select([(f"t{at}", tree) for at, tree in enumerate(wanted)])))
    return {tree: kind for tree, (_, kind) in zip(wanted, kinds, strict=True)}


def _of_rows(block: Block, keys: Sequence[exp.Expr], calls: Sequence[exp.Expr], kinds: Mapping[exp.Expr, str]) -> _Rows:
    """Build the rows of the query with the arguments of calls as columns."""
    values, over = _Values("r"), {}
    for call in calls:
        function, condition = (call.this, call.expression.this) if isinstance(call, exp.Filter) else (call, None)
        if isinstance(function, exp.CountIf):
            function, value, kind = exp.Count(), _when(function.this, _ONE), "int"
        else:
            value, kind = _argument(type(function), _arguments(function), kinds)
        if kind == "void":
            # Only SOME and EVERY accept an untyped NULL, and not from a column.
            value, kind = exp.cast(value.copy(), "boolean"), "boolean"
        over[call] = _apply_to(function, values.column(value if condition is None else _when(condition, value), kind))
    rows = block.select([*_name_keys(keys), *values.outputs()])
    return _Rows(rows, values.types(), over, gaining=block.builder.is_append_only(rows))


def _of_equal_arguments(
    block: Block, keys: Sequence[exp.Expr], argument: tuple[exp.Expr, ...], calls: ByValue, kinds: Mapping[exp.Expr, str]
) -> _Rows:
    """Build a stage with the groups of equal keys and arguments, whose columns are the arguments of the calls.

    A column is NULL where a call does not take the argument. The number of rows in a group, or of those that meet a condition, is
    no column: most steps change it, and no call depends on it.
    """
    values, over, counts = _Values(block.builder.name("d")), {}, []
    for call, value in calls.items():
        tree, kind = _argument(value.function, argument, kinds)
        if value.condition is not None:
            counts.append(exp.CountIf(this=value.condition.copy()))
            tree = _when(exp.GT(this=counts[-1], expression=exp.Literal.number(0)), tree)
        over[call] = value.function(this=values.column(tree, kind))
    groups = Groups(distinct([*keys, *argument]), distinct(counts))
    scan = block.builder.stage(one_aggregate(block, groups, [*_name_keys(keys), *values.outputs()], None))
    return _Rows(scan, values.types(), over)


def _name_keys(keys: Sequence[exp.Expr]) -> Outputs:
    return [(f"k{at}", key) for at, key in enumerate(keys)]


def _argument(function: type[exp.Expr], arguments: Sequence[exp.Expr], kinds: Mapping[exp.Expr, str]) -> tuple[exp.Expr, str]:
    """Return one value that stands for the arguments of a call, and its type.

    The value is NULL where the function ignores the arguments.
    """
    if len(arguments) == 1 and (function is not exp.Count or _is_counted(spark_type(kinds[arguments[0]]))):
        return arguments[0], kinds[arguments[0]]
    # The NULL within IS NOT NULL would be taken for a NULL argument.
    there = [exp.Anonymous(this="ISNOTNULL", expressions=[one.copy()]) for one in arguments]
    return (_when(exp.and_(*there), _ONE) if there else _ONE), "int"


def _is_counted(kind: ColumnType) -> bool:
    """Return True if a column of a type can be counted directly, because the name of the type describes it completely."""
    is_text = kind.name == "VARCHAR" and kind.precision is None
    return kind.is_number or kind.is_boolean or is_text or kind.is_binary or kind.is_date or kind.is_timestamp


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _apply_to(function: exp.Expr, column: exp.Column) -> exp.Expr:
    """Apply a function of one argument to a column."""
    if isinstance(function, exp.Anonymous):
        return exp.Anonymous(this=function.this, expressions=[column])
    return type(function)(this=column)


def _unite(builder: Builder, parts: Sequence[_Rows], key_kinds: Sequence[str]) -> _Rows:
    """Return the union of several parts, each with the keys and with the values of all parts."""
    if len(parts) == 1:
        return parts[0]
    keys = [(f"k{at}", kind) for at, kind in enumerate(key_kinds)]
    values = tuple(value for part in parts for value in part.values)
    selects = []
    for part in parts:
        rows = _as_select(part.node, builder)
        nothing = {name: Expression(f"CAST(NULL AS {kind})") for name, kind in values}
        texts = nothing | {item.name: item.text for item in rows.items}
        selects.append(replace(rows, items=tuple(Item(name, texts[name]) for name, _ in (*keys, *values))))
    calls = {call: over for part in parts for call, over in part.calls.items()}
    union = UnionAll(tuple(selects), (*keys, *values))
    return _Rows(union, values, calls, gaining=any(part.gaining for part in parts))


def _as_select(node: Linear, builder: Builder) -> Select:
    if isinstance(node, Select):
        return node
    alias = builder.name("u")
    return Select((Source(alias, node),), tuple(Item(name, Expression.column(alias, name)) for name in node.columns))


def _level(builder: Builder, rows: _Rows, keys: Sequence[exp.Expr]) -> tuple[Block, Groups, dict[exp.Expr, exp.Expr]]:
    """Return the rows as a block, its groups, and the mapping from the query's keys and calls to columns and calls of the block."""
    alias = builder.name("d")
    inner = Block(builder, frozenset((alias, name) for name in rows.node.columns))
    inner.add(alias, rows.node)
    here: dict[exp.Expr, exp.Expr] = {exp.column(name, quoted=True): column((alias, name)) for name in rows.node.columns}
    named: dict[exp.Expr, exp.Expr] = {key: column((alias, f"k{at}")) for at, key in enumerate(keys)}
    named |= {call: substitute(over, here) for call, over in rows.calls.items()}
    return inner, Groups([named[key] for key in keys], distinct(named[call] for call in rows.calls)), named


def _aggregate(block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None, rows: _Rows) -> Aggregate:
    return with_rereadable_input(block, one_aggregate(block, groups, outputs, having, gaining=rows.gaining))


def _join_levels(
    builder: Builder, levels: Sequence[_Rows], keys: Sequence[exp.Expr], outputs: Outputs, having: exp.Expr | None
) -> Select:
    """Join aggregates over the same groups by their keys, where some have to read rows again."""
    whole = Block(builder, frozenset())
    replaced: dict[exp.Expr, exp.Expr] = {}
    for number, rows in enumerate(levels):
        inner, level, named = _level(builder, rows, keys)
        alias = builder.name("p")
        members = [*level.keys, *level.calls]
        scan = builder.stage(_aggregate(inner, level, [(f"g{at}", tree) for at, tree in enumerate(members)], None, rows))
        whole.required = whole.required | {(alias, name) for name in scan.columns}
        whole.add(alias, scan)
        columns = {tree: column((alias, f"g{members.index(now)}")) for tree, now in named.items()}
        for key in keys if number else ():
            whole.filter(exp.NullSafeEQ(this=replaced[key].copy(), expression=columns[key].copy()))
        replaced = {**columns, **replaced}
    if having is not None:
        whole.filter(substitute(having, replaced))
    return whole.select([(name, substitute(item, replaced)) for name, item in outputs])
