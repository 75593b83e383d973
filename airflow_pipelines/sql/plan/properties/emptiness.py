"""The relations without whose rows a query gives none."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_pipelines.sql.plan.ir.markers import is_marker
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls
from airflow_pipelines.sql.syntax.dialect import parse_query

_SELECT = frozenset({
    "distinct", "expressions", "from_", "group", "having", "hint", "joins", "laterals", "limit", "offset", "order", "qualify",
    "where", "windows", "with_",
})  # fmt: skip


def required_inputs(query: str, reads: Collection[str]) -> tuple[str, ...]:
    """Return the relations of which one must have a row before a query has any: while all of them are empty, so is its answer.

    :param query: a view's query, in Spark SQL
    :param reads: the relations that it names
    :returns: empty if the query may have rows over empty relations, or that is not known
    """
    relations = tuple(name for name in reads if not is_marker(name))
    try:
        tree = parse_query(query)
        return relations if relations and _is_empty(tree, dict.fromkeys(relations, True)) else ()
    except (SqlglotError, RecursionError):
        # Nothing is known about the query then, so that it is evaluated.
        return ()


def _is_empty(tree: exp.Expr | None, names: Mapping[str, bool]) -> bool:
    """Return True if a query or source surely has no rows.

    :param names: the names in FROM, each with True if its relation is empty
    """
    match tree:
        case exp.Table():
            return len(tree.parts) == 1 and _is_plain(tree) and names.get(tree.name, False)
        case exp.Subquery():
            return _is_plain(tree) and _is_empty(tree.this, _inside(tree, names))
        case exp.Union():
            inner = _inside(tree, names)
            return _is_empty(tree.this, inner) and _is_empty(tree.expression, inner)
        case exp.Intersect() | exp.Except():
            return _is_empty(tree.this, _inside(tree, names))
        case exp.Select():
            return _select_is_empty(tree, _inside(tree, names))
        case _:
            return False


def _is_plain(source: exp.Expr) -> bool:
    return not source.args.get("pivots") and not source.args.get("joins")


def _select_is_empty(select: exp.Select, names: Mapping[str, bool]) -> bool:
    source = select.args.get("from_")
    if source is None or any(value and name not in _SELECT for name, value in select.args.items()):
        return False
    if any((join.side or "").upper() in {"RIGHT", "FULL"} for join in select.args.get("joins") or []):
        return False
    return _is_empty(source.this, names) and not _is_total(select)


def _is_total(select: exp.Select) -> bool:
    """Return True if a SELECT may give a row for no rows: an aggregate without keys, or with an empty grouping set."""
    group = select.args.get("group")
    if group is not None:
        others = any(value and name != "expressions" for name, value in group.args.items())
        return not group.expressions or others or group.find(exp.GroupingSets, exp.Cube, exp.Rollup) is not None
    if select.args.get("having") is not None:
        return True
    parts = [*select.expressions, select.args.get("order"), select.args.get("qualify")]
    return any(True for part in parts if part is not None for _ in aggregate_calls(part))


def _inside(tree: exp.Expr, names: Mapping[str, bool]) -> Mapping[str, bool]:
    """Return the names within a query with common table expressions of its own."""
    clause = tree.args.get("with_")
    if clause is None:
        return names
    inner = dict(names)
    for common in clause.expressions:
        inner[common.alias] = not clause.args.get("recursive") and _is_empty(common.this, inner)
    return inner
