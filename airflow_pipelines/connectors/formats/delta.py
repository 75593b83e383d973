"""Changes as text, each on its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from airflow_pipelines.connectors.formats.encode import encode_csv, encode_rows
from airflow_pipelines.connectors.formats.flavors import DEFAULT_FORMS, ValueForms
from airflow_pipelines.connectors.formats.scalar_texts import scalars_of
from airflow_pipelines.engine.arrow import WEIGHT

_AROUND_ROWS: Final[Mapping[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    "insert_delete": (('{"insert":', "}"), ('{"delete":', "}")),
    "weighted": (('{"weight":1,"data":', "}"), ('{"weight":-1,"data":', "}")),
    "debezium": (('{"payload":{"op":"c","before":null,"after":', "}}"), ('{"payload":{"op":"d","before":', ',"after":null}}')),
}
"""By update format: what stands before and after a row that comes, and one that goes."""
WRITTEN_UPDATE_FORMATS: Final = frozenset(_AROUND_ROWS)
"""The update formats that changes can be written in."""


def json_changes(changes: pa.Table, update_format: str = "insert_delete", forms: ValueForms = DEFAULT_FORMS) -> Iterator[str]:
    """Each row as a change, such as ``{"insert": row}`` or ``{"delete": row}``.

    :param changes: rows with a weight of 1 or -1 as the last column
    :param update_format: one of :data:`WRITTEN_UPDATE_FORMATS`
    :param forms: how values are written
    :returns: one text for each row
    """
    weights = changes.column(WEIGHT).to_pylist()
    comes, goes = _AROUND_ROWS[update_format]
    for weight, row in zip(weights, encode_rows(changes.drop_columns([WEIGHT]), scalars_of(forms)), strict=True):
        before, after = comes if weight > 0 else goes
        yield f"{before}{row}{after}"


def csv_changes(changes: pa.Table, delimiter: str = ",", quote: str = '"') -> Iterator[str]:
    """Each row as a CSV record whose last field is 1 or -1.

    :param changes: rows with a weight of 1 or -1 as the last column
    :param delimiter: what stands between fields
    :param quote: what stands around fields that need it
    :returns: one record, with its line end, for each row
    """
    return encode_csv(changes, delimiter, quote)
