"""The replication protocol of a server: a connection that streams the changes of a slot."""

from __future__ import annotations

import re
import select
import struct
import threading
import time
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import pq

from airflow_pipelines.connectors.transports.postgresql.lsn import lsn_text, read_lsn
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions

_DATA: Final = struct.Struct(">cQQQ")
_KEEPALIVE: Final = struct.Struct(">cQQB")
_OF_DATA, _OF_KEEPALIVE = b"w"[0], b"k"[0]
_STATUS: Final = struct.Struct(">cQQQQB")
_STATUS_EVERY_S: Final = 10.0
"""The maximum interval, in seconds, between status messages; a server takes a reader that is silent for a minute for dead."""
_NO_RIGHT: Final = re.compile(r"replication role|permission denied")
_EPOCH_S: Final = 946_684_800
"""The beginning of the year 2000, from which the protocol counts."""


@dataclass(frozen=True, slots=True)
class NewSlot:
    """A slot that was just made.

    :param place: the place in the log from which on it has changes
    :param snapshot: the name of the database snapshot at that place, valid until the connection is used again
    """

    place: int
    snapshot: str


class ReplicationConnection:
    """A connection that speaks the replication protocol.

    :param sessions: the sessions with the connection parameters
    """

    def __init__(self, sessions: Sessions) -> None:
        """Connect.

        :raises psycopg.Error: when that cannot be done
        """
        try:
            # A direct connection of libpq would block all threads of the process until the server answers.
            self._connection = psycopg.connect(sessions.conninfo(replication="database"), autocommit=True)
        except psycopg.OperationalError as error:
            raise psycopg.errors.InsufficientPrivilege(str(error)) if _NO_RIGHT.search(str(error)) else error from None
        self._pgconn = self._connection.pgconn
        self._using = threading.Lock()
        self._received = 0
        self._told_at = 0.0
        self._told = 0

    def system(self) -> str:
        """Return the identifier that distinguishes this server from all others."""
        return self._row("IDENTIFY_SYSTEM")[0]

    def create_slot(self, name: str) -> NewSlot:
        """Make a slot that stays until it is dropped.

        :param name: the name of the slot, which needs no quotes
        """
        _, place, snapshot, _ = self._row(f'CREATE_REPLICATION_SLOT "{name}" LOGICAL pgoutput EXPORT_SNAPSHOT')
        return NewSlot(read_lsn(place), snapshot)

    def start(self, slot: str, publication: str, place: int) -> None:
        """Begin to stream.

        :param slot: the name of the slot
        :param publication: the name of the publication
        :param place: the place in the log; transactions that were committed before it are left out
        """
        names = '"' + publication.replace('"', '""') + '"'
        options = f"proto_version '1', publication_names '{names.replace(chr(39), chr(39) * 2)}'"
        self._run(f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(place)} ({options})', pq.ExecStatus.COPY_BOTH)
        self._received = place

    @property
    def received(self) -> int:
        """The place in the log up to which everything has been received."""
        return self._received

    def next(self, durable: int, timeout_s: float) -> bytes | None:
        """Return the next message of the output plugin, or None if none came.

        :param durable: the place up to which nothing need be sent again
        :param timeout_s: the time, in seconds, to wait for a message
        :raises psycopg.Error: when the connection is lost, or the server cannot go on
        """
        deadline = time.monotonic() + timeout_s
        while True:
            with self._using:
                self._tell(durable)
                data = self._receive()
            if data is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                select.select([self._pgconn.socket], [], [], left)
                continue
            message = self._process(data, durable)
            if message is not None:
                return message

    def close(self, durable: int = 0) -> None:
        """Close the connection; may be called from another thread, and more than once.

        :param durable: the place up to which nothing need be sent again
        """
        with self._using:
            if self._pgconn.status == pq.ConnStatus.OK and durable > self._told and self._received:
                self._send_status(durable)
            self._pgconn.finish()

    def _receive(self) -> memoryview | None:
        """Return the data that has already arrived, or None if there is none."""
        size, data = self._pgconn.get_copy_data(1)
        if size == 0:
            self._pgconn.consume_input()
            size, data = self._pgconn.get_copy_data(1)
        if size == 0:
            return None
        if size < 0:
            raise self._error(self._pgconn.get_result())
        return data

    def _process(self, data: memoryview, durable: int) -> bytes | None:
        if data[0] == _OF_DATA:
            _, begin, end, _ = _DATA.unpack_from(data)
            self._received = max(self._received, begin, end)
            return bytes(data[_DATA.size :])
        if data[0] == _OF_KEEPALIVE:
            _, end, _, answer = _KEEPALIVE.unpack_from(data)
            self._received = max(self._received, end)
            if answer:
                with self._using:
                    self._send_status(durable)
        return None

    def _tell(self, durable: int) -> None:
        if durable > self._told or time.monotonic() - self._told_at >= _STATUS_EVERY_S:
            self._send_status(durable)

    def _send_status(self, durable: int) -> None:
        clock = int((time.time() - _EPOCH_S) * 1_000_000)
        self._pgconn.put_copy_data(_STATUS.pack(b"r", self._received, durable, durable, clock, 0))
        self._pgconn.flush()
        self._told, self._told_at = durable, time.monotonic()

    def _row(self, command: str) -> list[str]:
        result = self._run(command, pq.ExecStatus.TUPLES_OK)
        return [(result.get_value(0, column) or b"").decode() for column in range(result.nfields)]

    def _run(self, command: str, expected: pq.ExecStatus) -> pq.abc.PGresult:
        result = self._pgconn.exec_(command.encode())
        if result.status != expected:
            raise self._error(result)
        return result

    def _error(self, result: pq.abc.PGresult | None) -> psycopg.Error:
        if result is None or result.status != pq.ExecStatus.FATAL_ERROR:
            text = self._pgconn.error_message.decode(errors="replace").strip()
            return psycopg.OperationalError(text or "the server has ended the stream")
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        text = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(errors="replace").strip()
        try:
            return psycopg.errors.lookup(state)(text)
        except KeyError:
            return psycopg.OperationalError(text)
