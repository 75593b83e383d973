"""What a server says was changed, as changes of a table of the pipeline."""

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
    """Makes changes of a server's messages about one table.

    :param schema: of the table in the pipeline
    :param now: the clock that a DEFAULT may read
    :param where: for messages
    :param invalid: what becomes of values that the type of their column does not have
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
        """Tell whether a column of a name fills one of the table in the pipeline."""
        return self._reader.place(name) is not None

    def describe(self, relation: Relation, type_of: Callable[[int], SourceType]) -> None:
        """The table is another one from here on.

        :param relation: the table
        :param type_of: gives the types of the database by their numbers
        :raises ConnectorFailure: when it no longer fits the table in the pipeline
        """
        columns = [(column.name, type_of(column.type_oid)) for column in relation.columns]
        self._table = f"{relation.schema}.{relation.name}"
        where = f"{self._where}: table {self._table}, as it is now"
        mapped = mapped_columns(self._schema, self._reader, columns, where, self._invalid)
        self._mapping = RowMapping(self._schema, self._reader, mapped)

    def entries(self, message: Insert | Update | Delete) -> list[Entry]:
        """The changes that a message tells of.

        :raises ConnectorFailure: when the server does not say which row it was
        """
        match message:
            case Insert():
                return [self._comes(message.new)]
            case Delete():
                return [self._goes(message.old, message.old_is_key)]
            case Update():
                return self._updated(message) if self._key else self._replaced(message)

    def parsed(self, entries: Iterable[Entry], size_bytes: int, where: str) -> Parsed:
        """Changes as the rows of a chunk.

        :param entries: the changes
        :param size_bytes: what they were sent as
        :param where: what malformed ones are at, for messages
        """
        self._reader.begin()
        buffer = RowBuffer(self._schema)
        add_to(buffer, entries, where)
        return buffer.finish(size_bytes, 0)

    def replacing(self, parsed: Parsed | None) -> Parsed:
        """The same rows, before which all that the table has goes.

        :param parsed: some rows; None for none
        """
        given = parsed or Parsed(None, 0, (), 0, 0, 0)
        rows = changes_schema(self._schema).empty_table() if given.changes is None else given.changes.rows
        return replace(given, changes=TableChanges(self._schema.name, rows, truncates=True))

    def _updated(self, message: Update) -> list[Entry]:
        """An update in a table with a key: the new row takes the place of the old one."""
        new = _completed(message.new, message.old)
        is_whole = Missing.UNCHANGED not in new or not any(new[number] is Missing.UNCHANGED for number in self._mapping.mapped)
        if message.old is None or not self._moves(message.old, new):
            if is_whole:
                return [self._comes(new)]
            try:
                row, given = self._reader.update(self._mapping.record(new))
            except RecordProblem as problem:
                told = f"{self._mapping.shown_key(new)}{problem}"
                if self._mapping.key_row(new) is None:
                    return [told]
                # Better no row than the one of before, which says what is not so any more.
                return [told, RawChange(Op.DELETE, _texts(new), self._mapping)]
            return [ChangedRow(Op.UPDATE, row, given)]
        goes = self._goes(message.old, message.old_is_key)
        if is_whole:
            return [goes, self._comes(new)]
        missing = ", ".join(
            repr(each.column.name) for number, each in self._mapping.mapped.items() if new[number] is Missing.UNCHANGED
        )
        unknown = (
            f"{self._mapping.shown_key(new)}an update changed the key of a row and not its large column {missing}, which was not "
            f"sent; let the server send old rows as a whole: ALTER TABLE {self._table} REPLICA IDENTITY FULL"
        )
        return [goes, unknown]

    def _replaced(self, message: Update) -> list[Entry]:
        """An update in a table without a key: the old row goes, the new one comes."""
        if message.old is None:
            raise self._nameless()
        return [self._goes(message.old, message.old_is_key), self._comes(_completed(message.new, message.old))]

    def _comes(self, new: TupleData) -> RawChange:
        return RawChange(Op.INSERT, _texts(new), self._mapping)

    def _goes(self, old: TupleData, is_key: bool) -> RawChange:
        if is_key and not self._key:
            raise self._nameless()
        return RawChange(Op.DELETE, _texts(old), self._mapping)

    def _moves(self, old: TupleData, new: TupleData) -> bool:
        """Whether the key of the table in the pipeline is another one than before."""
        return any(old[number] != new[number] for number, each in self._mapping.mapped.items() if each.column.name in self._key)

    def _nameless(self) -> ConnectorFailure:
        return ConnectorFailure(
            f"{self._where}: an update or delete of {self._table} does not say all of the old row, and the table in the "
            f"pipeline has no primary key. Write ALTER TABLE {self._table} REPLICA IDENTITY FULL, clear the pipeline and start "
            "it again."
        )


def _completed(new: TupleData, old: TupleData | None) -> TupleData:
    """A new row with values that were not sent, because they are those of the old one, as far as that one has them."""
    if old is None or Missing.UNCHANGED not in new:
        return new
    # A value that is large enough not to be sent is not NULL. A row that is told by its key alone has NULL elsewhere.
    return [before if value is Missing.UNCHANGED and before is not None else value for value, before in zip(new, old, strict=True)]


def _texts(values: TupleData) -> TupleData:
    """Values of which none is missing, but for columns that nobody reads."""
    if Missing.UNCHANGED not in values:
        return values
    return [None if value is Missing.UNCHANGED else value for value in values]
