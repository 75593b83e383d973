"""What an input reads of a Delta table, file by file, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from airflow_pipelines.connectors.transports.delta_table.log import Commit, FileAction
from airflow_pipelines.connectors.transports.delta_table.row_condition import PROBLEM, RowCondition
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.sql.conditions import Expression

CHANGE_TYPE: Final = "_change_type"
"""The column of files of changes that says what a row is."""
_COMING: Final = ("insert", "update_postimage")
_GOING: Final = ("delete", "update_preimage")
_PARQUET: Final = pads.ParquetFileFormat(coerce_int96_timestamp_unit="us")
_SCANNED_ROWS: Final = 131_072
_NONE: Final = np.array([], np.uint64)


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of which rows come or go.

    :param path: in the table's folder
    :param partition: the values of the columns that are not in the file
    :param op: what its rows are
    :param size: in bytes
    :param records: how many rows it has, as far as is known
    :param known: what is known of all of its rows
    :param deleted: the numbers of rows that are not meant
    :param only: the numbers of the rows that are meant; None for all
    :param change_types: of a file of changes, those that are meant
    """

    path: str
    partition: Mapping[str, pa.Scalar]
    op: Op
    size: int = 0
    records: int | None = None
    known: Expression | None = None
    deleted: np.ndarray[Any, Any] | None = None
    only: np.ndarray[Any, Any] | None = None
    change_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """How pieces are read.

    :param filesystem: that of the table's folder
    :param schema: of the table
    :param columns: those that are wanted
    :param condition: what rows have to meet
    :param row_conditions: what they have to meet as well, which is evaluated after they were read
    """

    filesystem: pafs.FileSystem
    schema: pa.Schema
    columns: tuple[str, ...]
    condition: Expression | None
    row_conditions: tuple[RowCondition, ...] = ()

    @property
    def names(self) -> list[str]:
        """The columns of the rows that are read."""
        return [*self.columns, *([PROBLEM] if self.row_conditions else [])]

    def within(self, condition: Expression) -> Reading:
        """The same for rows that meet another condition as well."""
        return replace(self, condition=condition if self.condition is None else self.condition & condition)

    def may_have(self, piece: Piece) -> bool:
        """Whether a piece may have rows that are wanted, by what is known of it."""
        fragment = self._fragment(piece)
        if self.condition is None:
            return True
        dataset = pads.FileSystemDataset([fragment], self.schema, _PARQUET, self.filesystem)
        return any(True for _ in dataset.get_fragments(filter=self.condition))

    def rows(self, piece: Piece) -> Iterator[pa.Table]:
        """The rows of a piece that are wanted, in the order of the file, and those of which a condition cannot tell."""
        wanted = tuple(dict.fromkeys([*self.columns, *(name for each in self.row_conditions for name in each.columns)]))
        for table in self._read(piece, wanted):
            for each in self.row_conditions:
                table = each.filter_rows(table)
            yield table.select(self.names)

    def _read(self, piece: Piece, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        fragment = self._fragment(piece)
        if piece.change_types:
            schema = self.schema.append(pa.field(CHANGE_TYPE, pa.string()))
            chosen = pc.field(CHANGE_TYPE).isin(list(piece.change_types))
            condition = chosen if self.condition is None else self.condition & chosen
            yield from _scanned(fragment, schema, columns, condition)
        elif piece.deleted is None and piece.only is None:
            yield from _scanned(fragment, self.schema, columns, self.condition)
        else:
            # The numbers are those of the rows in the file, so all of its rows have to be counted.
            row = 0
            for table in _scanned(fragment, self.schema, tuple(self.schema.names), None):
                meant = table.filter(pa.array(_meant(piece, row, table.num_rows)))
                row += table.num_rows
                yield (meant if self.condition is None else meant.filter(self.condition)).select(columns)

    def _fragment(self, piece: Piece) -> pads.Fragment:
        known = piece.known if piece.known is not None else pc.scalar(True)
        for name, value in piece.partition.items():
            known = known & (pc.field(name) == value if value.is_valid else pc.field(name).is_null())
        return _PARQUET.make_fragment(piece.path, filesystem=self.filesystem, partition_expression=known)


def _scanned(
    fragment: pads.Fragment, schema: pa.Schema, columns: tuple[str, ...], condition: Expression | None
) -> Iterator[pa.Table]:
    for batch in fragment.to_batches(schema=schema, columns=list(columns), filter=condition, batch_size=_SCANNED_ROWS):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _meant(piece: Piece, row: int, count: int) -> np.ndarray[Any, Any]:
    """Which of some rows of a file are meant."""
    if piece.only is not None:
        meant = np.zeros(count, bool)
        chosen = piece.only
    else:
        meant = np.ones(count, bool)
        chosen = piece.deleted if piece.deleted is not None else _NONE
    low, high = np.searchsorted(chosen, [row, row + count])
    meant[chosen[low:high].astype(np.int64) - row] = piece.only is not None
    return meant


Deleted: TypeAlias = Callable[[FileAction], np.ndarray[Any, Any] | None]
"""Gives the numbers of the rows that are deleted in a file, in order; None when it has no deletion vector."""


def pieces_of_commit(
    commit: Commit, schema: pa.Schema, deleted: Deleted, partition_before: Callable[[str], Mapping[str, pa.Scalar]]
) -> list[Piece]:
    """The files whose rows a commit took away, and then those whose rows it brought.

    :param commit: what it did
    :param schema: of the table
    :param deleted: gives deleted rows
    :param partition_before: gives the partition of a removed file, for which the log need not say it
    """

    def piece(action: FileAction, op: Op, **rest: Any) -> Piece:
        partition = partition_before(action.path) if action.partition is None else partition_values(action.partition, schema)
        return Piece(action.path, partition, op, action.size, action.records, **rest)

    if commit.changes:
        files = sorted(commit.changes, key=lambda action: action.path)
        # A row may go in one file and come in another, as when it moves to another partition.
        return [
            *(piece(action, Op.DELETE, change_types=_GOING) for action in files),
            *(piece(action, Op.INSERT, change_types=_COMING) for action in files),
        ]
    added = {action.path: action for action in sorted(commit.added, key=lambda action: action.path)}
    removed = {action.path: action for action in sorted(commit.removed, key=lambda action: action.path)}
    gone, come = [], []
    for path, action in removed.items():
        if path not in added:
            gone.append(piece(action, Op.DELETE, deleted=deleted(action)))
            continue
        # The same file with another deletion vector.
        before, after = (_NONE if rows is None else rows for rows in (deleted(action), deleted(added[path])))
        newly, again = np.setdiff1d(after, before), np.setdiff1d(before, after)
        if len(newly):
            gone.append(piece(added[path], Op.DELETE, only=newly))
        if len(again):
            come.append(piece(added[path], Op.INSERT, only=again))
    come += [piece(action, Op.INSERT, deleted=deleted(action)) for path, action in added.items() if path not in removed]
    return gone + come


def partition_values(texts: Mapping[str, str | None], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """The values of partition columns, of which the log has texts."""
    return {name: _partition_value(text, schema.field(name).type) for name, text in texts.items()}


def _partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    # An empty text is NULL, whatever the type.
    if not text:
        return pa.scalar(None, kind)
    if pa.types.is_binary(kind):
        return pa.scalar(text.encode("utf-8"), kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None and not text.endswith("Z"):
        return pa.scalar(text).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(text).cast(kind)
