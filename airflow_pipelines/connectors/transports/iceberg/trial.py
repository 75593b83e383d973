"""A trial of rows on an empty copy of an Iceberg table, unknown to any catalog, to find those that the table does not take."""

from __future__ import annotations

import errno
import math
import tempfile
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.transforms import IdentityTransform

from airflow_pipelines.connectors.left_out import RowProblem
from airflow_pipelines.connectors.transports.iceberg.step_writers import IcebergStepWriter

_OF_ROWS: Final = (ValueError, TypeError, ArithmeticError)
_PLACES: Final = (
    TableProperties.WRITE_DATA_PATH,
    TableProperties.WRITE_METADATA_PATH,
    TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL,
)


def may_be_of_rows(error: Exception) -> bool:
    """Return True if some of the rows may be the reason why a table cannot be written.

    :param error: the error of the library
    """
    return isinstance(error, _OF_ROWS) or _is_too_long(error)


class IcebergTrialTable:
    """An empty table that takes the same rows as another one.

    :param table: the other table
    :param writer: the writer of the table
    :param error: the error because of which it could not be written
    """

    def __init__(self, table: Table, writer: IcebergStepWriter, error: Exception) -> None:
        self._writer = writer
        self._folder = tempfile.TemporaryDirectory(prefix="airflow-pipelines-trial-")
        properties = {name: value for name, value in table.properties.items() if name not in _PLACES}
        properties[TableProperties.FORMAT_VERSION] = str(table.format_version)
        # A name that is too long on this machine may be allowed in the table's store.
        properties[TableProperties.OBJECT_STORE_ENABLED] = "false" if _is_too_long(error) else "true"
        properties[TableProperties.WRITE_OBJECT_STORE_PARTITIONED_PATHS] = "false"
        metadata = new_table_metadata(table.schema(), table.spec(), table.sort_order(), f"file://{self._folder.name}", properties)
        files = load_file_io({}, self._folder.name)
        self._table = Table(("trial",), metadata, f"{self._folder.name}/metadata.json", files, NoopCatalog("trial"))

    def check(self, changes: pa.Table) -> None:
        """Check that the table takes changes.

        :param changes: the rows with a weight, and maybe with updates
        :raises RowProblem: when it does not take all of them
        """
        try:
            # Never committed, so that the table stays empty.
            self._writer.write(self._table, self._table.transaction(), _Part(changes), lambda _: {})
        except Exception as error:
            if not may_be_of_rows(error):
                raise
            raise RowProblem(self._reason(changes, error)) from error

    def close(self) -> None:
        """Delete the table."""
        self._folder.cleanup()

    def _reason(self, changes: pa.Table, error: Exception) -> str:
        """Return the reason why a row is not taken; the library often does not say which column it is."""
        if _is_too_long(error):
            return "the value of a column by which the table is partitioned is too long for the name of a folder"
        row = changes.slice(changes.num_rows - 1)
        for name in row.column_names:
            try:
                row.column(name).to_pylist()
            except UnicodeDecodeError:
                return f"column {name!r} has a text that is not UTF-8"
            except _OF_ROWS as problem:
                return f"column {name!r} has a value that the library does not write: {problem}"
        schema = self._table.schema()
        for part in self._table.spec().fields:
            name = schema.find_column_name(part.source_id)
            if isinstance(part.transform, IdentityTransform) and name in row.column_names and _is_nan(row.column(name)[0].as_py()):
                return f"column {name!r}, by which the table is partitioned, is NaN, for which the library has no partition"
        return str(error) or type(error).__name__


class _Part:
    """Some of the changes of a step.

    :param rows: the rows with a weight, and maybe with updates
    """

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def count(self) -> int:
        """Return the number of changes."""
        return int(self._rows.num_rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield all changes, as one table."""
        yield self._rows


def _is_too_long(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
