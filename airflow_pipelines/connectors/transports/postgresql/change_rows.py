"""What a server says was changed, as changes of a table of the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.formats.defaults import Now
from airflow_pipelines.connectors.formats.parsed import RecordProblem
from airflow_pipelines.connectors.formats.rows import RowReader
from airflow_pipelines.connectors.transports.postgresql.pgoutput import Delete, Insert, Missing, Relation, TupleData, Update, Value
from airflow_pipelines.connectors.transports.postgresql.row_mapping import MappedColumn, mapped_columns
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType
from airflow_pipelines.engine.changes import Op
from airflow_pipelines.engine.schema import RelationSchema


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A change of the table.

    :param op: what the row is
    :param row: its values in column order
    :param given: the columns that an update sets; None for a whole row
    """

    op: Op
    row: list[Any]
    given: list[str] | None = None


class ChangeRows:
    """Makes rows of a server's messages about one table.

    :param schema: of the table in the pipeline
    :param now: the clock that a DEFAULT may read
    :param type_of: gives the types of the database by their numbers
    :param where: for messages
    """

    def __init__(self, schema: RelationSchema, now: Now, type_of: Callable[[int], SourceType], where: str) -> None:
        self._schema = schema
        self._reader = RowReader(schema, now=now)
        self._type_of = type_of
        self._where = where
        self._mapped: dict[int, MappedColumn] = {}
        self._identity: frozenset[int] = frozenset()
        self._key = frozenset(schema.primary_key)
        self._table = ""

    def describe(self, relation: Relation) -> None:
        """The table is another one from here on.

        :raises ConnectorFailure: when it no longer fits the table in the pipeline
        """
        columns = [(column.name, self._type_of(column.type_oid)) for column in relation.columns]
        self._table = f"{relation.schema}.{relation.name}"
        self._mapped = mapped_columns(self._schema, self._reader, columns, f"{self._where}: table {self._table}, as it is now")
        self._identity = frozenset(number for number, column in enumerate(relation.columns) if column.of_identity)

    def begin(self) -> None:
        """Begin another batch of changes, whose DEFAULTs have a time of their own."""
        self._reader.begin()

    def rows(self, message: Insert | Update | Delete) -> list[ChangedRow]:
        """The changes that a message tells of.

        :raises RecordProblem: when a value does not fit, or is not there
        :raises ConnectorFailure: when the server does not say which row it was
        """
        match message:
            case Insert():
                return [ChangedRow(Op.INSERT, self._reader.row(self._record(message.new)))]
            case Delete():
                return [self._deleted(message.old, message.old_is_key)]
            case Update():
                return self._updated(message) if self._key else self._replaced(message)

    def _updated(self, message: Update) -> list[ChangedRow]:
        """An update in a table with a key: the new row takes the place of the old one."""
        new = _completed(message.new, None if message.old_is_key else message.old)
        record = self._record(new)
        is_whole = not any(new[number] is Missing.UNCHANGED for number in self._mapped)
        if message.old is None or not self._moves(message.old, new):
            if is_whole:
                return [ChangedRow(Op.INSERT, self._reader.row(record))]
            row, given = self._reader.update(record)
            return [ChangedRow(Op.UPDATE, row, given)]
        if not is_whole:
            raise RecordProblem(
                "an update changed the key of a row and not one of its large values, which was not sent; let the server send "
                "old rows as a "
                f"whole: ALTER TABLE {self._table} REPLICA IDENTITY FULL"
            )
        return [self._deleted(message.old, message.old_is_key), ChangedRow(Op.INSERT, self._reader.row(record))]

    def _replaced(self, message: Update) -> list[ChangedRow]:
        """An update in a table without a key: the old row goes, the new one comes."""
        if message.old is None:
            raise self._nameless()
        new = _completed(message.new, message.old)
        return [self._deleted(message.old, message.old_is_key), ChangedRow(Op.INSERT, self._reader.row(self._record(new)))]

    def _deleted(self, old: TupleData, is_key: bool) -> ChangedRow:
        if not self._key:
            if is_key:
                raise self._nameless()
            return ChangedRow(Op.DELETE, self._reader.row(self._record(old)))
        numbers = self._identity if is_key else frozenset(range(len(old)))
        record = {
            mapped.column.name: mapped.value(_text(old[number])) for number, mapped in self._mapped.items() if number in numbers
        }
        return ChangedRow(Op.DELETE, self._reader.key(record))

    def _record(self, values: TupleData) -> dict[str, Any]:
        """What JSON would have, by column of the table in the pipeline; nothing for values that were not sent."""
        return {
            mapped.column.name: mapped.value(value)
            for number, mapped in self._mapped.items()
            if (value := values[number]) is not Missing.UNCHANGED
        }

    def _moves(self, old: TupleData, new: TupleData) -> bool:
        """Whether the key of the table in the pipeline is another one than before."""
        return any(old[number] != new[number] for number, mapped in self._mapped.items() if mapped.column.name in self._key)

    def _nameless(self) -> ConnectorFailure:
        return ConnectorFailure(
            f"{self._where}: an update or delete of {self._table} does not say all of the old row, and the table in the "
            "pipeline has no primary "
            f"key. Write ALTER TABLE {self._table} REPLICA IDENTITY FULL, clear the pipeline and start it again."
        )


def _completed(new: TupleData, old: TupleData | None) -> TupleData:
    """A new row with values that were not sent, because they are those of the old one."""
    if old is None or Missing.UNCHANGED not in new:
        return new
    return [before if value is Missing.UNCHANGED else value for value, before in zip(new, old, strict=True)]


def _text(value: Value) -> str | None:
    return None if value is Missing.UNCHANGED else value
