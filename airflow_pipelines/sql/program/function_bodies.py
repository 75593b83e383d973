"""The expressions of SQL functions, with their places in the program's text."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_pipelines.sql.syntax.edits import Edited

JSON_PREFIX = "jsonstring_as_"
"""A function without a body whose name starts so reads JSON text; its type says what it gives."""


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """The expression of a SQL function: where it starts in the program's text, and what became of it."""

    offset: int
    edits: Edited
