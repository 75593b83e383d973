"""Aggregate calls: which exist, and which follow exactly from accumulators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.sql.dialect import DIALECT
from airflow_pipelines.sql.plan.derivation import WEIGHT
from airflow_pipelines.sql.plan.nodes import Accumulator

# fmt: off
_BY_NAME = frozenset({
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or", "bit_xor",
    "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if",
    "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value",
    "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "last", "last_value", "listagg", "max", "max_by",
    "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont", "percentile_disc",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg", "try_sum", "var_pop",
    "var_samp", "variance",
})
# fmt: on
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_NARROW = frozenset({"TINYINT", "SMALLINT", "INT", "INTEGER"})
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_MAX_SUMMED_PRECISION = 27
"""A value of this precision times a weight of ten digits still fits into 38 digits with its whole scale."""
_KEPT_SCALE = 6
"""Spark never gives up so many digits behind the point of a product; too many before it are an overflow."""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate function itself (without FILTER and the like around it)."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _BY_NAME
    if isinstance(node, exp.Any):
        return node.find(exp.Query) is None
    return isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping | exp.GroupingId)


def aggregate_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost aggregate calls in ``tree`` outside of subqueries, each with the FILTER and similar clauses around it.

    A function with OVER is none, but what it is applied to may hold some.
    """
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Window):
        for part in _window_parts(tree):
            yield from aggregate_calls(part)
        return
    if is_aggregate(tree) or (isinstance(tree, _WRAPPERS) and is_aggregate(_unwrapped(tree))):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from aggregate_calls(child)


def _window_parts(window: exp.Window) -> Iterator[exp.Expr]:
    """Arguments, FILTER condition and definition of a function with OVER."""
    function = window.this
    while isinstance(function, _WRAPPERS):
        if function.args.get("expression") is not None:
            yield function.expression
        function = function.this
    yield from function.iter_expressions()
    yield from (part for part in window.iter_expressions() if part is not window.this)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node


@dataclass(frozen=True, slots=True)
class DistinctCall:
    """A call such as ``SUM(DISTINCT x) FILTER (WHERE c)`` whose value follows from the different values of its arguments."""

    function: type[exp.Expr]
    arguments: tuple[exp.Expr, ...]
    condition: exp.Expr | None

    def over(self, arguments: list[exp.Expr]) -> exp.Expr:
        """The function without DISTINCT, over other arguments."""
        if self.function is exp.Count and len(arguments) > 1:
            return exp.Count(this=arguments[0], expressions=arguments[1:])
        return self.function(this=arguments[0])


def distinct_call(call: exp.Expr) -> DistinctCall | None:
    """The call as one over different values, or None when it is none or of a function that needs more."""
    condition: exp.Expr | None = None
    if isinstance(call, exp.Filter):
        condition, call = call.expression.this, call.this
    inner = call.this
    if not isinstance(inner, exp.Distinct) or type(call) not in {exp.Count, exp.Sum, exp.Avg} or call.expressions:
        return None
    return DistinctCall(type(call), tuple(inner.expressions), condition)


def distinct_arguments(calls: Sequence[exp.Expr]) -> list[tuple[exp.Expr, ...]]:
    """The arguments of the calls with DISTINCT, each once."""
    return list(dict.fromkeys(found.arguments for found in map(distinct_call, calls) if found is not None))


@dataclass(frozen=True, slots=True)
class Linear:
    """A call that follows from accumulators: its function, its arguments' texts and its FILTER condition's text."""

    function: str
    arguments: tuple[str, ...]
    condition: str | None


def linear_form(call: exp.Expr) -> Linear | None:
    """The call as a function that may be linear, or None when it never is."""
    condition: str | None = None
    if isinstance(call, exp.Filter):
        condition = call.expression.this.sql(dialect=DIALECT)
        call = call.this
    function, arguments = _function(call)
    if function is None or any(isinstance(argument, exp.Distinct) for argument in arguments):
        return None
    texts = tuple(argument.sql(dialect=DIALECT) for argument in arguments)
    if function != "count" and len(texts) != 1:
        return None
    return Linear(function, texts, condition)


