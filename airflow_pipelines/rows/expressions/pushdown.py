"""Conditions in SQL that Arrow evaluates while it reads files, so that rows that cannot match are not read.

They choose rows of a source and mean what that source's own SQL means, which is not Spark's: a text, for instance, is cast to the
type of the column beside it. So they are not those of :mod:`~airflow_pipelines.rows.expressions.evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

Expression: TypeAlias = pc.Expression


class ConditionProblem(ValueError):
    """A condition that cannot be read, or that names something that does not exist; the message lists what exists instead."""


class NotWhileReadingError(ConditionProblem):
    """A condition that Arrow cannot evaluate while it reads files, or that may fail for some rows."""


_COMPARISONS: Final[Mapping[type[exp.Expr], Callable[[Expression, Expression], Expression]]] = {
    exp.EQ: lambda one, other: one == other,
    exp.NEQ: lambda one, other: one != other,
    exp.LT: lambda one, other: one < other,
    exp.LTE: lambda one, other: one <= other,
    exp.GT: lambda one, other: one > other,
    exp.GTE: lambda one, other: one >= other,
}
_FUNCTIONS: Final[Mapping[type[exp.Expr], Callable[[Expression], Expression]]] = {
    exp.Lower: pc.utf8_lower,
    exp.Upper: pc.utf8_upper,
    exp.Length: pc.utf8_length,
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """The part of a condition that is evaluated while files are read.

    :param expression: an expression that holds for all rows that meet the condition; None if no part can be pushed
    :param is_whole: True if the expression holds for no other rows
    """

    expression: Expression | None
    is_whole: bool


def check_condition(text: str) -> None:
    """Check that the parser knows the syntax of a condition.

    :param text: SQL; names with other characters than letters, digits and ``_`` are in double quotes
    :raises NotWhileReadingError: if the parser does not know its syntax
    """
    _tree(text)


def push_condition(text: str, schema: pa.Schema) -> Pushed:
    """Return the part of a condition that Arrow evaluates: the conjuncts (parts of AND) that it supports and that fail for no row.

    :param text: the condition, in SQL
    :param schema: the schema of the rows
    :raises ConditionProblem: if the condition names a column that does not exist
    """
    try:
        tree = _tree(text)
    except NotWhileReadingError:
        return Pushed(None, is_whole=False)
    condition: Expression | None = None
    is_whole = True
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        try:
            one = _Reading(schema).expression(part)
            # Incompatible types show only when the expression is evaluated.
            pads.dataset(schema.empty_table()).to_table(filter=one)
        except (NotWhileReadingError, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            is_whole = False
            continue
        condition = one if condition is None else condition & one
    return Pushed(condition, is_whole)


def read_order(text: str) -> list[tuple[str, str]]:
    """Parse a list of columns, each with ``ascending`` or ``descending``.

    :param text: a list such as ``ts, seq DESC``
    :raises ConditionProblem: if the text is anything else
    """
    try:
        tree = sqlglot.parse_one(f"SELECT 1 ORDER BY {text}").args["order"]
    except SqlglotError as error:
        raise ConditionProblem(f"{text!r} is no list of columns such as 'ts, seq DESC'") from error
    columns = []
    for each in tree.expressions:
        if not isinstance(each.this, exp.Column):
            raise ConditionProblem(f"{each.this.sql()!r} is no column; rows are ordered by columns")
        columns.append((each.this.name, "descending" if each.args.get("desc") else "ascending"))
    return columns


def find_column(name: str, schema: pa.Schema) -> str:
    """Return the name of a column as the table spells it; Delta's names are case-insensitive.

    :raises ConditionProblem: if there is no such column
    """
    column: str | None = {each.lower(): each for each in schema.names}.get(name.lower())
    if column is None:
        raise ConditionProblem(f"the table has no column {name!r}; its columns: {', '.join(schema.names)}")
    return column


def _tree(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, into=exp.Condition)
    except SqlglotError as error:
        reason = str(error).partition("\n")[0].replace("\x1b[4m", "").replace("\x1b[0m", "")
        raise NotWhileReadingError(f"{text!r} is no condition in SQL: {reason}") from error


class _Reading:
    """A translator of expression trees to Arrow expressions.

    :param schema: the schema of the rows
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def expression(self, tree: exp.Expr) -> Expression:
        """Translate a tree to an Arrow expression."""
        makers: Mapping[type[exp.Expr], Callable[[Any], Expression]] = {
            exp.Paren: lambda tree: self.expression(tree.this),
            exp.And: lambda tree: self.expression(tree.left) & self.expression(tree.right),
            exp.Or: lambda tree: self.expression(tree.left) | self.expression(tree.right),
            exp.Not: lambda tree: ~self.expression(tree.this),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.NullSafeEQ: self._null_safe,
            exp.NullSafeNEQ: self._null_safe,
            exp.Column: self._column,
            exp.Coalesce: lambda tree: pc.coalesce(*map(self.expression, [tree.this, *tree.expressions])),
            **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast), lambda tree: pc.scalar(_value(tree))),
            **dict.fromkeys(_COMPARISONS, lambda tree: self._compare(type(tree), tree.left, tree.right)),
            **dict.fromkeys(_FUNCTIONS, lambda tree: _FUNCTIONS[type(tree)](self.expression(tree.this))),
        }
        maker = makers.get(type(tree))
        if maker is None:
            raise NotWhileReadingError(tree.sql())
        made = maker(tree)
        # The parser represents NOT LIKE as one node with a flag.
        return ~made if tree.args.get("negate") else made

    def _between(self, tree: exp.Between) -> Expression:
        low = self._compare(exp.GTE, tree.this, tree.args["low"])
        return low & self._compare(exp.LTE, tree.this, tree.args["high"])

    def _compare(self, how: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> Expression:
        left, right = self._align_types(one, other)
        if any(pa.types.is_floating(self._evaluated_type(side)) for side in (left, right)):
            # SQL orders NaN above all numbers, Arrow does not order it, and the bounds that Parquet keeps of a column ignore it.
            raise NotWhileReadingError(f"{one.sql()} or {other.sql()} may be NaN")
        return _COMPARISONS[how](left, right)

    def _evaluated_type(self, expression: Expression) -> pa.DataType:
        return pads.dataset(self._schema.empty_table()).to_table(columns={"value": expression}).schema.field("value").type

    def _align_types(self, one: exp.Expr, other: exp.Expr) -> tuple[Expression, Expression]:
        """Translate both sides of a comparison, with a literal cast to the type of the column on the other side."""
        if _is_literal(other):
            return self.expression(one), self._literal(other, self._type_of(one))
        if _is_literal(one):
            return self._literal(one, self._type_of(other)), self.expression(other)
        return self.expression(one), self.expression(other)

    def _is(self, tree: exp.Is) -> Expression:
        value = self.expression(tree.this)
        if isinstance(tree.expression, exp.Null):
            return value.is_null()
        if isinstance(tree.expression, exp.Boolean):
            return pc.coalesce(value == pc.scalar(bool(tree.expression.this)), pc.scalar(False))
        raise NotWhileReadingError(tree.sql())

    def _in(self, tree: exp.In) -> Expression:
        if not tree.expressions or not all(map(_is_literal, tree.expressions)):
            raise NotWhileReadingError(tree.sql())
        condition = pc.scalar(False)
        for value in tree.expressions:
            condition = condition | self._compare(exp.EQ, tree.this, value)
        return condition

    def _like(self, tree: exp.Like) -> Expression:
        if not isinstance(tree.expression, exp.Literal):
            raise NotWhileReadingError(tree.sql())
        return pc.match_like(self.expression(tree.this), tree.expression.name)

    def _null_safe(self, tree: exp.Binary) -> Expression:
        one, other = self._align_types(tree.left, tree.right)
        is_equal = self._compare(exp.EQ, tree.left, tree.right)
        same = (one.is_null() & other.is_null()) | pc.coalesce(is_equal, pc.scalar(False))
        return ~same if isinstance(tree, exp.NullSafeNEQ) else same

    def _column(self, tree: exp.Column) -> Expression:
        names = [part.name for part in tree.parts]
        names[0] = find_column(names[0], self._schema)
        return pc.field(*names)

    def _type_of(self, tree: exp.Expr) -> pa.DataType | None:
        """Return the type of a column, or None for anything else."""
        if isinstance(tree, exp.Paren):
            return self._type_of(tree.this)
        if not isinstance(tree, exp.Column):
            return None
        kind = self._schema.field(find_column(tree.parts[0].name, self._schema)).type
        for part in tree.parts[1:]:
            if not pa.types.is_struct(kind) or kind.get_field_index(part.name) < 0:
                raise NotWhileReadingError(tree.sql())
            kind = kind.field(part.name).type
        return kind

    def _literal(self, tree: exp.Expr, kind: pa.DataType | None) -> Expression:
        value = _value(tree)
        if kind is None:
            return pc.scalar(value)
        try:
            if pa.types.is_timestamp(kind) and kind.tz is not None and pa.types.is_string(value.type):
                value = _parse_instant(value)
            return pc.scalar(value.cast(_find_comparison_type(value, kind)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise NotWhileReadingError(tree.sql()) from error


def _is_literal(tree: exp.Expr) -> bool:
    match tree:
        case exp.Neg() | exp.Paren():
            return _is_literal(tree.this)
        case exp.Cast():
            # DATE '2024-01-01' and the like.
            return isinstance(tree.this, exp.Literal)
        case _:
            return isinstance(tree, exp.Literal | exp.Boolean | exp.Null)


def _value(tree: exp.Expr) -> pa.Scalar:
    match tree:
        case exp.Paren():
            return _value(tree.this)
        case exp.Neg():
            return pc.negate_checked(_value(tree.this))
        case exp.Null():
            return pa.scalar(None)
        case exp.Boolean():
            return pa.scalar(bool(tree.this))
        case exp.Cast():
            try:
                return _value(tree.this).cast(_arrow_type(tree.to))
            except pa.ArrowInvalid as error:
                raise NotWhileReadingError(tree.sql()) from error
        case exp.Literal():
            return _literal_value(tree)
        case _:
            raise NotWhileReadingError(tree.sql())


def _literal_value(tree: exp.Literal) -> pa.Scalar:
    text = tree.name
    if tree.is_string:
        return pa.scalar(text)
    if "e" in text.lower():
        return pa.scalar(float(text))
    if "." in text:
        digits, scale = len(text.replace(".", "")), len(text.partition(".")[2])
        return pa.scalar(text).cast(pa.decimal128(max(digits, 1), scale))
    return pa.scalar(int(text))


def _parse_instant(text: pa.Scalar) -> pa.Scalar:
    """Parse a timestamp; a text without a time zone is in UTC."""
    try:
        return text.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return text.cast(pa.timestamp("us", "UTC"))


def _find_comparison_type(value: pa.Scalar, kind: pa.DataType) -> pa.DataType:
    """Return the type in which to compare a literal with a column of another type, such that the literal keeps its exact value."""
    if pa.types.is_decimal(value.type) and pa.types.is_integer(kind):
        return value.type
    if pa.types.is_decimal(value.type) and pa.types.is_decimal(kind) and value.type.scale > kind.scale:
        return value.type
    if pa.types.is_integer(value.type) and pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_integer(value.type) and pa.types.is_integer(kind):
        return value.type
    return kind


_TYPES: Final[Mapping[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}


def _arrow_type(kind: exp.DataType) -> pa.DataType:
    name = kind.this.name if hasattr(kind.this, "name") else str(kind.this)
    if name == "DECIMAL":
        sizes: Sequence[int] = [int(each.name) for each in kind.expressions]
        return pa.decimal128(*sizes) if sizes else pa.decimal128(38, 0)
    if name not in _TYPES:
        raise NotWhileReadingError(kind.sql())
    return _TYPES[name]
