"""The objects that a pipeline follows: a table, the publication that has it, and the slot that keeps the log for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.lsn import lsn_text, read_lsn
from airflow_pipelines.connectors.transports.postgresql.names import parts, quote_name, quoting_hint
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType, SourceTypes

_OTHER_LETTERS: Final = re.compile(r"[^a-z0-9_]+")
_IDENTITY: Final = """
SELECT c.relreplident::text, array(
    SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""
_PUBLISHED: Final = """
SELECT to_jsonb(t) -> 'attnames', to_jsonb(t) ->> 'rowfilter' FROM pg_publication_tables t
WHERE pubname = %s AND schemaname = %s AND tablename = %s
"""
_GENERATED: Final = "SELECT attname::text FROM pg_attribute WHERE attrelid = %s AND attgenerated <> '' AND NOT attisdropped"
_HAS_GENERATED: Final = 12_00_00
_PUBLISHES_GENERATED: Final = 18_00_00
"""The server versions from which on there are generated columns, and from which on a publication may have them."""
_SLOT: Final = """
SELECT s.plugin, s.database, s.confirmed_flush_lsn::text, coalesce(s.wal_status, ''), s.active_pid,
    a.application_name, host(a.client_addr)
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = %s
"""


def slot_name(pipeline: str, endpoint: str) -> str:
    """Return the name of the slot of an input, which is unique and recognisable.

    :param pipeline: the pipeline's id
    :param endpoint: ``relation.connector``
    """
    told = hashlib.sha256(f"{pipeline}/{endpoint}".encode()).hexdigest()[:12]
    readable = _OTHER_LETTERS.sub("_", endpoint.lower()).strip("_")
    return f"airflow_pipelines_{told}_{readable}"[:63].rstrip("_")


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """A table of a publication.

    :param schema: the schema of the table
    :param name: the name of the table
    :param publication: the publication
    :param oid: the oid of the table, which differs from that of a table of the same name that was made later
    :param columns: the columns that are published; None for all
    :param filter: the rows that are published, as SQL; None for all
    """

    schema: str
    name: str
    publication: str
    oid: int = 0
    columns: tuple[str, ...] | None = None
    filter: str | None = None

    @property
    def sql(self) -> str:
        """The name in SQL."""
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"

    @property
    def source(self) -> str:
        """The text after FROM in a query of the published rows."""
        return self.sql if self.filter is None else f"{self.sql} WHERE {self.filter}"

    def columns_of_rows(self, connection: psycopg.Connection[Any]) -> list[tuple[str, SourceType]]:
        """Return the names and types of the columns that are published.

        :param connection: a connection to the database
        """
        types = SourceTypes(connection)
        described = connection.execute(f"SELECT * FROM {self.sql} LIMIT 0".encode()).description or ()
        return [
            (column.name, types.of(column.type_code)) for column in described if self.columns is None or column.name in self.columns
        ]

    @classmethod
    def find(cls, connection: psycopg.Connection[Any], table: str, publication: str, where: str) -> FollowedTable:
        """Return the table with a name in SQL notation.

        :param connection: a connection to the database
        :param table: a name such as ``sales.orders``
        :param publication: the publication that must have it
        :param where: the connector, for messages
        :raises ConnectorFailure: when there is no such table or publication, or the one does not have the other
        """
        try:
            schema, name = parts(table)
        except ValueError as error:
            raise ConnectorFailure(f"{where}: option 'source_table': {error}") from error
        schema = schema or "public"
        followed = cls(schema, name, publication)
        oid = connection.execute("SELECT to_regclass(%s)::oid", (followed.sql,)).fetchone()
        if oid is None or oid[0] is None:
            raise ConnectorFailure(
                f"{where}: there is no table {schema}.{name}. Correct the option 'source_table', or make it again."
                f"{quoting_hint(table)}"
            )
        if connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (publication,)).fetchone() is None:
            raise ConnectorFailure(
                f"{where}: there is no publication {publication!r}. Make it: CREATE PUBLICATION {quote_name(publication)} FOR "
                f"TABLE {followed.sql}"
            )
        row = connection.execute(_PUBLISHED, (publication, schema, name)).fetchone()
        if row is None:
            raise ConnectorFailure(
                f"{where}: publication {publication!r} does not have table {schema}.{name}. Add it: ALTER PUBLICATION "
                f"{quote_name(publication)} ADD TABLE {followed.sql}; a partitioned table also needs SET "
                "(publish_via_partition_root = true)"
            )
        columns, condition = row
        return cls(schema, name, publication, oid[0], None if columns is None else tuple(columns), condition)

    def check_identity(self, connection: psycopg.Connection[Any], key: tuple[str, ...], where: str) -> None:
        """Check that updates and deletes identify their row.

        :param connection: a connection to the database
        :param key: the primary key of the table in the pipeline
        :param where: the connector, for messages
        :raises ConnectorFailure: when they do not
        """
        row = connection.execute(
            "SELECT pubupdate OR pubdelete FROM pg_publication WHERE pubname = %s", (self.publication,)
        ).fetchone()
        if row == (False,):
            return
        answer = connection.execute(_IDENTITY, (self.schema, self.name)).fetchone()
        identity, columns = answer or ("n", [])
        if identity == "f":
            return
        full = f"Let the server say all of old rows: ALTER TABLE {self.sql} REPLICA IDENTITY FULL"
        if not key:
            raise ConnectorFailure(
                f"{where}: the table in the pipeline has no primary key, and updates and deletes of {self.schema}.{self.name} "
                f"do not say all of their old rows. Give it a primary key. Or: {full}"
            )
        missing = sorted({name.lower() for name in key} - {name.lower() for name in columns})
        if missing:
            told = ", ".join(columns) or "nothing"
            raise ConnectorFailure(
                f"{where}: the primary key of the table in the pipeline has {', '.join(missing)}, and updates and deletes of "
                f"{self.schema}.{self.name} say of old rows: {told}. {full}"
            )

    def check_generated(self, connection: psycopg.Connection[Any], is_wanted: Callable[[str], bool], where: str) -> None:
        """Check that no generated column is read: the server sends these with the first rows, but not with changes.

        :param connection: a connection to the database
        :param is_wanted: a function that returns True if the table in the pipeline has a column of a name
        :param where: the connector, for messages
        :raises ConnectorFailure: when one is read
        """
        version = connection.info.server_version
        if version < _HAS_GENERATED:
            return
        generated = [name for (name,) in connection.execute(_GENERATED, (self.oid,)).fetchall()]
        if version >= _PUBLISHES_GENERATED and self.columns is not None:
            generated = [name for name in generated if name not in self.columns]
        read = [repr(name) for name in generated if is_wanted(name)]
        if not read:
            return
        publish = f", or ALTER PUBLICATION {quote_name(self.publication)} SET (publish_generated_columns = stored)"
        raise ConnectorFailure(
            f"{where}: {', '.join(read)} of {self.schema}.{self.name} is generated, and the server does not send generated columns "
            "with changes. Leave it out of the table in the pipeline and compute it in a view"
            + (publish if version >= _PUBLISHES_GENERATED else "")
            + "."
        )


