"""The declarations of a program's statements, as collected statement by statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.messages import ProgramMessage
from airflow_pipelines.program.relations import Table
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.sql.program.declarations import IndexDeclaration, Lateness, PropertyText, ViewDeclaration
from airflow_pipelines.sql.syntax.cursor import Name


@dataclass(slots=True)
class ParsedView:
    """A view and the tree of its query; names in the tree carry their offsets in :attr:`ViewDeclaration.query`."""

    view: ViewDeclaration
    tree: exp.Query


@dataclass(frozen=True, slots=True)
class RecursiveDeclaration:
    """``DECLARE RECURSIVE VIEW``: the canonical name, the columns, and the position of the name."""

    name: str
    columns: tuple[Column, ...]
    span: Span


@dataclass(slots=True)
class Statements:
    """The declarations of a program before names are resolved, and all errors found."""

    tables: list[Table] = field(default_factory=list)
    table_properties: dict[str, Mapping[str, PropertyText]] = field(default_factory=dict)
    """The properties in the WITH clause of each table."""
    views: list[ParsedView] = field(default_factory=list)
    declarations: list[RecursiveDeclaration] = field(default_factory=list)
    attempted: set[str] = field(default_factory=set)
    """The names of all CREATE VIEW statements, including those that could not be read."""
    indexes: list[IndexDeclaration] = field(default_factory=list)
    lateness: list[tuple[Name, Lateness]] = field(default_factory=list)
    """The LATENESS statements, each with its view's name."""
    messages: list[ProgramMessage] = field(default_factory=list)
    warnings: list[ProgramMessage] = field(default_factory=list)
    definitions: Definitions = field(default_factory=Definitions)
    """The program's own types and functions, all of which are read before any other statement."""
    names: set[str] = field(default_factory=set)
    """Every declared name, including those of statements that could not be read.

    A read of such a relation is not reported as another error.
    """
