"""The conversion of a server's messages about changes into changes of a table of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.options import InvalidValues
from airflow_pipelines.connectors.transports.postgresql.pgoutput import Delete, Insert, Missing, Relation, TupleData, Update
from airflow_pipelines.connectors.transports.postgresql.raw_changes import ChangedRow, Entry, RawChange, RowMapping, add_to
from airflow_pipelines.connectors.transports.postgresql.row_mapping import mapped_columns
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType
from airflow_pipelines.rows.changes import Op, TableChanges
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.parsed import Parsed, RecordProblem, RowBuffer, changes_schema
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema


class ChangeRows:
    """A converter of a server's messages about one table into changes.

    :param schema: the schema of the table in the pipeline
    :param now: the clock that a DEFAULT may read
    :param where: the connector, for messages
    :param invalid: the treatment of values that the type of their column does not have
    """

    def __init__(self, schema: RelationSchema, now: Now, where: str, invalid: InvalidValues) -> None:
        self._schema = schema
        self._reader = RowReader(schema, now=now)
        self._where = where
        self._invalid = invalid
        self._mapping = RowMapping(schema, self._reader, {})
        self._key = frozenset(schema.primary_key)
        self._table = ""

    def reads(self, name: str) -> bool:
        """Return True if a column of this name fills one of the table in the pipeline."""
        return self._reader.place(name) is not None

    def describe(self, relation: Relation, type_of: Callable[[int], SourceType]) -> None:
        """Take over a new description of the table, which holds from here on.

        :param relation: the table
        :param type_of: a function that returns the types of the database by their oids
        :raises ConnectorFailure: when it no longer fits the table in the pipeline
        """
        columns = [(column.name, type_of(column.type_oid)) for column in relation.columns]
        self._table = f"{relation.schema}.{relation.name}"
        where = f"{self._where}: table {self._table}, as it is now"
        mapped = mapped_columns(self._schema, self._reader, columns, where, self._invalid)
        self._mapping = RowMapping(self._schema, self._reader, mapped)

    def entries(self, message: Insert | Update | Delete) -> list[Entry]:
        """Return the changes of a message.

        :raises ConnectorFailure: when the server does not say which row it was
        """
        match message:
            case Insert():
                return [self._make_insert(message.new)]
            case Delete():
                return [self._make_delete(message.old, message.old_is_key)]
            case Update():
                return self._update(message) if self._key else self._replace(message)

    def parse(self, entries: Iterable[Entry], size_bytes: int, where: str) -> Parsed:
        """Return changes as the rows of a chunk.

        :param entries: the changes
        :param size_bytes: the number of bytes in which they were sent
        :param where: the place of malformed ones, for messages
        """
        self._reader.begin()
        buffer = RowBuffer(self._schema)
        add_to(buffer, entries, where)
        return buffer.finish(size_bytes, 0)

    def replacing(self, parsed: Parsed | None) -> Parsed:
        """Return the same rows, with a truncation of the table before them.

        :param parsed: some rows; None for none
        """
        given = parsed or Parsed(None, 0, (), 0, 0, 0)
        rows = changes_schema(self._schema).empty_table() if given.changes is None else given.changes.rows
        return replace(given, changes=TableChanges(self._schema.name, rows, truncates=True))

    def _update(self, message: Update) -> list[Entry]:
        """Return the changes of an update in a table with a key: the new row replaces the old one."""
        new = _complete_row(message.new, message.old)
        is_whole = Missing.UNCHANGED not in new or not any(new[number] is Missing.UNCHANGED for number in self._mapping.mapped)
        if message.old is None or not self._moves(message.old, new):
            if is_whole:
                return [self._make_insert(new)]
            try:
                row, given = self._reader.update(self._mapping.record(new))
            except RecordProblem as problem:
                told = f"{self._mapping.shown_key(new)}{problem}"
                if self._mapping.key_row(new) is None:
                    return [told]
                # No row is better than the old one, which is no longer true.
                return [told, RawChange(Op.DELETE, _texts(new), self._mapping)]
            return [ChangedRow(Op.UPDATE, row, given)]
        goes = self._make_delete(message.old, message.old_is_key)
        if is_whole:
            return [goes, self._make_insert(new)]
        missing = ", ".join(
            repr(each.column.name) for number, each in self._mapping.mapped.items() if new[number] is Missing.UNCHANGED
        )
        unknown = (
            f"{self._mapping.shown_key(new)}an update changed the key of a row and not its large column {missing}, which was not "
            f"sent; let the server send old rows as a whole: ALTER TABLE {self._table} REPLICA IDENTITY FULL"
        )
        return [goes, unknown]

    def _replace(self, message: Update) -> list[Entry]:
        """Return the changes of an update in a table without a key: the old row is deleted, the new one inserted."""
        if message.old is None:
            raise self._nameless()
        return [self._make_delete(message.old, message.old_is_key), self._make_insert(_complete_row(message.new, message.old))]

    def _make_insert(self, new: TupleData) -> RawChange:
        return RawChange(Op.INSERT, _texts(new), self._mapping)

    def _make_delete(self, old: TupleData, is_key: bool) -> RawChange:
        if is_key and not self._key:
            raise self._nameless()
        return RawChange(Op.DELETE, _texts(old), self._mapping)

    def _moves(self, old: TupleData, new: TupleData) -> bool:
        """Return True if the update changes the key of the table in the pipeline."""
        return any(old[number] != new[number] for number, each in self._mapping.mapped.items() if each.column.name in self._key)

    def _nameless(self) -> ConnectorFailure:
        return ConnectorFailure(
            f"{self._where}: an update or delete of {self._table} does not say all of the old row, and the table in the "
            f"pipeline has no primary key. Write ALTER TABLE {self._table} REPLICA IDENTITY FULL, clear the pipeline and start "
            "it again."
        )


def _complete_row(new: TupleData, old: TupleData | None) -> TupleData:
    """Return a new row, with values that were not sent taken from the old row as far as it has them."""
    if old is None or Missing.UNCHANGED not in new:
        return new
    # A value that is too large to be sent is not NULL, but an old row with only its key has NULL in other columns.
    return [before if value is Missing.UNCHANGED and before is not None else value for value, before in zip(new, old, strict=True)]


def _texts(values: TupleData) -> TupleData:
    """Return values in which none is missing, except for columns that nobody reads."""
    if Missing.UNCHANGED not in values:
        return values
    return [None if value is Missing.UNCHANGED else value for value in values]
