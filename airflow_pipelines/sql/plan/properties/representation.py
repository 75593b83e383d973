"""The expressions that can distinguish the representations of one value, and those that propagate a representation.

A plan stores intermediate values in canonical form, so that they may have another representation than Spark gives them. That has
no effect as long as no expression depends on it: comparisons, sums and conditions are insensitive to representations, arithmetic
propagates the sign of a zero, and any function that is not listed here is assumed to depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from sqlglot import exp

from airflow_pipelines.sql.plan.expressions import NotIncremental, function_name, sql

# fmt: off
_INSENSITIVE = frozenset({
    "approx_count_distinct", "avg", "cardinality", "ceil", "ceiling", "corr", "count", "count_if", "covar_pop", "covar_samp",
    "exp", "floor", "isnan", "isnotnull", "isnull", "kurtosis", "map_contains_key", "mean", "size", "skewness", "std", "stddev",
    "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp", "variance", "variance_pop",
})
"""Functions whose results are the same for all representations of their arguments.

A sum begins with 0.0, so that it is never -0.0.
"""
_PROPAGATING = frozenset({
    "abs", "any_value", "array", "array_agg", "array_sort", "coalesce", "collect_list", "element_at", "explode",
    "explode_outer", "first", "first_value", "get", "greatest", "if", "ifnull", "inline", "inline_outer", "lag", "last",
    "last_value", "lead", "least", "max", "max_by", "median", "min", "min_by", "mode", "named_struct", "negative", "nth_value",
    "nullif", "nvl", "nvl2", "percentile", "posexplode", "posexplode_outer", "round", "sort_array", "struct", "try_element_at",
})
"""Functions whose results have the representation of one of their arguments, or contain it."""
_OF_ONE_ARRAY = frozenset({"array_sort", "exists", "filter", "forall", "transform"})
"""Functions of an array and a lambda, whose parameters are the array's elements."""
_INSENSITIVE_NODES = (
    exp.Predicate, exp.Connector, exp.Not, exp.Is, exp.In, exp.Between, exp.Where, exp.Having, exp.Qualify, exp.Group, exp.Ordered,
    exp.Order, exp.Join, exp.Lateral, exp.WindowSpec,
)
_TEXTUAL = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.Glob, exp.SimilarTo)
"""Conditions over text, to which other values are cast."""
_PROPAGATING_NODES = (
    exp.Paren, exp.Alias, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Case, exp.If, exp.Coalesce, exp.Bracket, exp.Dot,
    exp.Tuple, exp.Window, exp.Filter, exp.Distinct, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Subquery, exp.Query,
    exp.From, exp.With, exp.CTE, exp.Max, exp.Min, exp.First, exp.Last, exp.AnyValue, exp.Nullif, exp.PropertyEQ,
)
_EXACT = frozenset({
    exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT,
    exp.DataType.Type.DECIMAL, exp.DataType.Type.BOOLEAN,
})
# fmt: on
_NUMBERS = _EXACT | {exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE}


def propagates_representation(tree: exp.Expr, columns: Set[str]) -> bool:
    """Return True if an expression's value, or a part of it, may have the representation of one of some columns.

    :param tree: an expression or a query
    :param columns: the columns' names, whatever their tables; in a query also those of its own derived tables are followed
    :raises NotIncremental: if the value may depend on the representation in another way
    """
    if not isinstance(tree, exp.Query):
        return _propagates(tree, columns)
    known = frozenset(columns)
    while True:
        outputs = {name for select in tree.find_all(exp.Select) for name in _outputs(select, known)}
        if outputs <= known:
            return _propagates(tree, known)
        known |= outputs


def _outputs(select: exp.Select, columns: Set[str]) -> Iterable[str]:
    """Return the names of a SELECT's columns that propagate a representation."""
    return (item.alias_or_name for item in select.expressions if _propagates(item, columns))


def _propagates(tree: exp.Expr, columns: Set[str]) -> bool:
    if isinstance(tree, exp.Column):
        # A field of a struct is written like a column of a table.
        return tree.name in columns or tree.table in columns
    if isinstance(tree, exp.Star):
        return bool(columns)
    if (function := _lambda_of(tree)) is not None:
        return _application_propagates(tree, function, columns)
    parts = [part for part in tree.iter_expressions() if _propagates(part, columns)]
    if not parts or _is_insensitive(tree, parts):
        return False
    if _is_propagating(tree):
        return True
    raise NotIncremental(f"{_shorten(tree)} may distinguish representations of a value that the plan stores in one form only")


def _lambda_of(tree: exp.Expr) -> exp.Lambda | None:
    """Return the lambda of a known function of one array, or None for any other expression."""
    if function_name(tree) not in _OF_ONE_ARRAY:
        return None
    return next((part for part in tree.iter_expressions() if isinstance(part, exp.Lambda)), None)


def _application_propagates(tree: exp.Expr, function: exp.Lambda, columns: Set[str]) -> bool:
    """Return :func:`propagates_representation` of a function of one array, whose elements are the parameters of its lambda."""
    held = _propagates(next(iter(tree.iter_expressions())), columns)
    parameters = {parameter.name for parameter in function.expressions}
    result = _propagates(_body(function, parameters), (columns - parameters) | (parameters if held else set()))
    match function_name(tree):
        case "transform":
            return result
        case "exists" | "forall":
            return False
        case _:
            return held


def _body(function: exp.Lambda, parameters: Set[str]) -> exp.Expr:
    """Return the body of a lambda with its parameters, which the parser leaves as bare names, written as columns."""

    def column(node: exp.Expr) -> exp.Expr:
        is_part = isinstance(node.parent, exp.Column) or (isinstance(node.parent, exp.Dot) and node.arg_key == "expression")
        return exp.column(node.copy()) if isinstance(node, exp.Identifier) and node.name in parameters and not is_part else node

    body: exp.Expr = function.this.copy().transform(column)
    return body


def _is_insensitive(tree: exp.Expr, parts: list[exp.Expr]) -> bool:
    if isinstance(tree, exp.Cast):
        return tree.to.this in _EXACT
    if _is_division(tree):
        # Division by a zero of either sign has no quotient: it is an error or NULL.
        return all(part is not next(tree.iter_expressions()) for part in parts)
    if isinstance(tree, (exp.IntDiv, *_TEXTUAL)):
        return False
    if isinstance(tree, exp.Window):
        # The definition of a window only compares values.
        return all(part is not tree.this for part in parts)
    return isinstance(tree, _INSENSITIVE_NODES) or function_name(tree) in _INSENSITIVE


def _is_propagating(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Cast):
        return tree.to.this in _NUMBERS
    # Division propagates the sign of a zero dividend.
    return _is_division(tree) or isinstance(tree, _PROPAGATING_NODES) or function_name(tree) in _PROPAGATING


def _is_division(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Div) or function_name(tree) == "try_divide"


def _shorten(tree: exp.Expr) -> str:
    text = sql(tree)
    return text if len(text) <= 60 else f"{text[:57]}..."
