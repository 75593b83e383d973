"""The choice of accumulators for aggregate calls that can be computed from accumulators exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.blocks.decimal_average import decimal_average, is_exact
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator, ColumnTotal, KeptValue, Total
from airflow_pipelines.sql.plan.ir.delta_sql import WEIGHT
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.syntax.dialect import DIALECT

_MAX_SUMMED_PRECISION = 27
"""The greatest precision of a value whose product with a weight of ten digits fits into 38 digits with its whole scale."""
_KEPT_SCALE = 6
"""The number of digits of a product's scale that Spark keeps at least; a value with too many whole digits overflows."""


@dataclass(frozen=True, slots=True)
class ValueCall:
    """A call that depends only on the distinct values of its arguments: ``SUM(DISTINCT x) FILTER (WHERE c)`` or ``MAX(x)``.

    :param distinct: True if it is written with DISTINCT
    """

    function: type[exp.Expr]
    arguments: tuple[exp.Expr, ...]
    condition: exp.Expr | None
    distinct: bool

    def over(self, arguments: list[exp.Expr]) -> exp.Expr:
        """Return the function without DISTINCT, over other arguments."""
        if self.function is exp.Count and len(arguments) > 1:
            return exp.Count(this=arguments[0], expressions=arguments[1:])
        return self.function(this=arguments[0])


def value_call(call: exp.Expr) -> ValueCall | None:
    """Return the call as one over distinct values, or None if it depends on more than these."""
    condition: exp.Expr | None = None
    if isinstance(call, exp.Filter):
        condition, call = call.expression.this, call.this
    inner, function = call.this, type(call)
    if call.expressions:
        return None
    if isinstance(inner, exp.Distinct):
        return ValueCall(function, tuple(inner.expressions), condition, True) if function in _BY_VALUE else None
    return ValueCall(function, (inner,), condition, False) if function in {exp.Max, exp.Min} else None


_BY_VALUE = frozenset({exp.Avg, exp.Count, exp.Max, exp.Min, exp.Sum})


@dataclass(frozen=True, slots=True)
class LinearCall:
    """A call that may be computed from accumulators, as its function and the texts of its arguments and FILTER condition."""

    function: str
    arguments: tuple[str, ...]
    condition: str | None


def linear_form(call: exp.Expr) -> LinearCall | None:
    """Return the call as one that may be linear, depending on the types of its arguments, or None if it never is."""
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
    return LinearCall(function, texts, condition)


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
        exp.Max: "max",
        exp.Min: "min",
        exp.Any: "some",
    }
    arguments = [call.this, *call.expressions] if call.this is not None else list(call.expressions)
    return kinds.get(type(call)), arguments


_DECIMAL_WEIGHT = f"CAST({WEIGHT} AS DECIMAL(10,0))"


@dataclass(frozen=True, slots=True)
class AccumulatedValue:
    """The value of a call that is computed from accumulators.

    :param text: Spark SQL over the accumulators' names
    :param kept: the accumulator that holds the value unchanged or in another type, or None if it is any other expression
    """

    text: Expression
    kept: KeptValue | None = None

    @classmethod
    def of(cls, accumulator: str) -> AccumulatedValue:
        """Return the value that is an accumulator unchanged."""
        return cls(Expression(accumulator), KeptValue(accumulator))


