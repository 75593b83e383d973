"""Tables and views with their columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.schema import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn(Column):
    """A column as a program declares it.

    :param span: the span of its name
    """

    span: Span


def span_of(column: Column) -> Span | None:
    """Return the span of a column's name in the program, or None if no statement declares the column.

    :param column: the column of a table or view
    """
    return column.span if isinstance(column, DeclaredColumn) else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    :param primary_key: the key's column names in order, None without a key
    :param materialized: True if ad-hoc queries may read it
    :param append_only: True if deletes are refused
    :param skip_unused_columns: True if columns that no view reads may be left out
    """

    name: str
    columns: tuple[Column, ...]
    case_sensitive: bool = False
    primary_key: tuple[str, ...] | None = None
    materialized: bool = False
    append_only: bool = False
    skip_unused_columns: bool = False
    connectors: tuple[Connector, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """The columns by which an output of a relation may identify the rows that belong together.

    :param name: the canonical name
    :param relation: the canonical name of the table or view
    """

    name: str
    relation: str
    columns: tuple[str, ...]


class ViewKind(Enum):
    """The kind of a view's declaration."""

    PLAIN = "plain"
    MATERIALIZED = "materialized"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class View:
    """A view.

    :param reads: the canonical names of the relations that it is computed from
    """

    name: str
    kind: ViewKind
    columns: tuple[Column, ...]
    reads: tuple[str, ...]
    connectors: tuple[Connector, ...] = ()