def _function(call: exp.Expr) -> tuple[str | None, list[exp.Expr]]:
    if isinstance(call, exp.Anonymous):
        names = {"every": "all", "bool_and": "all", "some": "some", "any": "some", "bool_or": "some", "count_if": "count_if"}
        return names.get(str(call.this).lower()), list(call.expressions)
    kinds: dict[type[exp.Expr], str] = {
        exp.Count: "count",
        exp.CountIf: "count_if",
        exp.Sum: "sum",
        exp.Avg: "avg",
        exp.LogicalAnd: "all",
        exp.LogicalOr: "some",
        exp.Any: "some",
    }
    arguments = [call.this, *call.expressions] if call.this is not None else list(call.expressions)
    return kinds.get(type(call)), arguments


@dataclass(slots=True)
class Accumulators:
    """Collects the accumulators that calls need; equal ones are shared."""

    found: list[Accumulator] = field(default_factory=list)

    def value(self, call: Linear, argument_types: tuple[str, ...], result_type: str) -> str | None:
        """The call's value as text over accumulators, or None when it is not exact for these types."""
        match call.function:
            case "count":
                return self._count(call)
            case "count_if":
                return self._number(f"CASE WHEN {_filtered(call, 0)} THEN {WEIGHT} ELSE 0 END")
            case "all" | "some":
                truths = self._number(f"CASE WHEN {_filtered(call, 0)} THEN {WEIGHT} ELSE 0 END")
                lies = self._number(f"CASE WHEN NOT ({_filtered(call, 0)}) THEN {WEIGHT} ELSE 0 END")
                answer = f"{lies} = 0" if call.function == "all" else f"{truths} > 0"
                return f"(CASE WHEN {truths} + {lies} > 0 THEN {answer} END)"
            case _:
                return self._sum(call, argument_types[0].upper(), result_type)

    def _count(self, call: Linear) -> str:
        there = [f"({text}) IS NOT NULL" for text in call.arguments if text != "*"]
        if call.condition is not None:
            there.insert(0, f"({call.condition})")
        return self._number(f"CASE WHEN {' AND '.join(there)} THEN {WEIGHT} ELSE 0 END" if there else WEIGHT)

    def _sum(self, call: Linear, kind: str, result_type: str) -> str | None:
        text = _filtered(call, 0)
        decimal = _DECIMAL.fullmatch(kind)
        if kind in _NARROW:
            summed, type_ = f"CAST({text} AS BIGINT) * {WEIGHT}", "BIGINT"
        elif kind == "BIGINT":
            summed, type_ = f"CAST({text} AS DECIMAL(19,0)) * CAST({WEIGHT} AS DECIMAL(10,0))", "DECIMAL(38,0)"
        elif decimal and _keeps_scale(int(decimal[1]), int(decimal[2])) and call.function == "sum":
            summed, type_ = f"({text}) * CAST({WEIGHT} AS DECIMAL(10,0))", f"DECIMAL(38,{decimal[2]})"
        else:
            return None
        count = self._number(f"CASE WHEN {text} IS NOT NULL THEN {WEIGHT} ELSE 0 END")
        total = self._add(type_, summed)
        if call.function == "avg":
            return f"(CASE WHEN {count} > 0 THEN CAST({total} AS DOUBLE) / {count} END)"
        return f"(CASE WHEN {count} > 0 THEN CAST({total} AS {result_type}) END)"

    def _number(self, summed: str) -> str:
        return self._add("BIGINT", summed)

    def _add(self, kind: str, summed: str) -> str:
        text = f"COALESCE(CAST(SUM({summed}) AS {kind}), CAST(0 AS {kind}))"
        for accumulator in self.found:
            if accumulator.text == text:
                return accumulator.name
        accumulator = Accumulator(f"__a{len(self.found)}", kind, text)
        self.found.append(accumulator)
        return accumulator.name


def _keeps_scale(precision: int, scale: int) -> bool:
    """Whether a decimal times a weight keeps all its digits behind the point."""
    return precision <= _MAX_SUMMED_PRECISION or scale <= _KEPT_SCALE


def _filtered(call: Linear, at: int) -> str:
    text = call.arguments[at]
    return f"({text})" if call.condition is None else f"(CASE WHEN ({call.condition}) THEN ({text}) END)"
