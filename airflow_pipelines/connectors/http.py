"""The HTTP formats of rows: the body of an ingress request, and the chunks of an egress stream.

Neither is a declared connector: an endpoint exists because somebody calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.left_out import LeftOutRows, records_that_fit
from airflow_pipelines.connectors.parsers import input_parser, options_of_format
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.delta import JsonChanges, csv_changes
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.schema import RelationSchema

JSON_CHANGES: Final = JsonOptions()
"""The default options for JSON."""


def parse_ingress(
    schema: RelationSchema,
    body: bytes,
    format_name: str = "csv",
    options: Mapping[str, Any] | None = None,
    now: Now = wall_clock,
) -> Parsed:
    """Return the changes in the body of an ingress request.

    :param format_name: ``json``, ``csv``, ``raw`` or ``parquet``
    :param options: the request's format options, which can be texts (``"true"``): ``array``, ``update_format`` and so on. Options
        that only another format has are ignored
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: if a format or option is unknown, or a value is invalid
    """
    own = options_of_format(format_name, options or {})
    return input_parser(schema, format_name, own, where="this request", now=now).parse(body)


def check_egress_format(format_name: str) -> None:
    """Raise an error for a format that egress streams do not support.

    :param format_name: the format of a request
    :raises UnknownOptionError: if it is not supported; the message lists the formats
    """
    if format_name not in {"json", "csv"}:
        raise InvalidOptionError(f"format {format_name!r} cannot be sent; known formats: csv, json")


@dataclass(frozen=True, slots=True)
class EgressData:
    """The data of one chunk.

    :param text: a JSON array of changes, or lines of CSV whose last column is 1 or -1
    :param records: the number of changes
    """

    text: str
    records: int


def encode_egress(
    changes: Changes, format_name: str = "json", json: JsonChanges | None = None, left_out: LeftOutRows | None = None
) -> Iterator[EgressData]:
    """Yield a step's changes as the data of egress chunks.

    :param changes: the changes of one view
    :param format_name: ``json`` or ``csv``
    :param json: the JSON writer of the stream; None for the usual form
    :param left_out: the collector of rows that the format cannot write; None if nobody asks for them
    :returns: the data of each chunk
    :raises UnknownOptionError: if the format is unknown
    """
    check_egress_format(format_name)
    encode = csv_changes if format_name == "csv" else (json or JsonChanges(JSON_CHANGES)).texts
    refused = left_out or LeftOutRows()
    for table in changes.tables():
        texts = list(records_that_fit(table, encode, refused))
        if texts:
            yield EgressData("".join(texts) if format_name == "csv" else f"[{','.join(texts)}]", len(texts))


def frame_chunk(sequence_number: int, data: EgressData, format_name: str = "json", *, snapshot: bool = False) -> bytes:
    """Return one chunk of an egress stream, with its line end.

    :param sequence_number: the chunk's number in the stream
    :param data: the data of the chunk
    :param format_name: ``json`` or ``csv``
    :param snapshot: True if the changes are the view's contents when the stream began
    """
    text = f'"text_data":{jsontext.dumps(data.text)}' if format_name == "csv" else f'"json_data":{data.text}'
    return f'{{"sequence_number":{sequence_number},"snapshot":{"true" if snapshot else "false"},{text}}}\r\n'.encode()


def frame_empty_chunk(format_name: str = "json", *, snapshot: bool = False) -> bytes:
    """Return the chunk that opens an egress stream, and keeps an idle one alive.

    It has no number, from which readers know that it has no data.

    :param format_name: ``json`` or ``csv``
    :param snapshot: True if the stream begins with a snapshot
    """
    text = '"text_data":""' if format_name == "csv" else '"json_data":[]'
    return f'{{"snapshot":{"true" if snapshot else "false"},{text}}}\r\n'.encode()
