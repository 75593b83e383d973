"""Plans of ORDER BY with LIMIT or OFFSET: the first rows are recomputed from the rows of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, sql
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Linear

Outputs = Sequence[tuple[str, exp.Expr]]


@dataclass(frozen=True, slots=True)
class RowLimit:
    """The ORDER BY, LIMIT and OFFSET of a query.

    :param keys: the columns and their directions
    :param sort_columns: the sort expressions that are not columns of the result, under names that ``keys`` use
    :param clauses: LIMIT and OFFSET as text
    :param tree: LIMIT or OFFSET as written in the query
    """

    keys: list[tuple[str, exp.Ordered]]
    sort_columns: list[tuple[str, exp.Expr]]
    clauses: str
    tree: exp.Expr


def row_limit_of(tree: exp.Expr, outputs: Outputs) -> RowLimit | None:
    """Return the row limit of a query.

    :param tree: the query
    :param outputs: its columns
    :returns: None if it has neither LIMIT nor OFFSET
    :raises NotIncremental: if LIMIT or OFFSET is without ORDER BY or has an unsupported form
    """
    clauses, clause = _clauses(tree), tree.args.get("limit") or tree.args.get("offset")
    if clause is None:
        return None
    order = tree.args.get("order")
    if order is None:
        raise NotIncremental("LIMIT without ORDER BY takes any rows", clause)
    keys: list[tuple[str, exp.Ordered]] = []
    sort_columns: list[tuple[str, exp.Expr]] = []
    for ordered in order.expressions:
        name = _output(ordered.this, outputs)
        if name is None:
            name = f"__o{len(sort_columns)}"
            sort_columns.append((name, ordered.this))
        if not any(name == known for known, _ in keys):
            keys.append((name, ordered))
    return RowLimit(keys, sort_columns, clauses, clause)


def first_rows(builder: Builder, node: Linear, columns: tuple[str, ...], limit: RowLimit) -> AffectedKeys:
    """Plan the first rows of a node.

    :param builder: the plan
    :param node: the rows, with the sort columns after the result columns
    :param columns: the columns of the result
    :param limit: the limit
    """
    source = builder.name("s")
    keys = []
    for name, ordered in limit.keys:
        key = ordered.copy()
        key.set("this", exp.column(name, table=source, quoted=True))
        keys.append(sql(key))
    items = ", ".join(f"{quote(source)}.{quote(name)} AS {quote(name)}" for name in columns)
    query = QueryExpression(f"SELECT {items} FROM {quote(source)} ORDER BY {', '.join(keys)} {limit.clauses}")
    reason = builder.places.reason("the first of all rows depend on all rows", limit.tree)
    rows = KeyedSource(source, builder.rereadable(node), ())
    return AffectedKeys((rows,), query, columns, (), Shape.TOP, reason=reason)


def _clauses(tree: exp.Expr) -> str:
    """Return the LIMIT and OFFSET clauses of a query as text, or an empty text if it has none."""
    parts = []
    for name in ("limit", "offset"):
        clause = tree.args.get(name)
        if clause is not None:
            if not isinstance(clause, exp.Limit | exp.Offset) or clause.find(exp.Query, exp.Column):
                raise NotIncremental(f"this form of {name.upper()} has no incremental rule yet", clause)
            parts.append(f"{name.upper()} {sql(clause.expression)}")
    return " ".join(parts)


def _output(key: exp.Expr, outputs: Outputs) -> str | None:
    """Return the column of the result that a sort key refers to by its name, its number or its expression."""
    if isinstance(key, exp.Literal) and key.is_int:
        return outputs[int(key.name) - 1][0]
    if isinstance(key, exp.Column) and not key.table:
        return next((name for name, _ in outputs if name == key.name), None)
    return next((name for name, item in outputs if item == key), None)