class ChangesLostError(ConnectorFailure):
    """The failure when changes since a place are lost; all rows of the table can still be read."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot as the server has it.

    :param name: the name of the slot
    :param confirmed: the place up to which nothing need be sent again
    :param is_lost: True if the server has removed log that the slot needs
    :param holder: the user of the slot; None for nobody
    :param is_foreign: True if it is of another database, or for another kind of reader
    """

    name: str
    confirmed: int
    is_lost: bool
    holder: str | None
    is_foreign: bool

    @classmethod
    def find(cls, connection: psycopg.Connection[Any], name: str) -> Slot | None:
        """Return the slot of a name, or None if there is none."""
        row = connection.execute(_SLOT, (name,)).fetchone()
        if row is None:
            return None
        plugin, database, confirmed, status, pid, application, address = row
        holder = (
            None
            if pid is None
            else f"process {pid} of the server, for {application or 'a client'} at {address or 'its own machine'}"
        )
        foreign = plugin != "pgoutput" or database != connection.info.dbname
        return cls(name, 0 if confirmed is None else read_lsn(confirmed), status == "lost", holder, foreign)

    def check_usable(self, where: str) -> None:
        """Check that changes can be read from the slot.

        :param where: the connector, for messages
        :raises ConnectorFailure: when they cannot; :class:`TransientConnectorFailure` while somebody else reads them
        """
        if self.is_foreign:
            raise ConnectorFailure(
                f"{where}: slot {self.name} is not one of pgoutput in this database. Name another one in option 'slot'."
            )
        if self.is_lost:
            raise ChangesLostError(
                f"{where}: slot {self.name} has lost changes, because the server keeps no more of its log "
                f"(max_slot_wal_keep_size). Drop it, SELECT pg_drop_replication_slot('{self.name}'), clear the pipeline and "
                "start it again, so that it reads the whole table."
            )
        if self.holder is not None:
            raise TransientConnectorFailure(
                f"{where}: slot {self.name} is used by somebody else ({self.holder}). It is tried again until it is free; end "
                "the other one, or name another slot in option 'slot'."
            )

    def check_has(self, place: int, where: str) -> None:
        """Check that all changes after a place are still there.

        :param place: the place where reading resumes
        :param where: the connector, for messages
        :raises ConnectorFailure: when some are gone
        """
        if self.confirmed > place:
            raise ChangesLostError(
                f"{where}: slot {self.name} has been moved on to {lsn_text(self.confirmed)}, and the pipeline goes on at "
                f"{lsn_text(place)}: the changes between are gone. That is so after a start from an older checkpoint, or when "
                "somebody else has read from the slot. Clear the pipeline and start it again, so that it reads the whole table."
            )
