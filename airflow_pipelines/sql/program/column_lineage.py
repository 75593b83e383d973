"""The lineage of the columns of views: the relations' columns that they are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, to_node
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import build_scope
from sqlglot.schema import MappingSchema

from airflow_pipelines.sql.program.declarations import ViewDeclaration
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.syntax.dialect import PipelineSpark, parse_query

_TYPE: Final = "string"
"""The type of all columns: only their names count."""


@dataclass(frozen=True, slots=True, order=True)
class ColumnOf:
    """A column of a relation, by canonical names."""

    relation: str
    column: str


Lineage = Mapping[str, frozenset[ColumnOf]]
"""For each column of a view the columns of the relations that the view reads from which its values are computed.

Columns that only filter or order rows are not included. The lineage of a column that is not a key is unknown.
"""

_DIALECT: Final = PipelineSpark(normalization_strategy="case_sensitive")
"""The dialect for names that are canonical already: folded, or quoted."""


def column_lineage(text: str, columns: Mapping[str, Sequence[str]]) -> dict[str, Lineage]:
    """Return the lineage of the views of a program that compiles.

    A query or column of an unsupported form has no lineage: that is better than a wrong one.

    :param text: the program's SQL
    :param columns: the columns of all its relations, in order, by the relations' canonical names
    :returns: the lineages by view
    :raises ProgramErrors: if the text cannot be read
    """
    parsed = parse_program(text)
    known = dict(columns)
    lineages = {}
    # Each view comes after those that it reads, except in cycles, whose views are declared.
    for name, view in parsed.views.items():
        lineages[name] = _lineage(view, known)
    return {name: lineage for name, lineage in lineages.items() if lineage}


def _lineage(view: ViewDeclaration, known: dict[str, Sequence[str]]) -> Lineage:
    """Return the lineage of a view; add the columns of a view that is not in ``known``, because it is local, to ``known``."""
    if any(read not in known for read in view.reads):
        return {}
    schema = MappingSchema({read: dict.fromkeys(known[read], _TYPE) for read in view.reads}, dialect=_DIALECT)
    try:
        scope = build_scope(qualify(parse_query(view.query), dialect=_DIALECT, schema=schema))
        if scope is None:
            return {}
        selected = cast("exp.Query", scope.expression).named_selects
        names = known.setdefault(view.name, view.column_names or selected)
        if len(selected) != len(names):
            return {}
        traced = [to_node(number, scope, _DIALECT, schema, trim_selects=False) for number in range(len(names))]
    except (SqlglotError, RecursionError, ValueError):
        return {}
    lineage = {name: _sources(node, known) for name, node in zip(names, traced, strict=True)}
    return {name: sources for name, sources in lineage.items() if sources is not None}


def without(lineages: Mapping[str, Lineage], hidden: Collection[str]) -> dict[str, Lineage]:
    """Return the lineage of the other relations, with hidden ones replaced by the columns that they are made of.

    :param lineages: the lineages by relation
    :param hidden: the relations to leave out, such as local views
    """
    return {name: _replace_hidden(lineage, lineages, hidden) for name, lineage in lineages.items() if name not in hidden}


def _replace_hidden(lineage: Lineage, lineages: Mapping[str, Lineage], hidden: Collection[str]) -> Lineage:
    replaced = {}
    for column, sources in lineage.items():
        visible: set[ColumnOf] = set()
        seen: set[ColumnOf] = set()
        waiting = list(sources)
        while waiting:
            source = waiting.pop()
            if source in seen:
                continue
            seen.add(source)
            if source.relation not in hidden:
                visible.add(source)
            elif source.column in lineages.get(source.relation, {}):
                waiting += lineages[source.relation][source.column]
            else:
                break
        else:
            replaced[column] = frozenset(visible)
    return replaced


def _sources(root: Node, columns: Mapping[str, Sequence[str]]) -> frozenset[ColumnOf] | None:
    """Return the columns that a column is made of, or None if a part of them is not known."""
    origins = set()
    for node in root.walk():
        if node.downstream or not isinstance(node.expression, exp.Table | exp.Placeholder):
            continue
        column = exp.to_column(node.name).name
        relation = _relation(node.expression)
        if relation is None or column not in columns.get(relation, ()):
            return None
        origins.add(ColumnOf(relation, column))
    return frozenset(origins)


def _relation(source: exp.Expression) -> str | None:
    """Return the relation of a leaf; a window function over a table stands for that table."""
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Anonymous):
        inner = list(source.this.find_all(exp.Table))
        return inner[0].name if len(inner) == 1 else None
    return source.name if isinstance(source, exp.Table) else None
