"""Options of outputs that write a view, or its changes, to a table of a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field

from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import Column


class Beginning(Enum):
    """What an output that starts for the first time does with a table that is there."""

    APPEND = "append"
    """Its rows stay."""
    TRUNCATE = "truncate"
    """Its rows go."""
    ERROR_IF_EXISTS = "error_if_exists"
    """The output does not start."""


class Contents(Enum):
    """What the table has."""

    CHANGE_LOG = "change_log"
    """Each change as a row."""
    MERGED = "merged"
    """The rows of the view."""


class TableOutputOptions(BaseModel):
    """Options besides those that say which table it is.

    :param mode: what happens at the first start when the table exists
    :param write: the changes of the view, one row each, or the view itself
    :param op_column: the column of a change log that says what a change does: ``i``, ``d`` or ``u``
    :param ts_column: the column of a change log by which changes are in order
    """

    mode: Beginning = Beginning.APPEND
    write: Contents = Contents.CHANGE_LOG
    op_column: str = Field(default="__op", min_length=1)
    ts_column: str = Field(default="__ts", min_length=1)


def mirrors(declared: Mapping[str, Any]) -> bool:
    """Whether the table is to be equal to the view.

    :param declared: the options as they are declared
    """
    # What stands for a reference may be either.
    return bool(declared.get("write", Contents.CHANGE_LOG.value) != Contents.CHANGE_LOG.value)


def check_log_columns(options: TableOutputOptions, columns: Sequence[Column], transport: str) -> None:
    """Find out whether a change log can have its two columns beside those of the view.

    :param options: those of the connector
    :param columns: of the view
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
