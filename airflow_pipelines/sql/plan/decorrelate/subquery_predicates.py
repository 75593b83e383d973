"""Syntactic analysis of EXISTS, IN and scalar subqueries: their meaning and position, from the tree alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from airflow_pipelines.sql.plan.decorrelate.correlation import is_one_row
from airflow_pipelines.sql.plan.expressions import NotIncremental, function_name

_COUNTS = frozenset({"count", "count_if", "regr_count", "approx_count_distinct"})
"""Aggregates that are 0 over no rows."""
# fmt: off
_NULL_OVER_NO_ROWS = frozenset({
    "any", "any_value", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "covar_pop", "covar_samp", "every",
    "first", "first_value", "kurtosis", "last", "last_value", "logical_and", "logical_or", "max", "max_by", "mean", "median", "min",
    "min_by", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "try_avg", "try_sum", "var_pop", "var_samp",
    "variance", "variance_pop",
})
# fmt: on
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_STRICT = (*_COMPARISONS, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast)
"""Null-propagating expressions, which are NULL as soon as one operand is."""


def has_subquery(tree: exp.Expr) -> bool:
    """Return True if an expression contains a subquery."""
    return tree.find(exp.Query) is not None


def predicate_of(condition: exp.Expr) -> exp.Exists | exp.In | None:
    """Return the EXISTS or IN of a condition that is only [NOT] EXISTS or [NOT] IN, or None for any other condition."""
    inner = condition.unnest()
    while isinstance(inner, exp.Not):
        inner = inner.this.unnest()
    return inner if isinstance(inner, exp.Exists) or is_in(inner) else None  # type: ignore[return-value]


def is_in(tree: exp.Expr) -> bool:
    """Return True if a tree is IN with a subquery."""
    return isinstance(tree, exp.In) and tree.args.get("query") is not None


def is_negated(condition: exp.Expr) -> bool:
    """Return True if an odd number of NOTs stands before a condition."""
    inner, negated = condition.unnest(), False
    while isinstance(inner, exp.Not):
        inner, negated = inner.this.unnest(), not negated
    return negated


def query_of(subquery: exp.Expr) -> exp.Query:
    """Return the query of an EXISTS, an IN or a scalar subquery."""
    tree: exp.Expr = subquery.args["query"] if isinstance(subquery, exp.In) else subquery
    tree = tree.this if isinstance(tree, exp.Exists) else tree
    while isinstance(tree, exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Query):
        raise NotIncremental("a subquery in an unknown form has no incremental rule", tree)
    return tree


def subquery_expressions(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outermost EXISTS, IN and scalar subqueries in an expression."""
    if isinstance(tree, exp.Exists) or is_in(tree) or isinstance(tree, exp.Query):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from subquery_expressions(child)


def in_condition(tree: exp.Expr, subquery: exp.Expr) -> bool:
    """Return True if Spark surely evaluates an IN as a condition, where NULL counts as false, everywhere in an expression.

    :param tree: the expression
    :param subquery: the IN
    """
    places = [node for node in tree.walk() if node == subquery]
    return all(_is_condition(place, tree) for place in places)


def _is_condition(node: exp.Expr, root: exp.Expr) -> bool:
    while node is not root:
        parent = node.parent
        if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) and parent.this is node and not parent.parent.this:
            return True
        if not isinstance(parent, exp.And | exp.Or | exp.Not | exp.Paren):
            return False
        if isinstance(parent, exp.Not) and not isinstance(node.unnest(), exp.In):
            # Spark applies De Morgan's laws to NOT (a AND b), which turns IN into NOT IN.
            return False
        node = parent
    return True


def equalities(lefts: Sequence[exp.Expr], rights: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the equalities between each expression on the left and its counterpart on the right.

    :param lefts: the expressions
    :param rights: their counterparts
    :raises NotIncremental: if the numbers of expressions differ
    """
    if len(lefts) != len(rights):
        raise NotIncremental("IN with a row of another length has no incremental rule", lefts[0])
    return [exp.EQ(this=left.copy(), expression=right.copy()) for left, right in zip(lefts, rights, strict=True)]


def is_not_null(tree: exp.Expr) -> exp.Expr:
    """Return the tree of ``tree IS NOT NULL``."""
    return exp.Not(this=exp.Is(this=exp.Paren(this=tree.copy()), expression=exp.Null()))


def is_unique(query: exp.Query) -> bool:
    """Return True if the rows of a query are surely distinct."""
    if not isinstance(query, exp.Select):
        return isinstance(query, exp.SetOperation) and bool(query.args.get("distinct"))
    if query.args.get("distinct") or is_one_row(query):
        return True
    group = query.args.get("group")
    if group is None or group.args.get("all") or not group.expressions:
        return False
    items = [item.unalias() for item in query.expressions]
    return all(key in items for key in group.expressions)


def value_over_no_rows(call: exp.Expr) -> str | None:
    """Return the value of an aggregate over no rows, or None if that is not known."""
    while isinstance(call, exp.Filter):
        call = call.this
    name = function_name(call)
    if name in _COUNTS or isinstance(call, exp.Count | exp.CountIf):
        return "0"
    return "NULL" if name in _NULL_OVER_NO_ROWS else None


def rejects_nulls(condition: exp.Expr, columns: set[exp.Expr]) -> bool:
    """Return True if a condition is null-rejecting: it cannot be true if all of some columns are NULL.

    :param condition: the condition
    :param columns: the columns
    """
    inner = condition.unnest()
    if not isinstance(inner, _COMPARISONS):
        return False
    return any(_is_strict(side, columns) for side in (inner.left, inner.right))


def _is_strict(tree: exp.Expr, columns: set[exp.Expr]) -> bool:
    if tree in columns:
        return True
    return isinstance(tree, _STRICT) and any(_is_strict(child, columns) for child in tree.iter_expressions())
