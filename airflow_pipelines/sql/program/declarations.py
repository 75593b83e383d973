"""The declarations in the text of a SQL program, before Spark has seen it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.messages import ProgramMessage
from airflow_pipelines.program.relations import Index, Table, ViewKind
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.sql.program.function_bodies import FunctionBody
from airflow_pipelines.sql.syntax.cursor import Name
from airflow_pipelines.sql.syntax.edits import Edited


@dataclass(frozen=True, slots=True)
class PropertyText:
    """One ``'key' = 'value'`` pair of a WITH clause, with the positions of both."""

    value: str
    key_span: Span
    value_span: Span


@dataclass(frozen=True, slots=True)
class Lateness:
    """``LATENESS view.column bound``: rows more than ``bound`` (Spark SQL text) behind the greatest value so far are late."""

    column: str
    bound: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ViewDeclaration:
    """A view declaration.

    :param query: Spark SQL with every unquoted name folded to lower case and every quoted one in back quotes, translated where
     Spark has another syntax
    :param query_offset: the offset of the query in the program; folding keeps lengths, and ``edits`` records the changes of the
     translation, so that :meth:`place` maps back
    :param reads: the canonical names of the relations that the query names
    :param column_names: the optional ``name(cols)`` list
    :param declared: the columns of ``DECLARE RECURSIVE VIEW``, or None if there is no such statement
    :param cycle: the views that it reads in a cycle with, itself included, in the order written; empty if there is no cycle
    :param lateness: the LATENESS statements about its columns
    """

    name: str
    kind: ViewKind
    query: str
    query_offset: int
    reads: tuple[str, ...]
    case_sensitive: bool = False
    column_names: tuple[str, ...] | None = None
    properties: Mapping[str, PropertyText] = field(default_factory=dict)
    connectors: tuple[Connector, ...] = ()
    span: Span | None = None
    declared: tuple[Column, ...] | None = None
    cycle: tuple[str, ...] = ()
    lateness: tuple[Lateness, ...] = ()
    edits: Edited | None = None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the position in the program's text of characters ``start`` to ``end`` (exclusive) of the query."""
        first, last = (start, end) if self.edits is None else self.edits.origin(start, end)
        return self.query_offset + first, self.query_offset + last

    @property
    def emit_final(self) -> PropertyText | None:
        """The property ``emit_final``: the name or number (from 0) of the column whose waterline decides which rows are final."""
        return self.properties.get("emit_final")


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """``CREATE INDEX name ON relation(columns)``."""

    name: Name
    relation: Name
    columns: tuple[Name, ...]

    @property
    def index(self) -> Index:
        """The index that it declares."""
        return Index(self.name.text, self.relation.text, tuple(column.text for column in self.columns))


@dataclass(frozen=True, slots=True)
class ParsedProgram:
    """A program whose names resolve: tables in the order written, views ordered so that each comes after those it reads.

    Of views that read each other in a cycle those declared recursive come first, then the others, each after those of the others
    that it reads.

    :param definitions: its own types and functions
    :param table_properties: the properties in the WITH clause of each table
    :param bodies: the expressions of its SQL functions with their positions
    :param warnings: the warnings about clauses that have no effect
    :param given: the relations that are made outside of the text and that its views may read
    """

    text: str
    tables: Mapping[str, Table]
    views: Mapping[str, ViewDeclaration]
    definitions: Definitions
    table_properties: Mapping[str, Mapping[str, PropertyText]] = field(default_factory=dict)
    bodies: Mapping[str, FunctionBody] = field(default_factory=dict)
    warnings: tuple[ProgramMessage, ...] = ()
    indexes: tuple[IndexDeclaration, ...] = ()
    given: Mapping[str, Table] = field(default_factory=dict)

    @property
    def late_relations(self) -> frozenset[str]:
        """The tables and views whose rows may come late."""
        tables = {table.name for table in self.tables.values() if any(column.lateness is not None for column in table.columns)}
        return frozenset(tables | {view.name for view in self.views.values() if view.lateness})

    def connectors(self) -> tuple[Connector, ...]:
        """Return all declared connectors, those of tables first."""
        relations: list[Table | ViewDeclaration] = [*self.tables.values(), *self.views.values()]
        return tuple(connector for relation in relations for connector in relation.connectors)
