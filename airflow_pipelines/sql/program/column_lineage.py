"""Which columns the columns of views are made of."""

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
"""Of all columns: only their names count."""


@dataclass(frozen=True, slots=True, order=True)
class ColumnOf:
    """A column of a relation, by canonical names."""

    relation: str
    column: str


Lineage = Mapping[str, frozenset[ColumnOf]]
"""For each column of a view those of the relations that the view reads which its values are made of. Columns that only choose or
order rows are not among them. Of a column that is not there it is not known."""

_DIALECT: Final = PipelineSpark(normalization_strategy="case_sensitive")
"""Names are canonical already: folded, or quoted."""


def column_lineage(text: str, columns: Mapping[str, Sequence[str]]) -> dict[str, Lineage]:
    """The lineage of the views of a program that compiles.

    Where a query, or a column, is of a form that is not followed here, nothing is said of it: that is better than something wrong.

    :param text: the program's SQL
    :param columns: the columns of all its relations, in order, by the relations' canonical names
    :returns: by view
    :raises ProgramErrors: the text cannot be read
    """
    parsed = parse_program(text)
    known = dict(columns)
    found = {}
    # Each view comes after those that it reads, but for cycles, whose views are declared.
    for name, view in parsed.views.items():
        found[name] = _lineage(view, known)
    return {name: lineage for name, lineage in found.items() if lineage}


def _lineage(view: ViewDeclaration, known: dict[str, Sequence[str]]) -> Lineage:
    """The lineage of a view. The columns of one that is not known, because it is local, are added to ``known``."""
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
    found = {name: _sources(node, known) for name, node in zip(names, traced, strict=True)}
    return {name: sources for name, sources in found.items() if sources is not None}


def without(lineages: Mapping[str, Lineage], hidden: Collection[str]) -> dict[str, Lineage]:
    """The lineage of the other relations, in which hidden ones are replaced by what they are made of.

    :param lineages: by relation
    :param hidden: the relations to leave out, such as local views
    """
    return {name: _without(lineage, lineages, hidden) for name, lineage in lineages.items() if name not in hidden}


def _without(lineage: Lineage, lineages: Mapping[str, Lineage], hidden: Collection[str]) -> Lineage:
    found = {}
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
            found[column] = frozenset(visible)
    return found


def _sources(root: Node, columns: Mapping[str, Sequence[str]]) -> frozenset[ColumnOf] | None:
    """What a column is made of; None when a part of that is not known."""
    found = set()
    for node in root.walk():
        if node.downstream or not isinstance(node.expression, exp.Table | exp.Placeholder):
            continue
        column = exp.to_column(node.name).name
        relation = _relation(node.expression)
        if relation is None or column not in columns.get(relation, ()):
            return None
        found.add(ColumnOf(relation, column))
    return frozenset(found)


def _relation(source: exp.Expression) -> str | None:
    """The relation of a leaf; a window function over a table stands for that table."""
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Anonymous):
        inner = list(source.this.find_all(exp.Table))
        return inner[0].name if len(inner) == 1 else None
    return source.name if isinstance(source, exp.Table) else None
