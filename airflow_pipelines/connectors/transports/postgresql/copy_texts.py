"""The conversion of rows of changes to the lines that COPY reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType, ValueShape
from airflow_pipelines.rows.arrow import is_variant
from airflow_pipelines.rows.formats.encode import json_texts
from airflow_pipelines.rows.python_values import python_values

Texts: TypeAlias = Callable[[pa.Array], pa.Array]
"""A function that turns values into texts, with NULL where there is no value."""
NULL: Final = r"\N"
_SPECIAL: Final = (("\\", r"\\"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r"))


def lines(columns: Sequence[pa.Array]) -> bytes:
    """Return rows of texts as lines.

    :param columns: the columns, which are texts and have the same length
    """
    if not len(columns[0]):
        return b""
    fields = [pc.fill_null(_escape(column), NULL) for column in columns]
    joined = pc.binary_join_element_wise(*fields, "\t")
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.combine_chunks()
    whole = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(joined)], pa.int32()), joined), "\n")
    return bytes(whole[0].as_buffer()) + b"\n"


def texts_for(target: SourceType) -> Texts:
    """Return a function that makes the texts that a column of a table takes.

    :param target: the column's type
    """
    if target.shape is ValueShape.JSON:
        return _json
    if target.element is not None:
        return _arrays(target.element)
    return _scalars


def _escape(texts: pa.Array) -> pa.Array:
    for mark, escape in _SPECIAL:
        texts = pc.replace_substring(texts, mark, escape)
    return texts


def _scalars(values: pa.Array) -> pa.Array:
    kind = values.type
    if pat.is_dictionary(kind):
        return _scalars(values.dictionary_decode())
    if pat.is_string(kind):
        return values
    if pat.is_timestamp(kind):
        # A timestamp with a time zone is in UTC, which is the time zone of the session.
        return values.cast(pa.timestamp("us")).cast(pa.string())
    if pat.is_binary(kind):
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in python_values(values)], pa.string())
    if is_variant(kind) or pat.is_nested(kind):
        return _json(values)
    return values.cast(pa.string())


def _json(values: pa.Array) -> pa.Array:
    """Return values as JSON. Texts of a relation are JSON already."""
    if pat.is_string(values.type):
        return values
    present = python_values(values.is_valid())
    return pa.array([text if is_there else None for text, is_there in zip(json_texts(values), present, strict=True)], pa.string())


def _arrays(element: SourceType) -> Texts:
    of_elements = texts_for(element)

    def texts(values: pa.Array) -> pa.Array:
        elements = python_values(of_elements(values.flatten()))
        literals: list[str | None] = []
        at = 0
        for length in python_values(pc.list_value_length(values)):
            if length is None:
                literals.append(None)
                continue
            literals.append("{" + ",".join(map(_element, elements[at : at + length])) + "}")
            at += length
        return pa.array(literals, pa.string())

    return texts


def _element(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
