"""The changes that a program allows: which relations are tables, and which operations a table accepts.

Requests with rows, connectors, ad-hoc statements and the normaliser all consult this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.program import Program
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import OP, Op, TableChanges

NO_UPDATES = "the table has no primary key, so its rows cannot be updated; send a delete and an insert"
NO_DELETES = "the table is append-only, so its rows can be neither deleted nor updated"
NOT_ALL_KEPT = "the pipeline forgets old rows of the table (LATENESS), so it does not know all that would have to go"


class NotATableError(LookupError):
    """The error of a change to something that is not a table.

    :param name: the name that was given
    :param is_view: True if there is a view of that name
    :param tables: the names of the program's tables
    """

    def __init__(self, name: str, is_view: bool, tables: tuple[str, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.is_view = is_view
        self.tables = tables


@dataclass(frozen=True, slots=True)
class Refused:
    """Changes that a table refuses: the reason, and their number."""

    reason: str
    count: int


def changed_table(program: Program, name: str) -> Table:
    """Return the table that a change is for.

    :param program: the program that runs
    :param name: its canonical name
    :returns: the table
    :raises NotATableError: when there is no such table, or it is hidden
    """
    tables = {name: table for name, table in program.tables.items() if name not in program.hidden_relations}
    if name not in tables:
        raise NotATableError(name, name in program.views, tuple(sorted(tables)))
    return tables[name]


def refused_operations(table: Table) -> Mapping[Op, str]:
    """Return the operations that a table refuses, each with the reason."""
    if table.append_only:
        return {Op.DELETE: NO_DELETES, Op.UPDATE: NO_DELETES}
    if table.primary_key is None:
        # Without a key an update cannot find its row.
        return {Op.UPDATE: NO_UPDATES}
    return {}


def refused_truncation(program: Program, table: Table) -> str | None:
    """Return the reason why a table cannot be truncated, or None if it can.

    :param program: the program of the table
    :param table: the table
    """
    if table.append_only:
        return NO_DELETES
    forgets = {rule.relation for rule in program.retention if not rule.of_state}
    late = {column.relation for column in program.late_columns}
    return NOT_ALL_KEPT if table.name in forgets | late else None


def truncation_problem(program: Program, table: Table) -> str | None:
    """Return the message for a user who tries to truncate a table that cannot be truncated.

    :param program: the program of the table
    :param table: the table
    :returns: the message; None for a table that can be truncated
    """
    reason = refused_truncation(program, table)
    return None if reason is None else f"table {table.name!r} cannot be truncated: {reason}"


def with_soft_deletes(changes: TableChanges) -> TableChanges:
    """Return the changes with each delete turned into an insert of the row that it names.

    :param changes: the changes as they arrived
    """
    rows = changes.rows
    place = rows.schema.get_field_index(OP)
    operations = pc.if_else(pc.equal(rows[OP], int(Op.DELETE)), pa.scalar(int(Op.INSERT), pa.int8()), rows[OP])
    return replace(changes, rows=rows.set_column(place, rows.schema.field(place), operations))


def allowed_changes(changes: TableChanges, table: Table) -> tuple[TableChanges | None, tuple[Refused, ...]]:
    """Remove the operations that a table refuses from its changes.

    :param changes: the changes as they arrived
    :param table: the table
    :returns: the changes that are left, or None for none, and the refused ones
    """
    refused = []
    rows = changes.rows
    for operation, reason in refused_operations(table).items():
        kept = rows.filter(pc.not_equal(rows[OP], int(operation)))
        if kept.num_rows < rows.num_rows:
            refused.append(Refused(reason, rows.num_rows - kept.num_rows))
            rows = kept
    if not refused:
        return changes, ()
    return (replace(changes, rows=rows) if rows.num_rows or changes.truncates else None), tuple(refused)
