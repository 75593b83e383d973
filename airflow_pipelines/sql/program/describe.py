"""The description of a SQL program for the REST contract."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.program.info import ProgramInfo, PropertyInfo, RelationInfo
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.reasons import RecomputedPart
from airflow_pipelines.program.relations import Table, ViewKind
from airflow_pipelines.program.system_view import ERROR_VIEW_COLUMNS
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.sql.program.declarations import ParsedProgram, PropertyText, ViewDeclaration


def program_info(
    program: ParsedProgram, view_columns: Mapping[str, tuple[Column, ...]], recomputed: tuple[RecomputedPart, ...] = ()
) -> ProgramInfo:
    """Describe a program.

    :param program: the program
    :param view_columns: the columns of each view by its canonical name
    :param recomputed: the parts of its views that are recomputed
    :returns: its relations and connectors; LOCAL views are not listed, the system view is
    """
    views = [view for view in program.views.values() if view.kind is not ViewKind.LOCAL]
    return ProgramInfo(
        inputs=tuple(_table(table, program.table_properties[table.name]) for table in program.tables.values()),
        outputs=(*(_view(view, view_columns[view.name]) for view in views), RelationInfo(SYSTEM_VIEW, ERROR_VIEW_COLUMNS)),
        connectors=program.connectors(),
        recomputed=recomputed,
    )


def _table(table: Table, properties: Mapping[str, PropertyText]) -> RelationInfo:
    return RelationInfo(
        table.name, table.columns, table.case_sensitive, table.materialized, table.primary_key, _properties(properties)
    )


def _view(view: ViewDeclaration, columns: tuple[Column, ...]) -> RelationInfo:
    materialized = view.kind is ViewKind.MATERIALIZED
    return RelationInfo(view.name, columns, view.case_sensitive, materialized, None, _properties(view.properties))


def _properties(texts: Mapping[str, PropertyText]) -> dict[str, PropertyInfo]:
    return {key: PropertyInfo(text.value, text.key_span, text.value_span) for key, text in texts.items()}
