"""A Delta table that is read: its versions, its files, and its commits."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow.fs import FileType

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.delta_table.deletion_vectors import deleted_rows
from airflow_pipelines.connectors.transports.delta_table.failures import in_words
from airflow_pipelines.connectors.transports.delta_table.filesystems import table_files
from airflow_pipelines.connectors.transports.delta_table.log import Commit, commit_path, mark_of, read_commit
from airflow_pipelines.connectors.transports.delta_table.pieces import Deleted, DeltaPiece
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.expressions.pushdown import Expression

_READ_FEATURES: Final = frozenset(
    {
        "timestampNtz",
        "deletionVectors",
        "columnMapping",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "typeWidening",
        "typeWidening-preview",
    }
)
"""The reader features that a table may require: those that this reader has, or never needs."""
_LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"
_MAPPING: Final = "delta.columnMapping.mode"


class SourceTable:
    """A table at one address. Its state is refreshed only on request."""

    def __init__(self, uri: str, storage: Mapping[str, str]) -> None:
        """Open the newest version.

        :param uri: the URI of the table's folder
        :param storage: the options for access to the store
        :raises ConnectorFailure: when the table requires features that this reader does not have
        """
        self._uri = uri
        self._storage = dict(storage)
        self._newest = DeltaTable(uri, storage_options=self._storage)
        self._check_readable()
        self.filesystem = table_files(uri, self._storage)
        self._seen: tuple[Any, ...] = ()

    def _check_readable(self) -> None:
        asked = set(self._newest.protocol().reader_features or ()) - _READ_FEATURES
        mapping = self._newest.metadata().configuration.get(_MAPPING, "none")
        if mapping != "none":
            asked = {f"columns under other names in files ({_MAPPING} = {mapping})", *asked}
        if asked:
            raise ConnectorFailure(
                f"delta_table_input: the table at {self._uri} uses what cannot be read here: {', '.join(sorted(asked))}. Turn it "
                "off in the table (ALTER TABLE ... DROP FEATURE), or read a copy of the table without it."
            )

    @property
    def newest(self) -> int:
        """The newest version when the table was last looked at."""
        return int(self._newest.version())

    def mark(self, version: int) -> str | None:
        """Return the mark that distinguishes a version from that of a table that was made again.

        It is None if the log no longer has the version.
        """
        try:
            return mark_of(self._read(commit_path(version)))
        except FileNotFoundError:
            return None

    def check_mark(self, version: int, mark: str | None) -> None:
        """Check that the version in the log is the one that was read.

        :param version: the version
        :param mark: the result of :meth:`mark` for it; None when that is not known
        :raises ConnectorFailure: when it is that of another table
        """
        if version > self.newest:
            raise self._made_again(version)
        if mark is None:
            return
        info = self.filesystem.get_file_info(commit_path(version))
        if info.type == FileType.NotFound:
            # The log may be cleaned up.
            return
        seen = (version, info.size, info.mtime_ns)
        if seen == self._seen:
            return
        if self.mark(version) not in {None, mark}:
            raise self._made_again(version)
        self._seen = seen

    def _made_again(self, version: int) -> ConnectorFailure:
        return ConnectorFailure(
            f"delta_table_input: version {version} of the table at {self._uri} is not the one that was read: the table was "
            "dropped and made again. Load the new one into a connector with another name."
        )

    def look(self) -> None:
        """Look for newer versions.

        :raises ConnectorFailure: when the table is gone, which the client library does not report
        """
        before = self.newest
        self._newest.update_incremental()
        self._check_readable()
        if self.newest == before and not any(map(self._has_file, (commit_path(before), _LAST_CHECKPOINT))):
            raise ConnectorFailure(
                f"delta_table_input: the log of the table at {self._uri} no longer has version {before}: the table was dropped, or "
                "made again. Bring it back, or load the new one into a connector with another name."
            )

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns of the newest version, which may have more than older ones."""
        return pa.schema(self._newest.schema().to_arrow())

    def forget_schema(self) -> None:
        """Have the columns looked up again."""
        self.__dict__.pop("schema", None)

    def version_at(self, text: str) -> int:
        """Return the version that was the newest at a time.

        :param text: the time; UTC if it has no time zone
        :raises ConnectorFailure: when there was none yet
        """
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        table = DeltaTable(self._uri, storage_options=self._storage)
        table.load_as_version(at)
        first = self.commit(table.version())
        if first.timestamp > at.timestamp() * 1000:
            raise ConnectorFailure(
                f"delta_table_input: the log of the table at {self._uri} begins with version {first.version}, "
                f"which is later than {text}"
            )
        return first.version

    def check_version(self, version: int) -> None:
        """Check that a version exists.

        :raises ConnectorFailure: when it does not
        """
        if version > self.newest:
            raise ConnectorFailure(
                f"delta_table_input: the table at {self._uri} has no version {version} yet; its newest is {self.newest}. Give "
                "another 'version'."
            )

    def files(self, version: int) -> list[DeltaPiece]:
        """Return the files of a version.

        :raises ConnectorFailure: when the table no longer has it
        """
        table = self._newest if version == self.newest else self._at(version)
        actions = pa.table(table.get_add_actions())
        partitions = [field.name for field in _struct(actions, "partition")]
        deleted = self._find_deleted_rows(table)
        pieces = []
        for row, path in enumerate(actions.column("path").to_pylist()):
            partition = {name: _part(actions, "partition", name, row) for name in partitions}
            path = unquote(path)
            pieces.append(
                DeltaPiece(
                    path,
                    partition,
                    Op.INSERT,
                    actions.column("size_bytes")[row].as_py(),
                    actions.column("num_records")[row].as_py(),
                    known=self._find_known_condition(actions, row),
                    deleted=deleted.get(path),
                )
            )
        return sorted(pieces, key=lambda piece: piece.path)

    def _at(self, version: int) -> DeltaTable:
        try:
            return DeltaTable(self._uri, version=version, storage_options=self._storage)
        except Exception as error:
            raise self._make_expired_failure(version, in_words(error)) from error

    def _find_known_condition(self, actions: pa.Table, row: int) -> Expression | None:
        """Return a condition that all rows of a file meet, from its statistics in the log, or None if there are none."""
        condition: Expression | None = None
        for column in self.schema.names:
            if not _has_plain_order(self.schema.field(column).type):
                continue
            least, greatest = _part(actions, "min", column, row), _part(actions, "max", column, row)
            nulls = _part(actions, "null_count", column, row)
            if not (least.is_valid and greatest.is_valid and nulls.is_valid):
                continue
            kind = self.schema.field(column).type
            field = pc.field(column)
            known = (field >= least.cast(kind)) & (field <= greatest.cast(kind))
            if nulls.as_py():
                known = known | field.is_null()
            condition = known if condition is None else condition & known
        return condition

    def _find_deleted_rows(self, table: DeltaTable) -> dict[str, np.ndarray[Any, Any]]:
        """Return the deleted rows of a version, by the path of each file that has a deletion vector."""
        if "deletionVectors" not in (table.protocol().reader_features or ()):
            return {}
        deleted = {}
        root = table.table_uri.rstrip("/") + "/"
        for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
            for uri, kept in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
                path = unquote(uri.as_py()).partition(unquote(root))[2]
                deleted[path] = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False)).astype(np.uint64)
        return deleted

    def commit(self, version: int) -> Commit:
        """Return the commit of a version.

        :raises ConnectorFailure: when the log no longer has it
        """
        try:
            content = self._read(commit_path(version))
        except FileNotFoundError as error:
            raise self._make_expired_failure(version, "its log file is gone") from error
        return read_commit(version, content)

    @property
    def deleted(self) -> Deleted:
        """The function that returns the deleted rows of a file that a commit names."""
        return lambda action: None if action.vector is None else deleted_rows(action.vector, self._read)

    def partition_before(self, version: int, path: str) -> Mapping[str, pa.Scalar]:
        """Return the partition of a file that a version no longer has."""
        if not self._newest.metadata().partition_columns:
            return {}
        return next((piece.partition for piece in self.files(version - 1) if piece.path == path), {})

    def _has_file(self, path: str) -> bool:
        return bool(self.filesystem.get_file_info(path).type != FileType.NotFound)

    def _read(self, path: str) -> bytes:
        with self.filesystem.open_input_file(path) as file:
            return bytes(file.read())

    def _make_expired_failure(self, version: int, reason: str) -> ConnectorFailure:
        return ConnectorFailure(
            f"delta_table_input: version {version} of the table at {self._uri} can no longer be read: {reason}. "
            "Load the table anew, into a connector with another name, and keep its log (delta.logRetentionDuration) and its files "
            "(VACUUM ... RETAIN) for longer than a pipeline may stand still."
        )

    def make_missing_file_failure(self, version: int, path: str) -> ConnectorFailure:
        """Return the failure for a file of a version that does not exist."""
        return self._make_expired_failure(version, f"its file {path} is gone, as after VACUUM")


def _struct(actions: pa.Table, name: str) -> list[pa.Field]:
    place = actions.schema.get_field_index(name)
    return [] if place < 0 else list(actions.schema.field(place).type)


def _part(actions: pa.Table, name: str, field: str, row: int) -> pa.Scalar:
    """Return the value that the log has for a column of one file, or NULL if it has none."""
    place = actions.schema.get_field_index(name)
    if place < 0 or actions.schema.field(place).type.get_field_index(field) < 0:
        return pa.scalar(None)
    value = actions.column(place)[row]
    return value[field] if value.is_valid else pa.scalar(None)


def _has_plain_order(kind: pa.DataType) -> bool:
    """Return True if the log has the least and greatest values of the rows; texts may be cut, and NaN is not counted."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_decimal(kind))
