"""Changes as text, each on its own."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from airflow_pipelines.connectors.formats.encode import encode_csv, encode_rows
from airflow_pipelines.engine.arrow import WEIGHT


def json_changes(changes: pa.Table) -> Iterator[str]:
    """Each row as ``{"insert": row}`` or ``{"delete": row}``.

    :param changes: rows with a weight of 1 or -1 as the last column
    :returns: one text for each row
    """
    weights = changes.column(WEIGHT).to_pylist()
    for weight, row in zip(weights, encode_rows(changes.drop_columns([WEIGHT])), strict=True):
        yield f'{{"{"insert" if weight > 0 else "delete"}":{row}}}'


def csv_changes(changes: pa.Table, delimiter: str = ",", quote: str = '"') -> Iterator[str]:
    """Each row as a CSV record whose last field is 1 or -1.

    :param changes: rows with a weight of 1 or -1 as the last column
    :param delimiter: what stands between fields
    :param quote: what stands around fields that need it
    :returns: one record, with its line end, for each row
    """
    return encode_csv(changes, delimiter, quote)
