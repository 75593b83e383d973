"""Single values of relations' columns as text: the form in which waterlines and markers are kept, compared and written into SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_pipelines.program.names import quote


def scalar(text: str, kind: Any) -> Any:
    """The Arrow scalar of the type ``kind`` that :func:`as_text` wrote."""
    return pa.scalar(text).cast(kind)


def as_text(value: Any) -> str:
    """An Arrow scalar (not NULL) as text."""
    return str(value.cast(pa.string()).as_py())


def literal(text: str | None, ddl: str, name: str) -> str:
    """A column ``name`` of Spark type ``ddl`` with the value ``text`` (None: NULL), for a SELECT list."""
    written = "NULL" if text is None else f"'{text}'"
    return f"CAST({written} AS {ddl}) AS {quote(name)}"


def order(value: Any) -> Any:
    """An Arrow scalar as a Python value that compares as Spark does; values of one type only."""
    return value.value if pa.types.is_temporal(value.type) else value.as_py()
