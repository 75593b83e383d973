"""Single values as text: the form in which waterlines and markers are stored, compared and written into SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_pipelines.program.names import quote


def scalar(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return the Arrow scalar of a type for a text from :func:`as_text`."""
    return pa.scalar(text).cast(kind)


def as_text(value: pa.Scalar) -> str:
    """Return an Arrow scalar that is not NULL as text."""
    return str(value.cast(pa.string()).as_py())


def literal(text: str | None, ddl: str, name: str) -> str:
    """Return a constant column for a SELECT list.

    :param text: the value as text; None for NULL
    :param ddl: its Spark type
    :param name: the column's name
    """
    written = "NULL" if text is None else f"'{text}'"
    return f"CAST({written} AS {ddl}) AS {quote(name)}"


def order(value: pa.Scalar) -> Any:
    """Return an Arrow scalar as a Python value that compares with others of its type as Spark compares them."""
    return value.value if pa.types.is_temporal(value.type) else value.as_py()
