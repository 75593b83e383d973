"""The encoding of rows as JSON and CSV text, which egress, file output and query results share."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.scalar_texts import DEFAULT_SCALARS, Scalars
from airflow_pipelines.rows.python_values import python_values

ROWS_AT_ONCE = 10_000
"""The number of rows that are converted to text at a time, so that a large table never exists as text as a whole."""


def encode_rows(table: pa.Table, scalars: Scalars = DEFAULT_SCALARS) -> Iterator[str]:
    """Yield each row of ``table`` as a JSON object, one text for each row, with columns in order and NULL written out.

    Decimals are numbers that keep their scale, dates and times ISO text, timestamps ``YYYY-MM-DD HH:MM:SS[.ffffff]`` (with
    ``+00:00`` if they have a zone), binary an array of byte numbers, maps and structs objects, variants the JSON they hold; NaN
    and infinities become null. A map's key that is no string is written as a string.

    :param table: the rows
    :param scalars: the functions that write values that are no collections; the above is the output of the default ones
    """
    heads = [("{" if number == 0 else ",") + jsontext.dumps(name) + ":" for number, name in enumerate(table.column_names)]
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        texts = [json_texts(column, scalars) for column in batch.columns]
        pieces: list[list[str]] = []
        for head, column in zip(heads, texts, strict=True):
            pieces.append([head + text for text in column])
        if not pieces:
            yield from ["{}"] * batch.num_rows
            continue
        for row in zip(*pieces, strict=True):
            yield "".join(row) + "}"


def encode_csv(table: pa.Table, delimiter: str = ",", quote: str = '"') -> Iterator[str]:
    """Yield each row of ``table`` as a CSV record with its line end.

    :param table: the rows, one field for each column
    :param delimiter: a single ASCII character
    :param quote: a single ASCII character
    """
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        fields = [csv_fields(column, delimiter, quote) for column in batch.columns]
        for row in zip(*fields, strict=True):
            yield delimiter.join(row) + "\n"


def json_texts(array: pa.Array, scalars: Scalars = DEFAULT_SCALARS) -> list[str]:
    """Write each value of an Arrow array, which may be in chunks, as JSON text.

    :param array: the values
    :param scalars: the functions that write values that are no collections
    """
    if isinstance(array, pa.ChunkedArray):
        return [text for chunk in array.chunks for text in json_texts(chunk, scalars)]
    return ["null" if text is None else text for text in _texts(array, scalars)]


def csv_fields(array: pa.Array, delimiter: str, quote: str) -> list[str]:
    """Return each value of an Arrow array as a CSV field: strings verbatim, NULL as an empty field, nested values as JSON.

    :param array: the values
    :param delimiter: a single ASCII character; a field that contains it is quoted
    :param quote: a single ASCII character; within a quoted field it is doubled
    """
    special = (delimiter, quote, "\n", "\r")
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pat.is_string(array.type) or pat.is_large_string(array.type):
        values = python_values(array)
    elif pat.is_nested(array.type):
        values = _texts(array, DEFAULT_SCALARS)
    else:
        # Numbers have no quotes; dates and times need none here.
        values = [None if text is None else text.strip('"') for text in _texts(array, DEFAULT_SCALARS)]
    fields = []
    for value in values:
        if value is None:
            fields.append("")
        elif any(mark in value for mark in special):
            fields.append(quote + value.replace(quote, quote + quote) + quote)
        else:
            fields.append(value)
    return fields


def _texts(array: pa.Array, scalars: Scalars) -> list[str | None]:
    kind = array.type
    if pat.is_dictionary(kind):
        return _texts(array.dictionary_decode(), scalars)
    for matches, make in scalars:
        if matches(kind):
            return make(array)
    if pat.is_struct(kind):
        return _struct_texts(array, scalars)
    if pat.is_map(kind):
        return _map_texts(array, scalars)
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        return _list_texts(array, scalars)
    return [None if value is None else jsontext.dumps(str(value)) for value in python_values(array)]


def _struct_texts(array: pa.Array, scalars: Scalars) -> list[str | None]:
    names = [jsontext.dumps(field.name) for field in array.type]
    # ``flatten`` takes a slice's offset and the parent's nulls into account; ``field`` does not.
    members = [json_texts(member, scalars) for member in array.flatten()]
    present = python_values(array.is_valid())
    rows = zip(*members, strict=True) if members else iter([()] * len(array))
    return [
        "{" + ",".join(f"{name}:{text}" for name, text in zip(names, row, strict=True)) + "}" if valid else None
        for row, valid in zip(rows, present, strict=True)
    ]


def _list_texts(array: pa.Array, scalars: Scalars) -> list[str | None]:
    elements = iter(json_texts(array.flatten(), scalars))
    lengths = python_values(pc.list_value_length(array))
    return [None if n is None else "[" + ",".join(next(elements) for _ in range(n)) + "]" for n in lengths]


def _map_texts(array: pa.Array, scalars: Scalars) -> list[str | None]:
    texts: list[str | None] = []
    for number in range(len(array)):
        entries = array.slice(number, 1)
        if not entries[0].is_valid:
            texts.append(None)
            continue
        start, end = array.offsets[number].as_py(), array.offsets[number + 1].as_py()
        keys = json_texts(array.keys.slice(start, end - start), scalars)
        names = [key if key.startswith('"') else jsontext.dumps(key) for key in keys]
        items = json_texts(array.items.slice(start, end - start), scalars)
        texts.append("{" + ",".join(f"{name}:{item}" for name, item in zip(names, items, strict=True)) + "}")
    return texts
