"""The expressions of SQL functions, with their positions in the program's text."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_pipelines.sql.syntax.edits import Edited

JSON_PREFIX = "jsonstring_as_"
"""The prefix of the names of functions without a body that parse JSON text to their return type."""


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """The expression of a SQL function: its offset in the program's text, and its text after edits."""

    offset: int
    edits: Edited
