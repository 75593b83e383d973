"""The options of outputs that write a view, or its changes, to a table of a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import Column


class Beginning(Enum):
    """The treatment of an existing table by an output that starts for the first time."""

    APPEND = "append"
    """The mode that keeps the rows of the table."""
    TRUNCATE = "truncate"
    """The mode that deletes the rows of the table."""
    ERROR_IF_EXISTS = "error_if_exists"
    """The mode in which the output does not start."""


class TableContents(Enum):
    """The contents of the table."""

    CHANGE_LOG = "change_log"
    """Each change as a row."""
    MERGED = "merged"
    """The rows of the view."""


class TableOutputOptions(BaseModel):
    """The options besides those that identify the table.

    :param mode: the treatment of an existing table at the first start
    :param write: the changes of the view, one row each, or the view itself
    :param op_column: the column of a change log that has the operation: ``i``, ``d`` or ``u``
    :param ts_column: the column of a change log that gives the order of the changes
    """

    mode: Beginning = Beginning.APPEND
    write: TableContents = TableContents.CHANGE_LOG
    op_column: str = Field(default="__op", min_length=1)
    ts_column: str = Field(default="__ts", min_length=1)


def mirrors(declared: Mapping[str, Any]) -> bool:
    """Return True if the table is to be equal to the view.

    :param declared: the options as they are declared
    """
    # A reference may stand for either value.
    return bool(declared.get("write", TableContents.CHANGE_LOG.value) != TableContents.CHANGE_LOG.value)


def check_log_columns(options: TableOutputOptions, columns: Sequence[Column], transport: str) -> None:
    """Check that a change log can have its two columns beside those of the view.

    :param options: the options of the connector
    :param columns: the columns of the view
    :param transport: the connector's name, for messages
    :raises InvalidOptionError: when it cannot
    """
    names = {column.name.lower(): column.name for column in columns}
    for option, name in (("op_column", options.op_column), ("ts_column", options.ts_column)):
        if name.lower() in names:
            raise InvalidOptionError(
                f"{transport}: the view has a column {names[name.lower()]!r} itself; give {option!r} another name", option
            )
    if options.op_column.lower() == options.ts_column.lower():
        raise InvalidOptionError(f"{transport}: 'op_column' and 'ts_column' must differ", "ts_column")
