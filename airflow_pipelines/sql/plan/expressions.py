"""Checks and transformations of expression trees that all parts of the planner share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from sqlglot import exp

from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls
from airflow_pipelines.sql.syntax.dialect import DIALECT

_NOT_SCALAR = (exp.Query, exp.Subquery, exp.Exists, exp.Window, exp.Star, exp.Parameter, exp.Placeholder)
# fmt: off
_GENERATORS = frozenset({
    "explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack",
})
_NONDETERMINISTIC = frozenset({
    "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_timezone", "current_user", "input_file_name", "localtimestamp", "monotonically_increasing_id", "now", "rand",
    "randn", "random", "randstr", "session_user", "shuffle", "spark_partition_id", "user", "uuid", "uniform",
})
# fmt: on


class NotIncremental(Exception):
    """The error that a query has a construct without an incremental rule; the text names the construct.

    :param tree: the part of the query's tree that has no rule, if it is known
    """

    def __init__(self, message: str, tree: exp.Expr | None = None) -> None:
        super().__init__(message)
        self.tree = tree


class Unplannable(NotIncremental):
    """The error that Spark cannot plan the query, because a constant in it cannot be evaluated."""


@contextmanager
def planning(tree: exp.Expr) -> Iterator[None]:
    """Attribute an error raised within to a part of the query, unless the error already names a smaller part.

    :param tree: the part, as it was parsed
    """
    try:
        yield
    except NotIncremental as error:
        if error.tree is None:
            error.tree = tree
        raise


def construct_name(tree: exp.Expr) -> str:
    """Return the name of a construct for messages: its SQL keyword if it has one."""
    return {"Union": "UNION", "Intersect": "INTERSECT", "Except": "EXCEPT"}.get(type(tree).__name__, type(tree).__name__)


def require_only(tree: exp.Expr, known: Iterable[str]) -> None:
    """Refuse a tree that has parts other than the known ones.

    :param tree: the tree
    :param known: the names of its parts that have a rule
    :raises NotIncremental: if it has other parts
    """
    for name, value in tree.args.items():
        if value and name not in known:
            part = value if isinstance(value, exp.Expr) else tree
            raise NotIncremental(f"{name.strip('_').upper()} in {construct_name(tree)} has no incremental rule yet", part)


def function_name(node: exp.Expr) -> str | None:
    """Return the name of a function call in lower case, or None if the node is no call."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else None


def require_deterministic(tree: exp.Expr) -> None:
    """Refuse nondeterministic functions.

    :raises NotIncremental: if there is one
    """
    for node in tree.walk():
        name = function_name(node)
        if name in _NONDETERMINISTIC or (name == "unix_timestamp" and not any(node.iter_expressions())):
            raise NotIncremental(f"{name}() gives another value at another time", node)


def require_scalar(tree: exp.Expr) -> None:
    """Refuse anything but a deterministic expression over one row.

    :raises NotIncremental: if there is a nondeterministic function, subquery, window function or aggregate
    """
    require_row_or_group(tree)
    for call in aggregate_calls(tree):
        raise NotIncremental("an aggregate call outside of SELECT and HAVING has no incremental rule", call)


def require_row_or_group(tree: exp.Expr) -> None:
    """Refuse anything but a deterministic expression over one row or one group.

    :raises NotIncremental: if there is a nondeterministic function, subquery or window function
    """
    require_deterministic(tree)
    for node in tree.walk():
        if isinstance(node, exp.Star) and isinstance(node.parent, exp.Count):
            continue
        if isinstance(node, _NOT_SCALAR):
            raise NotIncremental(f"{type(node).__name__} in an expression has no incremental rule yet", node)


def is_generator(tree: exp.Expr) -> bool:
    """Return True if an expression gives several rows."""
    return any(function_name(node) in _GENERATORS for node in tree.walk())


def is_generator_call(tree: exp.Expr) -> bool:
    """Return True if an expression is only a call of a generator, which gives several rows."""
    call = tree.this if isinstance(tree, exp.Aliases) else tree
    return function_name(call) in _GENERATORS


def conjuncts(tree: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conjuncts of a condition."""
    if tree is None:
        return
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield tree


def distinct(trees: Iterable[exp.Expr]) -> list[exp.Expr]:
    """Return the trees without repetitions, in order."""
    return list(dict.fromkeys(trees))


def sql(tree: exp.Expr) -> str:
    """Return a tree as Spark SQL."""
    return tree.sql(dialect=DIALECT)


def substitute(tree: exp.Expr, names: Mapping[exp.Expr, exp.Expr]) -> exp.Expr:
    """Return a copy of ``tree`` with every (topmost) subtree that is in ``names`` replaced.

    :param tree: the tree
    :param names: the replacement of each subtree
    """
    if tree in names:
        return names[tree].copy()
    return tree.copy().transform(lambda node: names[node].copy() if node in names else node, copy=False)
