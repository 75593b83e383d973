"""Linear nodes that pass on the rows of one relation, each with the same multiplicity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select


@dataclass(frozen=True, slots=True)
class PassedRows:
    """The rows of a relation that are passed on.

    :param relation: the relation's name
    :param columns: the columns that are passed on unchanged: their names in the relation by their names in the node
    """

    relation: str
    columns: Mapping[str, str]


def passed_rows(node: Linear) -> PassedRows | None:
    """Return the rows that a node passes on, or None if it joins, filters, unnests or adds relations."""
    match node:
        case Scan():
            return PassedRows(node.relation, {name: name for name in node.columns})
        case Select(sources=(source,), filter=None, laterals=(), temporal_filters=()):
            below = passed_rows(source.node)
            if below is None:
                return None
            texts = {Expression.column(source.alias, name): column for name, column in below.columns.items()}
            return PassedRows(below.relation, {item.name: texts[item.text] for item in node.items if item.text in texts})
        case _:
            return None
