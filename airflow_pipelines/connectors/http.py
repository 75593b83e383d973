"""What HTTP carries in and out: the body of an ingress request, the chunks of an egress stream.

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
"""How JSON is written where nobody says otherwise."""


def parse_ingress(
    schema: RelationSchema,
    body: bytes,
    format_name: str = "csv",
    options: Mapping[str, Any] | None = None,
    now: Now = wall_clock,
) -> Parsed:
    """The changes in the body of an ingress request.

    :param format_name: ``json``, ``csv``, ``raw`` or ``parquet``
    :param options: the request's format options, texts included (``"true"``): ``array``, ``update_format`` ... Those that only
        another format has are passed over
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: for an unknown format or option, or a bad value of one
    """
    own = options_of_format(format_name, options or {})
    return input_parser(schema, format_name, own, where="this request", now=now).parse(body)


def check_egress_format(format_name: str) -> None:
    """Refuse a format that egress streams do not have.

    :param format_name: as a request has it
    :raises UnknownOptionError: naming those that there are
    """
    if format_name not in {"json", "csv"}:
        raise InvalidOptionError(f"format {format_name!r} cannot be sent; known formats: csv, json")


@dataclass(frozen=True, slots=True)
class EgressData:
    """The data of one chunk.

    :param text: a JSON array of changes, or lines of CSV whose last column is 1 or -1
    :param records: how many changes they are
    """

    text: str
    records: int


def encode_egress(
    changes: Changes, format_name: str = "json", json: JsonChanges | None = None, left_out: LeftOutRows | None = None
) -> Iterator[EgressData]:
    """A step's changes as the data of egress chunks.

    :param changes: those of one view
    :param format_name: ``json`` or ``csv``
    :param json: writes JSON for the stream; None for the usual form
    :param left_out: gets rows that the format cannot write; None where nobody asks for them
    :returns: the data of each chunk
    :raises UnknownOptionError: for an unknown format
    """
    check_egress_format(format_name)
    encode = csv_changes if format_name == "csv" else (json or JsonChanges(JSON_CHANGES)).texts
    refused = left_out or LeftOutRows()
    for table in changes.tables():
        texts = list(records_that_fit(table, encode, refused))
        if texts:
            yield EgressData("".join(texts) if format_name == "csv" else f"[{','.join(texts)}]", len(texts))


def frame_chunk(sequence_number: int, data: EgressData, format_name: str = "json", *, snapshot: bool = False) -> bytes:
    """One chunk of an egress stream, with its line end.

    :param sequence_number: the chunk's number in the stream
    :param data: its changes
    :param format_name: ``json`` or ``csv``
    :param snapshot: whether the changes are the view's contents when the stream began
    """
    text = f'"text_data":{jsontext.dumps(data.text)}' if format_name == "csv" else f'"json_data":{data.text}'
    return f'{{"sequence_number":{sequence_number},"snapshot":{"true" if snapshot else "false"},{text}}}\r\n'.encode()


def frame_empty_chunk(format_name: str = "json", *, snapshot: bool = False) -> bytes:
    """The chunk that opens an egress stream and fills its silence. It has no number, by which readers know that it has no data.

    :param format_name: ``json`` or ``csv``
    :param snapshot: whether the stream begins with a snapshot
    """
    text = '"text_data":""' if format_name == "csv" else '"json_data":[]'
    return f'{{"snapshot":{"true" if snapshot else "false"},{text}}}\r\n'.encode()
