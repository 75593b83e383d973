"""The check of the parts of values that must not be NULL: fields of structs, elements of arrays, values of maps."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.types import ColumnType


def missing_part(values: ArrowColumn, kind: ColumnType) -> str | None:
    """Find the first part that is NULL although its type is NOT NULL. Values that are NULL themselves have no parts.

    :param values: a column of the type's values
    :returns: its path within the column, such as ``.x`` or ``[].y``; None if no part is missing
    """
    if kind.fields is None and kind.component is None and kind.value is None:
        return None
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return next((path for chunk in chunks if (path := _find_missing(chunk.filter(chunk.is_valid()), kind)) is not None), None)


def _find_missing(present: pa.Array, kind: ColumnType) -> str | None:
    """Find the first missing part of an array that has no NULLs and is not a slice of another."""
    parts: list[tuple[str, pa.Array, ColumnType]] = []
    if kind.fields is not None:
        parts = [(f".{name}", pc.struct_field(present, [at]), inner) for at, (name, inner) in enumerate(kind.fields)]
    elif kind.component is not None:
        parts = [("[]", present.flatten(), kind.component)]
    elif kind.value is not None:
        parts = [("[]", present.items, kind.value)]
    for step, part, inner in parts:
        if part.null_count and not inner.nullable:
            return step
        deeper = missing_part(part, inner)
        if deeper is not None:
            return step + deeper
    return None
