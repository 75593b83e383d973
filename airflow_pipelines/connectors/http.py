"""What HTTP carries in and out: the body of an ingress request, the chunks of an egress stream.

Neither is a declared connector: an endpoint exists because somebody calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from airflow_pipelines.connectors.base import InvalidOptionError
from airflow_pipelines.connectors.formats import jsontext
from airflow_pipelines.connectors.formats.delta import csv_changes, json_changes, ordered_changes
from airflow_pipelines.connectors.formats.parsed import Parsed
from airflow_pipelines.connectors.registry import input_parser
from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.schema import RelationSchema

ROWS_PER_CHUNK = 10_000
"""The most changes one egress chunk holds."""


def parse_ingress(
    schema: RelationSchema, body: bytes, format_name: str = "csv", options: Mapping[str, Any] | None = None
) -> Parsed:
    """The changes in the body of an ingress request.

    :param format_name: ``json``, ``csv`` or ``parquet``
    :param options: the request's format options, texts included (``"true"``): ``array``, ``update_format`` ...
    :raises UnknownOptionError: for an unknown format or option, or a bad value of one
    """
    return input_parser(schema, format_name, options or {}, where="this request").parse(body)


def encode_egress(schema: RelationSchema, batch: pa.Table, format_name: str = "json") -> Iterator[str]:
    """A step's delta as the data of egress chunks: JSON arrays of changes, or CSV with a last column of 1 (insert) or -1 (delete).

    Deletes come before inserts, each in the order of their rows; a row of weight w comes abs(w) times.

    :param batch: the relation's columns and ``__weight``
    :raises UnknownOptionError: for an unknown format
    """
    if format_name not in {"json", "csv"}:
        raise InvalidOptionError(f"format {format_name!r} cannot be sent; known formats: csv, json")
    ordered = ordered_changes(batch.select([*schema.column_names, WEIGHT]))
    if format_name == "csv":
        records = csv_changes(ordered)
        while part := list(islice(records, ROWS_PER_CHUNK)):
            yield "".join(part)
        return
    changes = json_changes(ordered)
    while part := list(islice(changes, ROWS_PER_CHUNK)):
        yield "[" + ",".join(part) + "]"


def frame_chunk(sequence_number: int, data: str | None = None, format_name: str = "json", *, snapshot: bool = False) -> bytes:
    """One chunk of an egress stream with its line end; without ``data`` it only keeps the connection alive."""
    text = f'{{"sequence_number":{sequence_number},"snapshot":{"true" if snapshot else "false"}'
    if data is not None:
        text += f',"text_data":{jsontext.dumps(data)}' if format_name == "csv" else f',"json_data":{data}'
    return (text + "}\r\n").encode()
