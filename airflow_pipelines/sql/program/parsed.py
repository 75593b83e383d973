"""What compiling a program's text gives, before Spark has seen it: relations, connectors and where each was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_pipelines.sql.program.column_types import ColumnType
    from airflow_pipelines.sql.program.definitions import Definitions, FunctionBody
    from airflow_pipelines.sql.syntax.edits import Edited
    from airflow_pipelines.sql.syntax.errors import ProgramMessage


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the program's text; lines and columns count from 1 and both ends are included."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class PropertyText:
    """One ``'key' = 'value'`` pair of a WITH clause, with the places of both."""

    value: str
    key_span: Span
    value_span: Span


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    ``name`` is canonical: lower case when it was written unquoted, verbatim when quoted (``case_sensitive``).
    ``default`` is Spark SQL text, or None. ``type.nullable`` is False for NOT NULL and primary-key columns.
    """

    name: str
    type: ColumnType
    case_sensitive: bool = False
    default: str | None = None
    lateness: str | None = None
    span: Span | None = None


class ConnectorDirection(Enum):
    """Which way a connector moves rows."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Connector:
    """A named input of a table or output of a view, as declared; transport and format names are not checked here."""

    relation: str
    name: str
    direction: ConnectorDirection
    transport: str
    transport_config: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None
    format_config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Everything else of the declaration: paused, labels, start_after, max_batch_size, send_snapshot ..."""
    span: Span | None = None

    @property
    def endpoint(self) -> str:
        """The connector's full name, ``relation.connector``."""
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table declaration. ``primary_key`` is None or the key's column names in order."""

    name: str
    columns: tuple[Column, ...]
    case_sensitive: bool = False
    primary_key: tuple[str, ...] | None = None
    properties: Mapping[str, PropertyText] = field(default_factory=dict)
    connectors: tuple[Connector, ...] = ()
    span: Span | None = None

    @property
    def materialized(self) -> bool:
        """Whether ad-hoc queries may read the table: declared so, or it has a primary key without lateness."""
        if self._flag("materialized"):
            return True
        return self.primary_key is not None and not any(c.lateness for c in self.columns if c.name in self.primary_key)

    @property
    def append_only(self) -> bool:
        """Whether deletes are refused."""
        return self._flag("append_only")

    def _flag(self, key: str) -> bool:
        return key in self.properties and self.properties[key].value.strip().lower() == "true"


class ViewKind(Enum):
    """How a view was declared."""

    PLAIN = "plain"
    MATERIALIZED = "materialized"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Lateness:
    """``LATENESS view.column bound``: rows more than ``bound`` (Spark SQL text) behind the greatest value seen are too late."""

    column: str
    bound: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A view declaration.

    ``query`` is Spark SQL with every unquoted name folded to lower case and every quoted one in back quotes, and with what Spark
    writes in another way translated. ``query_offset`` is where the query starts in the program; folding keeps lengths, and
    ``edits`` knows what translating changed, so that :meth:`place` leads back.
    ``column_names`` is the optional ``name(cols)`` list. ``reads`` are the relations the query names, canonical.
    ``declared`` are the columns of ``DECLARE RECURSIVE VIEW``, or None when the view was not declared so. ``cycle`` are the views
    that it reads in a circle with, itself included, in the order written; empty when there is no circle.
    ``lateness`` are the LATENESS statements about its columns.
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
        """The place in the program's text of characters ``start`` to ``end`` (exclusive) of the query."""
        first, last = (start, end) if self.edits is None else self.edits.origin(start, end)
        return self.query_offset + first, self.query_offset + last

    @property
    def emit_final(self) -> PropertyText | None:
        """The property that lets only final rows out: the name or number (from 0) of the column whose waterline decides."""
        return self.properties.get("emit_final")


@dataclass(frozen=True, slots=True)
class Program:
    """A program whose names resolve: tables in the order written, views ordered so that each comes after what it reads.

    Of views that read each other in a circle those declared recursive come first, then the others, each after what it reads of the
    others.

    ``definitions``: its own types and functions. ``bodies``: the expressions of its SQL functions with their places. ``warnings``:
    what it says in vain.
    """

    text: str
    tables: Mapping[str, Table]
    views: Mapping[str, View]
    definitions: Definitions
    bodies: Mapping[str, FunctionBody] = field(default_factory=dict)
    warnings: tuple[ProgramMessage, ...] = ()

    @property
    def late_relations(self) -> frozenset[str]:
        """The tables and views rows of which may come too late."""
        tables = {table.name for table in self.tables.values() if any(column.lateness is not None for column in table.columns)}
        return frozenset(tables | {view.name for view in self.views.values() if view.lateness})

    def connectors(self) -> tuple[Connector, ...]:
        """All declared connectors, of tables first."""
        relations: list[Table | View] = [*self.tables.values(), *self.views.values()]
        return tuple(connector for relation in relations for connector in relation.connectors)
