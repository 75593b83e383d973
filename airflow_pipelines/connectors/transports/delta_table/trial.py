"""A trial of rows on an empty copy of a Delta table, to find those that the table does not take.

Each try with the table itself would be a commit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from airflow_pipelines.connectors.left_out import RowProblem, problems_of
from airflow_pipelines.connectors.transports.delta_table.failures import in_words

_CONSTRAINT: Final = "delta.constraints."


class DeltaTrialTable:
    """An empty table that takes the same rows as another one.

    :param table: the other table
    :param as_rows: a function that turns changes into the rows that are to be in it
    """

    def __init__(self, table: DeltaTable, as_rows: Callable[[pa.Table], pa.Table]) -> None:
        self._as_rows = problems_of(as_rows)
        self._schema = table.schema()
        self._folder = tempfile.TemporaryDirectory(prefix="airflow-pipelines-trial-")
        constraints = {name: text for name, text in table.metadata().configuration.items() if name.startswith(_CONSTRAINT)}
        # The library does not say which of several constraints a row violates.
        self._tables = dict(self._make_tables({name.removeprefix(_CONSTRAINT): text for name, text in constraints.items()}))

    def check(self, changes: pa.Table) -> None:
        """Check that the table takes changes.

        :param changes: the rows with a weight of 1 or -1 as the last column, and maybe with updates
        :raises RowProblem: when it does not take all of them
        """
        rows = self._as_rows(changes)
        for field in self._schema.fields:
            if not field.nullable and field.name in rows.column_names and rows.column(field.name).null_count:
                raise RowProblem(f"column {field.name!r} must not be NULL in the table")
        for what, table in self._tables.items():
            try:
                write_deltalake(table, rows, mode="overwrite", schema_mode="merge")
            except (DeltaError, ValueError) as error:
                raise RowProblem(what or f"the table does not take it: {in_words(error)}") from error

    def close(self) -> None:
        """Delete the table."""
        self._folder.cleanup()

    def _make_tables(self, constraints: dict[str, str]) -> Iterator[tuple[str, DeltaTable]]:
        yield "", self._new(0)
        for number, (name, text) in enumerate(constraints.items(), 1):
            table = self._new(number)
            table.alter.add_constraint({name: text})
            yield f"it violates constraint {name!r} of the table: {text}", table

    def _new(self, number: int) -> DeltaTable:
        return DeltaTable.create(f"{self._folder.name}/{number}", self._schema)
