"""Derived tables for FULL JOINs whose shared columns another join reads, with one column for each shared column.

Spark plans such a chain in the same way: the next join compares the column that the FULL JOIN has made of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.sql.plan.expressions import substitute
from airflow_pipelines.sql.plan.sources import own_sources


@dataclass(slots=True)
class SharedColumns:
    """The columns that USING and NATURAL have made in the first joins of one SELECT.

    :param number: the number of these joins
    :param columns: the shared columns by their names
    """

    number: int
    columns: Mapping[str, exp.Expr] = field(default_factory=dict)


def derive_full_join(select: exp.Select, made: SharedColumns, alias: str) -> None:
    """Replace the first joins of a SELECT, of which the last one is a FULL JOIN, by a derived table.

    :param select: a SELECT whose columns are qualified; it is changed
    :param made: the shared columns of these joins
    :param alias: the name of the derived table
    """
    joins = select.args["joins"]
    inner = exp.Select(expressions=[])
    inner.set("from_", select.args["from_"])
    inner.set("joins", joins[: made.number])
    select.set("from_", None)
    select.set("joins", joins[made.number :])
    names: dict[exp.Expr, exp.Expr] = {tree: _column(alias, name) for name, tree in made.columns.items()}
    for clause in list(select.args.values()):
        for part in clause if isinstance(clause, list) else [clause]:
            if isinstance(part, exp.Expr):
                part.replace(substitute(part, names))
    inside = frozenset(own_sources(inner))
    read = dict.fromkeys(column for column in select.find_all(exp.Column) if column.table in inside)
    taken = list(made.columns)
    others: dict[exp.Expr, exp.Expr] = {}
    for column in read:
        name = column.name if column.name not in taken else f"{column.name}__{len(taken)}"
        taken.append(name)
        others[column] = _column(alias, name)
    for column in list(select.find_all(exp.Column)):
        if column in others:
            column.replace(others[column].copy())
    items = [*made.columns.values(), *others]
    inner.set("expressions", [exp.alias_(item.copy(), name, quoted=True) for item, name in zip(items, taken, strict=True)])
    table = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=table)))


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(name, table=alias, quoted=True)
