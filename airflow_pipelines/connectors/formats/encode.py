"""Rows as JSON and CSV text, the one encoding that egress, file output and query results share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.connectors.formats import jsontext, variant
from airflow_pipelines.engine.arrow import is_variant
from airflow_pipelines.engine.values.intervals import microseconds_text

ROWS_AT_ONCE = 10_000
"""How many rows are turned into text at a time, so that a large table never exists as text as a whole."""


def encode_rows(table: pa.Table) -> Iterator[str]:
    """Each row of ``table`` as a JSON object, one text per row, columns in order and NULL written out.

    Decimals are numbers that keep their scale, dates and times ISO text, timestamps ``YYYY-MM-DD HH:MM:SS[.ffffff]`` (with
    ``+00:00`` when they have a zone), binary an array of byte numbers, maps and structs objects, variants the JSON they hold; NaN
    and infinities become null. A map's key that is no string is written as a string.
    """
    heads = [("{" if number == 0 else ",") + jsontext.dumps(name) + ":" for number, name in enumerate(table.column_names)]
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        texts = [json_texts(column) for column in batch.columns]
        pieces: list[list[str]] = []
        for head, column in zip(heads, texts, strict=True):
            pieces.append([head + text for text in column])
        if not pieces:
            yield from ["{}"] * batch.num_rows
            continue
        for row in zip(*pieces, strict=True):
            yield "".join(row) + "}"


def encode_csv(table: pa.Table, delimiter: str = ",", quote: str = '"') -> Iterator[str]:
    """Each row of ``table`` as a CSV record with its line end.

    :param table: the rows, one field per column
    :param delimiter: a single ASCII character
    :param quote: a single ASCII character
    """
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        fields = [csv_fields(column, delimiter, quote) for column in batch.columns]
        for row in zip(*fields, strict=True):
            yield delimiter.join(row) + "\n"


def json_texts(array: pa.Array) -> list[str]:
    """The JSON text of each value of an Arrow array, which may be in chunks."""
    if isinstance(array, pa.ChunkedArray):
        return [text for chunk in array.chunks for text in json_texts(chunk)]
    return ["null" if text is None else text for text in _texts(array)]


def csv_fields(array: pa.Array, delimiter: str, quote: str) -> list[str]:
    """Each value of an Arrow array as a CSV field: strings as they are, NULL as nothing, nested values as JSON.

    :param array: the values
    :param delimiter: a single ASCII character; a field that holds it is quoted
    :param quote: a single ASCII character; within a quoted field it is doubled
    """
    special = (delimiter, quote, "\n", "\r")
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pat.is_string(array.type) or pat.is_large_string(array.type):
        values = array.to_pylist()
    elif pat.is_nested(array.type):
        values = _texts(array)
    else:
        # Numbers are in no quotes; dates and times need none here.
        values = [None if text is None else text.strip('"') for text in _texts(array)]
    fields = []
    for value in values:
        if value is None:
            fields.append("")
        elif any(mark in value for mark in special):
            fields.append(quote + value.replace(quote, quote + quote) + quote)
        else:
            fields.append(value)
    return fields


def _texts(array: pa.Array) -> list[str | None]:
    kind = array.type
    if pat.is_dictionary(kind):
        return _texts(array.dictionary_decode())
    if is_variant(kind):
        return [None if value is None else variant.to_json(value) for value in array.to_pylist()]
    if pat.is_struct(kind):
        return _struct_texts(array)
    if pat.is_map(kind):
        return _map_texts(array)
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        return _list_texts(array)
    for matches, make in _SCALARS:
        if matches(kind):
            return make(array)
    return [None if value is None else jsontext.dumps(str(value)) for value in array.to_pylist()]


def _numbers(array: pa.Array) -> list[str | None]:
    texts: list[str | None] = array.cast(pa.string()).to_pylist()
    return texts


def _decimals(array: pa.Array) -> list[str | None]:
    # Arrow turns to exponents for small numbers, so the digits are written by Python.
    return [None if value is None else format(value, "f") for value in array.to_pylist()]


def _floats(array: pa.Array) -> list[str | None]:
    if pat.is_float64(array.type):
        return [None if value is None or not math.isfinite(value) else repr(value) for value in array.to_pylist()]
    # The shortest digits of a REAL are fewer than those of the same number as a DOUBLE.
    texts = array.cast(pa.string()).to_pylist()
    finite = pc.is_finite(array).to_pylist()
    return [text if ok else None for text, ok in zip(texts, finite, strict=True)]


def _strings(array: pa.Array) -> list[str | None]:
    return [None if value is None else jsontext.dumps(value) for value in array.to_pylist()]


def _dates(array: pa.Array) -> list[str | None]:
    return _quoted(array.cast(pa.string()))


def _timestamps(array: pa.Array) -> list[str | None]:
    zoned = array.type.tz is not None
    if array.type.unit == "ns":
        # Nobody reads nanoseconds back: the engine keeps microseconds.
        array = pc.cast(array, pa.timestamp("us", tz=array.type.tz), safe=False)
    texts = pc.cast(array.cast(pa.timestamp(array.type.unit)), pa.string())
    texts = pc.replace_substring_regex(texts, r"\.0+$", "")
    return _quoted(pc.binary_join_element_wise(texts, "+00:00", "") if zoned else texts)


def _times(array: pa.Array) -> list[str | None]:
    # Arrow writes as many digits as its unit has, so that a fraction ends with zeros that nobody gave.
    texts = pc.cast(array, pa.string())
    return _quoted(pc.replace_substring_regex(texts, r"\.?0+$", "") if array.type.unit != "s" else texts)


def _durations(array: pa.Array) -> list[str | None]:
    lengths = array.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
    return [None if length is None else f'"{microseconds_text(length)}"' for length in lengths]


def _binaries(array: pa.Array) -> list[str | None]:
    return [None if value is None else "[" + ",".join(map(str, value)) + "]" for value in array.to_pylist()]


def _nulls(array: pa.Array) -> list[str | None]:
    return [None] * len(array)


def _booleans(array: pa.Array) -> list[str | None]:
    return [None if value is None else ("true" if value else "false") for value in array.to_pylist()]


def _quoted(texts: pa.Array) -> list[str | None]:
    return [None if text is None else f'"{text}"' for text in texts.to_pylist()]


_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[str | None]]], ...] = (
    (pat.is_integer, _numbers),
    (lambda kind: pat.is_string(kind) or pat.is_large_string(kind), _strings),
    (pat.is_decimal, _decimals),
    (pat.is_floating, _floats),
    (pat.is_boolean, _booleans),
    (pat.is_date, _dates),
    (pat.is_timestamp, _timestamps),
    (pat.is_time, _times),
    (pat.is_duration, _durations),
    (lambda kind: pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind), _binaries),
    (pat.is_null, _nulls),
)


def _struct_texts(array: pa.Array) -> list[str | None]:
    names = [jsontext.dumps(field.name) for field in array.type]
    # ``flatten`` takes a slice's offset and the parent's nulls into account; ``field`` does not.
    members = [json_texts(member) for member in array.flatten()]
    present = array.is_valid().to_pylist()
    rows = zip(*members, strict=True) if members else iter([()] * len(array))
    return [
        "{" + ",".join(f"{name}:{text}" for name, text in zip(names, row, strict=True)) + "}" if valid else None
        for row, valid in zip(rows, present, strict=True)
    ]


def _list_texts(array: pa.Array) -> list[str | None]:
    elements = iter(json_texts(array.flatten()))
    lengths = pc.list_value_length(array).to_pylist()
    return [None if n is None else "[" + ",".join(next(elements) for _ in range(n)) + "]" for n in lengths]


def _map_texts(array: pa.Array) -> list[str | None]:
    texts: list[str | None] = []
    for number in range(len(array)):
        entries = array.slice(number, 1)
        if not entries[0].is_valid:
            texts.append(None)
            continue
        start, end = array.offsets[number].as_py(), array.offsets[number + 1].as_py()
        keys = [key if key.startswith('"') else jsontext.dumps(key) for key in json_texts(array.keys.slice(start, end - start))]
        items = json_texts(array.items.slice(start, end - start))
        texts.append("{" + ",".join(f"{key}:{item}" for key, item in zip(keys, items, strict=True)) + "}")
    return texts
