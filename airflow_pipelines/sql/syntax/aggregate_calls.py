"""The aggregate calls in a query's tree."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

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


def is_aggregate_name(name: str) -> bool:
    """Return True if a function is an aggregate of Spark.

    :param name: its name, in lower case
    """
    return name in _BY_NAME


def is_aggregate(node: exp.Expr) -> bool:
    """Return True if a node is an aggregate function itself (without FILTER and the like around it)."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _BY_NAME
    if isinstance(node, exp.Any):
        # LIKE ANY lists patterns.
        return node.find(exp.Query) is None and not isinstance(node.parent, exp.Like | exp.ILike)
    return isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping | exp.GroupingId)


def aggregate_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outermost aggregate calls of an expression, each with the FILTER and similar clauses around it.

    Subqueries are left out. A window function is no aggregate call, but its arguments may contain some.
    """
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Window):
        for part in _window_parts(tree):
            yield from aggregate_calls(part)
        return
    if is_aggregate(tree) or (isinstance(tree, _WRAPPERS) and is_aggregate(_unwrap(tree))):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from aggregate_calls(child)


def _window_parts(window: exp.Window) -> Iterator[exp.Expr]:
    """Yield the arguments, the FILTER condition and the definition of a function with OVER."""
    function = window.this
    while isinstance(function, _WRAPPERS):
        if function.args.get("expression") is not None:
            yield function.expression
        function = function.this
    yield from function.iter_expressions()
    yield from (part for part in window.iter_expressions() if part is not window.this)


def _unwrap(node: exp.Expr) -> exp.Expr:
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node