@dataclass(slots=True)
class Accumulators:
    """The accumulators that the calls of an aggregate need; equal ones are shared.

    :param append_only: True if the input is append-only
    """

    accumulators: list[Accumulator] = field(default_factory=list)
    append_only: bool = False

    def value(self, call: LinearCall, argument_types: tuple[str, ...], result_type: str) -> AccumulatedValue | None:
        """Return the call's value over accumulators.

        :param call: the call
        :param argument_types: the Spark types of its arguments
        :param result_type: the Spark type of its value
        :returns: the value; None if it would not be exact for these types
        """
        match call.function:
            case "count":
                return AccumulatedValue.of(self._count(call))
            case "max" | "min":
                extreme = self._extreme(call, argument_types[0])
                return None if extreme is None else AccumulatedValue.of(extreme)
            case "count_if":
                return AccumulatedValue.of(self._number(_parenthesize(call)))
            case "all" | "some":
                truths = self._number(_parenthesize(call))
                lies = self._number(f"NOT ({_parenthesize(call)})")
                answer = f"{lies} = 0" if call.function == "all" else f"{truths} > 0"
                return AccumulatedValue(Expression(f"(CASE WHEN {truths} + {lies} > 0 THEN {answer} END)"))
            case _:
                return self._sum(call, spark_type(argument_types[0]), result_type)

    def _count(self, call: LinearCall) -> str:
        there = [f"({text}) IS NOT NULL" for text in call.arguments if text != "*"]
        if call.condition is not None:
            there.insert(0, f"({call.condition})")
        elif len(there) == 1:
            return self._number(there[0], ColumnTotal(Total.VALUES, Expression(call.arguments[0])))
        return self._number(" AND ".join(there) or None)

    def _sum(self, call: LinearCall, kind: ColumnType, result_type: str) -> AccumulatedValue | None:
        text = _parenthesize(call)
        precision, scale = kind.precision or 0, kind.scale or 0
        if kind.name == "BIGINT":
            value, weight, type_ = f"CAST({text} AS DECIMAL(19,0))", _DECIMAL_WEIGHT, "DECIMAL(38,0)"
        elif kind.is_integer:
            value, weight, type_ = f"CAST({text} AS BIGINT)", WEIGHT, "BIGINT"
        elif kind.is_decimal and _is_summed(call.function, precision, scale):
            value, weight, type_ = f"({text})", _DECIMAL_WEIGHT, f"DECIMAL(38,{scale})"
        else:
            return None
        count = self._number(f"{text} IS NOT NULL", ColumnTotal(Total.VALUES, _value(call)))
        # With more digits, fewer than 10**11 values could overflow 38 digits.
        never_too_large = precision <= _MAX_SUMMED_PRECISION
        total = self._add(type_, f"{value} * {weight}", value, ColumnTotal(Total.SUM, _value(call)) if never_too_large else None)
        if call.function == "sum":
            text = Expression(f"(CASE WHEN {count} > 0 THEN CAST({total} AS {result_type}) END)")
            return AccumulatedValue(text, KeptValue(total, count))
        average = decimal_average(total, count, precision, scale) if kind.is_decimal else f"CAST({total} AS DOUBLE) / {count}"
        return AccumulatedValue(Expression(f"(CASE WHEN {count} > 0 THEN {average} END)"))

    def _extreme(self, call: LinearCall, kind: str) -> str | None:
        if not self.append_only or not _is_sorted(spark_type(kind)):
            return None
        text = f"{call.function.upper()}({_parenthesize(call)})"
        for accumulator in self.accumulators:
            if accumulator.text == text:
                return accumulator.name
        merge, total = (Merge.MAX, Total.MAX) if call.function == "max" else (Merge.MIN, Total.MIN)
        of_value = ColumnTotal(total, _value(call))
        self.accumulators.append(
            Accumulator(
                f"__a{len(self.accumulators)}{call.function}", kind.upper(), Expression(text), Expression(text), merge, of_value
            )
        )
        return self.accumulators[-1].name

    def _number(self, condition: str | None, total: ColumnTotal | None = None) -> str:
        """Add an accumulator for the number of rows that meet a condition, and return its name."""
        if condition is None:
            return self._add("BIGINT", WEIGHT, "1", ColumnTotal(Total.ROWS))
        summed, of_unit_weights = (f"CASE WHEN {condition} THEN {each} ELSE 0 END" for each in (WEIGHT, "1"))
        return self._add(
            "BIGINT",
            summed,
            of_unit_weights,
            total or ColumnTotal(Total.VALUES, Expression(f"CASE WHEN {condition} THEN TRUE END")),
        )

    def _add(self, kind: str, summed: str, of_unit_weights: str, total: ColumnTotal | None = None) -> str:
        text, unit_weights_text = (
            Expression(f"COALESCE(CAST(SUM({each}) AS {kind}), CAST(0 AS {kind}))") for each in (summed, of_unit_weights)
        )
        for accumulator in self.accumulators:
            if accumulator.text == text:
                return accumulator.name
        accumulator = Accumulator(f"__a{len(self.accumulators)}", kind, text, unit_weights_text, column_total=total)
        self.accumulators.append(accumulator)
        return accumulator.name


def _is_sorted(kind: ColumnType) -> bool:
    """Return True if Spark and Arrow order values of a type in the same way."""
    exact = kind.is_integer or kind.is_decimal or kind.is_boolean
    return exact or kind.name == "VARCHAR" or kind.is_date or kind.is_timestamp


def _is_summed(function: str, precision: int, scale: int) -> bool:
    """Return True if a decimal times a weight keeps its whole scale, so that SUM or AVG can be computed from such sums."""
    kept = precision <= _MAX_SUMMED_PRECISION or scale <= _KEPT_SCALE
    return kept and (function == "sum" or is_exact(precision, scale))


def _parenthesize(call: LinearCall) -> str:
    return f"({_value(call)})"


def _value(call: LinearCall) -> Expression:
    """Return the argument of the call for one row: NULL where its FILTER condition does not hold."""
    text = call.arguments[0]
    return Expression(text if call.condition is None else f"CASE WHEN ({call.condition}) THEN ({text}) END")
