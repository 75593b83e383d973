"""Evaluates expressions over Arrow where the answer is exactly Spark's: the same values in the same type.

Whatever is not in the lists here, and each value for which Spark would fail or round, is left to Spark. An expression that is
evaluated here never fails, and an error is always Spark's own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.expressions import functions, json_fields, numbers
from airflow_pipelines.rows.expressions.columns import ColumnName, name_of
from airflow_pipelines.rows.expressions.operands import TRUTH, LeftToSpark, Operand, is_null_constant, unify

_Rule: TypeAlias = "Callable[[_Evaluation, Any], Operand]"

_COMPARISONS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}
_ARITHMETIC: Final[Mapping[type[exp.Expr], str]] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}
_SPECIAL_CHARACTERS: Final = frozenset("\\'\"$")
"""Characters that a literal may have for the dialect, or for the substitution of variables, and not for Spark."""
_FAILURES: Final = (LeftToSpark, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, RecursionError)


def evaluate(tree: exp.Expr, columns: Mapping[ColumnName, ArrowColumn], rows: int) -> ArrowColumn | None:
    """Evaluate an expression for some rows.

    :param tree: the expression
    :param columns: the values of columns of Spark's types BOOLEAN, TINYINT to BIGINT, FLOAT, DOUBLE, DECIMAL, DATE, TIMESTAMP,
        TIMESTAMP_NTZ, and STRING without a collation; an expression that reads others is left to Spark
    :param rows: the number of rows
    :returns: Spark's answer, or None if it is left to Spark

    >>> from sqlglot import parse_one
    >>> tree = parse_one("CASE WHEN n > 1 THEN n + 1 END", dialect="spark")
    >>> evaluate(tree, {("n",): pa.array([1, 2, None], pa.int32())}, 3).to_pylist()
    [None, 3, None]
    """
    try:
        value = _Evaluation(columns).value(tree)
        return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value
    except _FAILURES:
        return None


def is_true(tree: exp.Expr, columns: Mapping[ColumnName, ArrowColumn], rows: int) -> ArrowColumn | None:
    """Evaluate a condition for some rows.

    :param tree: the condition
    :param columns: see :func:`evaluate`
    :param rows: the number of rows
    :returns: False where the condition is NULL; None if it is left to Spark
    """
    values = evaluate(tree, columns, rows)
    if values is None or pa.types.is_null(values.type):
        return values if values is None else pa.repeat(pa.scalar(False), rows)
    return pc.fill_null(values, False) if values.type == TRUTH else None


def can_evaluate(tree: exp.Expr, types: Mapping[ColumnName, pa.DataType]) -> bool:
    """Return True if :func:`evaluate` has an answer for all values that columns of some types may have.

    :param tree: the expression
    :param types: the types of columns
    """
    if not _is_total(tree):
        return False
    return evaluate(tree, {name: pa.array([], kind) for name, kind in types.items()}, 0) is not None


def is_supported(tree: exp.Expr, columns: frozenset[ColumnName]) -> bool:
    """Return True if :func:`evaluate` should have an answer, by the operators, functions and columns of an expression.

    It may leave the expression to Spark nevertheless, for the types or values of the columns.

    :param tree: the expression
    :param columns: the names of the columns
    """
    for part in tree.walk():
        match part:
            case exp.Column() if name_of(part) not in columns:
                return False
            case exp.Anonymous() if part.name.upper() not in _EXPECTED_FUNCTIONS:
                return False
            case exp.Identifier() | exp.DataType() | exp.DataTypeParam() | exp.Var():
                continue
            case _ if type(part) not in _RULES:
                return False
    return True


def _is_total(tree: exp.Expr) -> bool:
    match tree:
        case exp.Column():
            return True
        case exp.Cast() | exp.Neg():
            return isinstance(tree.this, exp.Literal)
        case exp.Anonymous():
            return tree.name.upper() in _TOTAL_FUNCTIONS and all(map(_is_total, tree.expressions))
        case _:
            return type(tree) in _TOTAL and all(map(_is_total, tree.iter_expressions()))


class _Evaluation:
    """An evaluation of expressions over the same rows.

    :param columns: the values of columns
    """

    def __init__(self, columns: Mapping[ColumnName, ArrowColumn]) -> None:
        self._columns = columns

    def value(self, tree: exp.Expr) -> Operand:
        """Return the values of an expression.

        :raises LeftToSpark: if Spark has to evaluate it
        """
        rule, known = _RULES.get(type(tree), (None, frozenset()))
        # An argument that is not known, such as the direction of a TRIM, may change the meaning.
        if rule is None or not {name for name, value in tree.args.items() if value} <= known:
            raise LeftToSpark(tree.sql())
        return rule(self, tree)

    def truth(self, tree: exp.Expr) -> Operand:
        """Return the values of a condition."""
        value = self.value(tree)
        if is_null_constant(value):
            return pa.scalar(None, TRUTH)
        if value.type != TRUTH:
            raise LeftToSpark(tree.sql())
        return value

    def column(self, tree: exp.Column) -> Operand:
        """Return the values of a column."""
        values = self._columns.get(name_of(tree))
        if values is None:
            raise LeftToSpark(tree.sql())
        return values

    def literal(self, tree: exp.Literal) -> Operand:
        """Return the value of a literal."""
        text = str(tree.this)
        if not tree.is_string:
            return numbers.number(text)
        if not text.isprintable() or not _SPECIAL_CHARACTERS.isdisjoint(text):
            raise LeftToSpark(text)
        return pa.scalar(text)

    def compare(self, tree: exp.Binary) -> Operand:
        """Compare two values."""
        return self._compare_values(_COMPARISONS[type(tree)], self.value(tree.this), self.value(tree.expression))

    def _compare_values(self, function: str, left: Operand, right: Operand) -> Operand:
        if is_null_constant(left) or is_null_constant(right):
            return pa.scalar(None, TRUTH)
        result: Operand = pc.call_function(function, list(numbers.comparable(left, right)))
        return result

    def compare_null_safe(self, tree: exp.NullSafeEQ | exp.NullSafeNEQ) -> Operand:
        """Compare two values, of which NULL is equal to NULL."""
        left, right = self.value(tree.this), self.value(tree.expression)
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both, pc.coalesce(self._compare_values("equal", left, right), pa.scalar(False)))

    def is_in(self, tree: exp.In) -> Operand:
        """Look a value up in a list."""
        left, values = self.value(tree.this), [self.value(each) for each in tree.expressions]
        if not values:
            raise LeftToSpark(tree.sql())
        compared = [self._compare_values("equal", left, value) for value in values]
        return functools.reduce(pc.or_kleene, compared)

    def is_between(self, tree: exp.Between) -> Operand:
        """Compare a value with two bounds."""
        value = self.value(tree.this)
        low = self._compare_values("greater_equal", value, self.value(tree.args["low"]))
        return pc.and_kleene(low, self._compare_values("less_equal", value, self.value(tree.args["high"])))

    def is_constant(self, tree: exp.Is) -> Operand:
        """Evaluate IS NULL, IS TRUE and IS FALSE."""
        match tree.expression:
            case exp.Null():
                return pc.is_null(self.value(tree.this))
            case exp.Boolean():
                truth = self.truth(tree.this)
                return pc.coalesce(truth if tree.expression.this else pc.invert(truth), pa.scalar(False))
            case _:
                raise LeftToSpark(tree.sql())

    def choose(self, tree: exp.Case | exp.If) -> Operand:
        """Evaluate CASE or IF."""
        branches = tree.args["ifs"] if isinstance(tree, exp.Case) else [tree]
        otherwise = tree.args.get("default" if isinstance(tree, exp.Case) else "false")
        if isinstance(tree, exp.Case) and tree.this is not None:
            subject = self.value(tree.this)
            conditions = [self._compare_values("equal", subject, self.value(branch.this)) for branch in branches]
        elif isinstance(tree, exp.Case) and any(is_null_constant(self.value(branch.this)) for branch in branches):
            # Spark refuses CASE WHEN NULL, and no other NULL as a condition.
            raise LeftToSpark(tree.sql())
        else:
            conditions = [self.truth(branch.this) for branch in branches]
        values = [self.value(branch.args["true"]) for branch in branches]
        *values, result = unify([*values, pa.scalar(None) if otherwise is None else self.value(otherwise)])
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            result = pc.if_else(pc.coalesce(condition, pa.scalar(False)), value, result)
        return result

    def calculate(self, tree: exp.Binary) -> Operand:
        """Add, subtract or multiply."""
        trees = (tree.this, tree.expression)
        sides = [self.value(side) for side in trees]
        if any(pa.types.is_decimal(side.type) for side in sides):
            if any(isinstance(side.unnest(), exp.Neg) and _is_integer_literal(side.unnest().this) for side in trees):
                # Spark takes the sign for an operator or for a part of the literal, which has another type.
                raise LeftToSpark(tree.sql())
            sides = [
                numbers.literal_decimal(value) if _is_integer_literal(side.unnest()) else value
                for value, side in zip(sides, trees, strict=True)
            ]
        return numbers.calculate(_ARITHMETIC[type(tree)], *sides)

    def negate(self, tree: exp.Neg) -> Operand:
        """Change the sign of a number. That of a literal belongs to it, as the least number of a type shows."""
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string and tree.this.this in {str(2**31), str(2**63)}:
            value = -int(tree.this.this)
            return pa.scalar(value, pa.int32() if value == -(2**31) else pa.int64())
        return numbers.change_sign(self.value(tree.this), pc.negate_checked)

    def cast(self, tree: exp.Cast) -> Operand:
        """Cast a value to another type."""
        kind = numbers.arrow_type(tree.to)
        if isinstance(tree.this, exp.Literal) and tree.this.is_string and pa.types.is_temporal(kind):
            return numbers.literal_time(str(tree.this.this), kind)
        return numbers.cast(self.value(tree.this), kind)

    def call(self, tree: exp.Anonymous) -> Operand:
        """Call a function."""
        name, arguments = tree.name.upper(), tree.expressions
        if name in _FUNCTIONS_OF_TWO and len(arguments) == 2:
            return _FUNCTIONS_OF_TWO[name](self, *arguments)
        if name in functions.VARIADIC and arguments:
            return functions.VARIADIC[name](*map(self.value, arguments))
        if name in functions.UNARY and len(arguments) == 1:
            return functions.UNARY[name](self.value(arguments[0]))
        raise LeftToSpark(tree.sql())

    def null_if(self, first: exp.Expr, second: exp.Expr) -> Operand:
        """Evaluate NULLIF."""
        value, other = self.value(first), self.value(second)
        is_equal = pc.coalesce(self._compare_values("equal", value, other), pa.scalar(False))
        return pc.if_else(is_equal, pa.scalar(None, value.type), value)

    def read_json_field(self, first: exp.Expr, second: exp.Expr) -> Operand:
        """Evaluate GET_JSON_OBJECT with a constant path."""
        return json_fields.read_field(self.value(first), _constant_text(second))

    def truncate_timestamp(self, first: exp.Expr, second: exp.Expr) -> Operand:
        """Evaluate DATE_TRUNC."""
        unit, value = _constant_text(first).upper(), self.value(second)
        if unit not in functions.TIMESTAMP_UNITS or not pa.types.is_timestamp(value.type) or value.type.tz is None:
            raise LeftToSpark(unit)
        return functions.truncate_time(value, unit.lower())

    def truncate_date(self, first: exp.Expr, second: exp.Expr) -> Operand:
        """Evaluate TRUNC."""
        value, unit = self.value(first), _constant_text(second).upper()
        if unit not in functions.DATE_UNITS or value.type != pa.date32():
            raise LeftToSpark(unit)
        return functions.truncate_time(value, functions.DATE_UNITS[unit])

    def extract(self, tree: exp.Extract) -> Operand:
        """Evaluate EXTRACT."""
        name = functions.EXTRACTED.get(tree.name.upper())
        if name is None:
            raise LeftToSpark(tree.sql())
        return functions.UNARY[name](self.value(tree.expression))

    def substring(self, tree: exp.Substring) -> Operand:
        """Evaluate SUBSTRING with constant places."""
        length = tree.args.get("length")
        start = _constant_place(tree.args["start"])
        return functions.substring(self.value(tree.this), start, None if length is None else _constant_place(length))

    def like(self, tree: exp.Like) -> Operand:
        """Evaluate LIKE with a constant pattern."""
        pattern = _constant_text(tree.expression)
        # A character that is special in literals is refused here.
        self.literal(tree.expression)
        matches = functions.match_like(self.value(tree.this), pattern)
        # NOT LIKE is one thing to the parser.
        return pc.invert(matches) if tree.args.get("negate") else matches


def _constant_text(tree: exp.Expr) -> str:
    if not isinstance(tree, exp.Literal) or not tree.is_string:
        raise LeftToSpark(tree.sql())
    return str(tree.this)


def _constant_place(tree: exp.Expr) -> int:
    if not _is_integer_literal(tree) or int(tree.this) >= 2**31:
        raise LeftToSpark(tree.sql())
    return int(tree.this)


def _is_integer_literal(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdecimal()


_FUNCTIONS_OF_TWO: Final[Mapping[str, Callable[[_Evaluation, exp.Expr, exp.Expr], Operand]]] = {
    "DATE_TRUNC": _Evaluation.truncate_timestamp,
    "GET_JSON_OBJECT": _Evaluation.read_json_field,
    "NULLIF": _Evaluation.null_if,
    "TRUNC": _Evaluation.truncate_date,
}
_EXPECTED_FUNCTIONS: Final = (functions.UNARY.keys() | functions.VARIADIC.keys() | _FUNCTIONS_OF_TWO.keys()) - functions.BY_VALUE
_SIDES: Final = frozenset({"this", "expression"})
_RULES: Final[Mapping[type[exp.Expr], tuple[_Rule, frozenset[str]]]] = {
    exp.And: (lambda on, tree: pc.and_kleene(on.truth(tree.this), on.truth(tree.expression)), _SIDES),
    exp.Anonymous: (_Evaluation.call, frozenset({"this", "expressions"})),
    exp.Between: (_Evaluation.is_between, frozenset({"this", "low", "high"})),
    exp.Boolean: (lambda _, tree: pa.scalar(bool(tree.this)), frozenset({"this"})),
    exp.Case: (_Evaluation.choose, frozenset({"this", "ifs", "default"})),
    exp.Cast: (_Evaluation.cast, frozenset({"this", "to"})),
    exp.Column: (_Evaluation.column, frozenset({"this", "table", "db"})),
    exp.Concat: (lambda on, tree: functions.concatenate(*map(on.value, tree.expressions)), frozenset({"expressions"})),
    exp.DPipe: (lambda on, tree: functions.concatenate(on.value(tree.this), on.value(tree.expression)), _SIDES | {"safe"}),
    exp.Extract: (_Evaluation.extract, _SIDES),
    exp.If: (_Evaluation.choose, frozenset({"this", "true", "false"})),
    exp.In: (_Evaluation.is_in, frozenset({"this", "expressions"})),
    exp.Is: (_Evaluation.is_constant, _SIDES),
    exp.Like: (_Evaluation.like, _SIDES | {"negate"}),
    exp.Literal: (_Evaluation.literal, frozenset({"this", "is_string"})),
    exp.Neg: (_Evaluation.negate, frozenset({"this"})),
    exp.Not: (lambda on, tree: pc.invert(on.truth(tree.this)), frozenset({"this"})),
    exp.Null: (lambda _on, _tree: pa.scalar(None), frozenset()),
    exp.NullSafeEQ: (_Evaluation.compare_null_safe, _SIDES),
    exp.NullSafeNEQ: (lambda on, tree: pc.invert(on.compare_null_safe(tree)), _SIDES),
    exp.Or: (lambda on, tree: pc.or_kleene(on.truth(tree.this), on.truth(tree.expression)), _SIDES),
    exp.Paren: (lambda on, tree: on.value(tree.this), frozenset({"this"})),
    exp.Substring: (_Evaluation.substring, frozenset({"this", "start", "length"})),
    exp.Trim: (lambda on, tree: functions.trim(on.value(tree.this)), frozenset({"this"})),
    exp.TryCast: (_Evaluation.cast, frozenset({"this", "to"})),
    **dict.fromkeys(_ARITHMETIC, (_Evaluation.calculate, _SIDES)),
    **dict.fromkeys(_COMPARISONS, (_Evaluation.compare, _SIDES)),
}
"""By kind of expression its rule, and the arguments that the rule knows."""
_TOTAL: Final = frozenset(
    {
        exp.And, exp.Between, exp.Boolean, exp.Case, exp.If, exp.In, exp.Is, exp.Literal, exp.Not, exp.Null, exp.NullSafeEQ,
        exp.NullSafeNEQ, exp.Or, exp.Paren, *_COMPARISONS,
    }
)  # fmt: skip
"""Kinds of expressions that have a value for all values of their operands."""
_TOTAL_FUNCTIONS: Final = frozenset({"COALESCE", "NULLIF"})
