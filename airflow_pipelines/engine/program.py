"""A program as the engine runs it, no matter which front end compiled it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from airflow_pipelines.engine.lateness import LateColumn
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.info import ProgramInfo
from airflow_pipelines.program.messages import ProgramMessage
from airflow_pipelines.program.relations import Index, Table, View, ViewKind
from airflow_pipelines.program.streams import StreamProgram
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.retention_rule import RetentionRule
from airflow_pipelines.sql.plan.ir.stage import ViewPlan


@dataclass(frozen=True)
class Program:
    """A program that can run.

    :param tables: its tables by canonical name, in the order written
    :param views: its views by canonical name, each after the views that it reads
    :param definitions: its own types and functions
    :param schemas: the schemas of all tables and views, and of the system view
    :param plans: the stages of each view
    :param fingerprints: the fingerprints of its parts, by which it is compared with other programs
    :param info: the ``program_info`` of the REST contract
    :param late_columns: the columns of tables and views that have LATENESS
    :param retention: the rules that tell which rows and groups may be dropped while the views are evaluated by the stages of
        ``plans``
    :param markers: the hidden relations of one row, for the clock and the waterlines, that the plans read
    :param indexes: the columns by which outputs may tell which rows belong together
    :param warnings: messages for its author that do not keep it from running
    :param streams: its stream program; None without one
    """

    tables: Mapping[str, Table]
    views: Mapping[str, View]
    definitions: Definitions
    schemas: Mapping[str, RelationSchema]
    plans: Mapping[str, ViewPlan]
    fingerprints: Fingerprints
    info: ProgramInfo
    late_columns: tuple[LateColumn, ...] = ()
    retention: tuple[RetentionRule, ...] = ()
    markers: tuple[Marker, ...] = ()
    indexes: tuple[Index, ...] = ()
    warnings: tuple[ProgramMessage, ...] = ()
    streams: StreamProgram | None = None

    @property
    def connectors(self) -> tuple[Connector, ...]:
        """All declared connectors, those of tables first."""
        relations: list[Table | View] = [*self.tables.values(), *self.views.values()]
        return tuple(connector for relation in relations for connector in relation.connectors)

    @property
    def hidden_relations(self) -> frozenset[str]:
        """The tables and views of the stream program, which are internal."""
        return frozenset() if self.streams is None else self.streams.hidden_relations

    def relations_behind(self, view: str, until: Set[str] = frozenset()) -> frozenset[str]:
        """Return the relations that a view is computed from, directly or through other views.

        :param view: the view
        :param until: the views at which the search stops; they are not in the result
        """
        relations: set[str] = set()
        waiting = [view]
        while waiting:
            further = set(self.views[waiting.pop()].reads) - relations - until
            relations |= further
            waiting += further & self.views.keys()
        return frozenset(relations)

    @property
    def shown_relations(self) -> frozenset[str]:
        """The relations whose contents users may query, so that all of their rows must be kept."""
        tables = {table.name for table in self.tables.values() if table.materialized}
        return frozenset(tables | {view.name for view in self.views.values() if view.kind is ViewKind.MATERIALIZED})

    @property
    def late_relations(self) -> frozenset[str]:
        """The tables and views whose rows may come too late."""
        return frozenset(column.relation for column in self.late_columns)
