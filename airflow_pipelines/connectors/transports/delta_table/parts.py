"""The parts in which a version of a Delta table is read; the rows of each part always come in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.delta_table.pieces import DeltaPiece, PieceReadOptions
from airflow_pipelines.connectors.transports.delta_table.row_condition import PROBLEM, RowCondition, add_problems
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.expressions.pushdown import Expression
from airflow_pipelines.rows.zsets import WEIGHT, can_group, consolidate, consolidate_groupable

NET_BYTES: Final = 64 << 20
"""The maximum size of files, in bytes, that are compared in memory, so that rows that only moved to another file are no changes."""
SPAN_ROWS: Final = 500_000
"""The approximate number of rows of a snapshot that are sorted by time at once."""
_SAMPLE: Final = 5_000_000

Ops: TypeAlias = Op | pa.Array
"""The operations of rows: the same for all, or an array of numbers."""


class Part(Protocol):
    """A part with rows that are always the same and in the same order."""

    def rows(self) -> Iterator[tuple[pa.Table, Ops]]:
        """Yield the rows and their operations."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part with the rows of one file."""

    piece: DeltaPiece
    reading: PieceReadOptions

    def rows(self) -> Iterator[tuple[pa.Table, Ops]]:
        """Yield the rows and their operations."""
        for table in self.reading.rows(self.piece):
            yield table, self.piece.op


@dataclass(frozen=True, slots=True)
class NetPart:
    """A part with the net changes of a commit that rewrote files: the difference of their rows."""

    pieces: Sequence[DeltaPiece]
    reading: PieceReadOptions

    def rows(self) -> Iterator[tuple[pa.Table, Ops]]:
        """Yield the deleted rows, and then the inserted ones."""
        tables = []
        for piece in self.pieces:
            for table in self.reading.rows(piece):
                weights = pa.array(np.full(table.num_rows, int(piece.op)))
                tables.append(table.append_column(WEIGHT, weights))
        if not tables:
            return
        net = consolidate_groupable(pa.concat_tables(tables))
        weights = net.column(WEIGHT).to_numpy()
        for op, chosen in ((Op.DELETE, np.flatnonzero(weights < 0)), (Op.INSERT, np.flatnonzero(weights > 0))):
            places = np.repeat(chosen, np.abs(weights[chosen]))
            if len(places):
                yield net.drop_columns([WEIGHT]).take(pa.array(places)), op


@dataclass(frozen=True, slots=True)
class OrderedPart:
    """A part with the rows of a snapshot whose value of a column is in a range, in the order of this column."""

    pieces: Sequence[DeltaPiece]
    reading: PieceReadOptions
    column: str

    def rows(self) -> Iterator[tuple[pa.Table, Ops]]:
        """Yield the rows in order."""
        columns = tuple(dict.fromkeys((*self.reading.columns, self.column)))
        wider = replace(self.reading, columns=columns)
        tables = [table for piece in self.pieces if wider.may_have(piece) for table in wider.rows(piece)]
        if tables:
            rows = pa.concat_tables(tables)
            order = pc.sort_indices(rows, sort_keys=[(self.column, "ascending", "at_start")])
            yield rows.take(order).select(self.reading.names), Op.INSERT


