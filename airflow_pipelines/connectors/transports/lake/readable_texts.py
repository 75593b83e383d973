"""Checks of texts that are not UTF-8, as a cast of bytes may give them: for one such value most readers refuse the whole file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat


class UnreadableTextError(ValueError):
    """The error for a row with a text that no table of a lake can hold."""


def check_texts(rows: pa.Table) -> None:
    """Check that all texts are UTF-8.

    :param rows: the rows as a table holds them
    :raises UnreadableTextError: when one is not
    """
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not _has_texts(field.type):
            continue
        for chunk in column.chunks:
            try:
                chunk.validate(full=True)
            except pa.ArrowInvalid as error:
                raise UnreadableTextError(f"column {field.name!r} has a text that is not UTF-8") from error


def drop_unreadable(rows: pa.Table) -> pa.Table:
    """Return the rows whose texts are all UTF-8.

    :param rows: the rows as a table holds them
    """
    try:
        check_texts(rows)
    except UnreadableTextError:
        return rows.filter(pa.array([_is_readable(rows, at) for at in range(rows.num_rows)], pa.bool_()))
    return rows


def drop_unreadable_deletes(rows: pa.Table, goes: pa.ChunkedArray) -> pa.Table:
    """Return the rows without the deletes of unreadable rows; these are not in the table, since their inserts were left out.

    :param rows: the rows as a table holds them
    :param goes: a boolean for each row, True if it is deleted
    :raises UnreadableTextError: when an inserted row has a text that is not UTF-8
    """
    try:
        check_texts(rows)
    except UnreadableTextError:
        check_texts(rows.filter(pc.invert(goes)))
        kept = [not gone or _is_readable(rows, at) for at, gone in enumerate(goes.to_pylist())]
        return rows.filter(pa.array(kept, pa.bool_()))
    return rows


def _is_readable(rows: pa.Table, at: int) -> bool:
    try:
        # Take, since a slice of a nested column would still have the values of all rows.
        check_texts(rows.take(pa.array([at])))
    except UnreadableTextError:
        return False
    return True


def _has_texts(kind: pa.DataType) -> bool:
    if pat.is_nested(kind):
        return any(_has_texts(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pat.is_string(kind) or pat.is_large_string(kind))
