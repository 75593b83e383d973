"""The pieces, file by file, that an input reads of a Delta table, always in the same order."""

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
from airflow_pipelines.rows.expressions.pushdown import Expression

CHANGE_TYPE: Final = "_change_type"
"""The column of files of changes that has the type of a row."""
_COMING: Final = ("insert", "update_postimage")
_GOING: Final = ("delete", "update_preimage")
_PARQUET: Final = pads.ParquetFileFormat(coerce_int96_timestamp_unit="us")
_SCANNED_ROWS: Final = 131_072
_NONE: Final = np.array([], np.uint64)


@dataclass(frozen=True, slots=True)
class DeltaPiece:
    """A file whose rows are inserted or deleted.

    :param path: the path in the table's folder
    :param partition: the values of the columns that are not in the file
    :param op: the operation of its rows
    :param size: the size in bytes
    :param records: the number of its rows, as far as is known
    :param known: the condition that all of its rows are known to meet
    :param deleted: the numbers of rows that are excluded
    :param only: the numbers of the rows that are included; None for all
    :param change_types: the types of rows that are included, for a file of changes
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
class PieceReadOptions:
    """The settings for reading pieces.

    :param filesystem: the file system of the table's folder
    :param schema: the schema of the table
    :param columns: the columns that are wanted
    :param condition: the condition that rows have to meet
    :param row_conditions: the conditions that they have to meet as well, which are evaluated after they were read
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

    def within(self, condition: Expression) -> PieceReadOptions:
        """Return the same settings for rows that meet another condition as well."""
        return replace(self, condition=condition if self.condition is None else self.condition & condition)

    def may_have(self, piece: DeltaPiece) -> bool:
        """Return True if a piece may have rows that are wanted, by what is known of it."""
        fragment = self._fragment(piece)
        if self.condition is None:
            return True
        dataset = pads.FileSystemDataset([fragment], self.schema, _PARQUET, self.filesystem)
        return any(True for _ in dataset.get_fragments(filter=self.condition))

    def rows(self, piece: DeltaPiece) -> Iterator[pa.Table]:
        """Yield the wanted rows of a piece in the order of the file, and those for which a condition cannot be evaluated."""
        wanted = tuple(dict.fromkeys([*self.columns, *(name for each in self.row_conditions for name in each.columns)]))
        for table in self._read(piece, wanted):
            for each in self.row_conditions:
                table = each.filter_rows(table)
            yield table.select(self.names)

    def _read(self, piece: DeltaPiece, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        fragment = self._fragment(piece)
        if piece.change_types:
            schema = self.schema.append(pa.field(CHANGE_TYPE, pa.string()))
            chosen = pc.field(CHANGE_TYPE).isin(list(piece.change_types))
            condition = chosen if self.condition is None else self.condition & chosen
            yield from _scan(fragment, schema, columns, condition)
        elif piece.deleted is None and piece.only is None:
            yield from _scan(fragment, self.schema, columns, self.condition)
        else:
            # The row numbers count all rows of the file, so it has to be read without a condition.
            row = 0
            for table in _scan(fragment, self.schema, tuple(self.schema.names), None):
                meant = table.filter(pa.array(_select_rows(piece, row, table.num_rows)))
                row += table.num_rows
                yield (meant if self.condition is None else meant.filter(self.condition)).select(columns)

    def _fragment(self, piece: DeltaPiece) -> pads.Fragment:
        known = piece.known if piece.known is not None else pc.scalar(True)
        for name, value in piece.partition.items():
            known = known & (pc.field(name) == value if value.is_valid else pc.field(name).is_null())
        return _PARQUET.make_fragment(piece.path, filesystem=self.filesystem, partition_expression=known)


def _scan(fragment: pads.Fragment, schema: pa.Schema, columns: tuple[str, ...], condition: Expression | None) -> Iterator[pa.Table]:
    for batch in fragment.to_batches(schema=schema, columns=list(columns), filter=condition, batch_size=_SCANNED_ROWS):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _select_rows(piece: DeltaPiece, row: int, count: int) -> np.ndarray[Any, Any]:
    """Return a boolean for each of some rows of a file, True if it is included."""
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
"""A function that returns the numbers of the deleted rows of a file, in order, or None if it has no deletion vector."""


def pieces_of_commit(
    commit: Commit, schema: pa.Schema, deleted: Deleted, partition_before: Callable[[str], Mapping[str, pa.Scalar]]
) -> list[DeltaPiece]:
    """Return the files whose rows a commit deleted, and then those whose rows it inserted.

    :param commit: the commit
    :param schema: the schema of the table
    :param deleted: a function that returns deleted rows
    :param partition_before: a function that returns the partition of a removed file, which the log need not contain
    """

    def piece(action: FileAction, op: Op, **rest: Any) -> DeltaPiece:
        partition = partition_before(action.path) if action.partition is None else partition_values(action.partition, schema)
        return DeltaPiece(action.path, partition, op, action.size, action.records, **rest)

    if commit.changes:
        files = sorted(commit.changes, key=lambda action: action.path)
        # A row may be deleted in one file and inserted in another, as when it moves to another partition.
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
    """Return the values of partition columns from their texts in the log."""
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