@dataclass(frozen=True, slots=True)
class ChangesPart:
    """A part with rows that are changes themselves, in the order of some columns.

    :param order: the columns with ``ascending`` or ``descending``
    :param deletes: a condition that deletes meet
    """

    pieces: Sequence[DeltaPiece]
    reading: PieceReadOptions
    order: Sequence[tuple[str, str]]
    deletes: Expression | RowCondition | None

    def rows(self) -> Iterator[tuple[pa.Table, Ops]]:
        """Yield the rows in order, and their operations."""
        every = replace(self.reading, columns=tuple(self.reading.schema.names))
        tables = [
            table.append_column(WEIGHT, pa.array(np.full(table.num_rows, int(piece.op))))
            for piece in self.pieces
            for table in every.rows(piece)
        ]
        if not tables:
            return
        rows = pa.concat_tables(tables)
        if any(piece.op is Op.DELETE for piece in self.pieces):
            # Rewritten files contain old rows again. Deleting rows from the log does not undo their changes.
            rows = _repeat_by_weight(consolidate(rows))
        rows = rows.drop_columns([WEIGHT])
        if self.order:
            order = [(column, direction, "at_start") for column, direction in self.order]
            rows = rows.take(pc.sort_indices(rows, sort_keys=order))
        ops: Ops = Op.INSERT
        names = self.reading.names
        if self.deletes is not None:
            chosen, rows = self._find_deletes(self.deletes, rows)
            names = [name for name in rows.column_names if name in {*names, PROBLEM}]
            ops = pc.if_else(pc.fill_null(chosen, False), int(Op.DELETE), int(Op.INSERT)).cast(pa.int8())
            ops = ops.combine_chunks() if isinstance(ops, pa.ChunkedArray) else ops
        yield rows.select(names), ops

    @staticmethod
    def _find_deletes(deletes: Expression | RowCondition, rows: pa.Table) -> tuple[pa.Array, pa.Table]:
        """Return a boolean for each row, True if it is a delete, and the rows, possibly with a column of problems."""
        if isinstance(deletes, RowCondition):
            decided = deletes.decide(rows)
            return decided.is_met, add_problems(rows, decided.problems)
        return pads.dataset(rows).to_table(columns={"deletes": deletes}).column("deletes"), rows


def _repeat_by_weight(rows: pa.Table) -> pa.Table:
    """Return the inserted rows, each as often as its weight says."""
    weights = rows.column(WEIGHT).to_numpy()
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), np.maximum(weights, 0))))


def parts_of_commit(pieces: Sequence[DeltaPiece], reading: PieceReadOptions) -> list[Part]:
    """Return the parts of a commit's changes.

    :param pieces: the files whose rows were deleted and inserted
    :param reading: the settings for reading them
    """
    ops = {piece.op for piece in pieces if not piece.change_types}
    wanted = pa.schema([reading.schema.field(name) for name in reading.columns])
    if len(ops) > 1 and can_group(wanted) and sum(piece.size for piece in pieces) <= NET_BYTES:
        return [NetPart(pieces, reading)]
    return [FilePart(piece, reading) for piece in pieces]


def parts_in_order(pieces: Sequence[DeltaPiece], reading: PieceReadOptions, column: str) -> list[Part]:
    """Return the parts of a snapshot in the order of a column.

    :param pieces: the files of the snapshot
    :param reading: the settings for reading them
    :param column: a column such as a time
    :raises ConnectorFailure: when the column has no order
    """
    kind = reading.schema.field(column).type
    if not (pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise ConnectorFailure(
            f"delta_table_input: 'timestamp_column' {column!r} is {kind}; rows can be ordered by integers, dates and timestamps"
        )
    bounds = [pa.scalar(value, pa.int64()).cast(_number(kind)).cast(kind) for value in _bounds(pieces, reading, column, kind)]
    field = pc.field(column)
    if not bounds:
        return [OrderedPart(pieces, reading, column)]
    spans = [
        (field < bounds[0]) | field.is_null(),
        *((field >= low) & (field < high) for low, high in pairwise(bounds)),
        field >= bounds[-1],
    ]
    return [OrderedPart(pieces, reading.within(span), column) for span in spans]


def _bounds(pieces: Sequence[DeltaPiece], reading: PieceReadOptions, column: str, kind: pa.DataType) -> list[int]:
    """Return values with about :data:`SPAN_ROWS` rows between each two of them."""
    only = replace(reading, columns=(column,))
    kept: list[np.ndarray[Any, Any]] = []
    rows = count = 0
    every = 1
    for piece in pieces:
        for table in only.rows(piece):
            values = table.column(column).drop_null().cast(_number(kind)).cast(pa.int64()).to_numpy()
            rows += len(values)
            kept.append(values[::every])
            count += len(kept[-1])
            if count > _SAMPLE:
                kept, every = [np.concatenate(kept)[::2]], 2 * every
                count = len(kept[0])
    spans = rows // SPAN_ROWS + 1
    if spans < 2:
        return []
    sample = np.sort(np.concatenate(kept))
    return sorted({int(sample[len(sample) * number // spans]) for number in range(1, spans)})


def _number(kind: pa.DataType) -> pa.DataType:
    """Return the type of the integers as which values are stored."""
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()
