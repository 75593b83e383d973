"""Connections to a server, and the messages when one cannot be had."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.options import ConnectionOptions

CONNECT_S: Final = 10
"""The timeout for making a connection, in seconds."""
_SETTINGS: Final = {
    # Values come as texts; these settings make them independent of the server's configuration.
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "client_encoding": "UTF8",
    # A pipeline may read and write for any length of time.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_KEEPALIVE: Final = {"keepalives_idle": "20", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000"}
_TRANSIENT: Final = ("08", "53", "57", "40", "55006", "55P03")
"""The beginnings of codes of errors that go away by themselves: a lost connection, a server that starts or is full, a conflict."""
_OF_ROWS: Final = ("22", "23", "44", "54", "P0001")
"""The beginnings of codes of errors that come from a row.

They are about its values, about a constraint, a partition or a limit that it does not fit, or raised by a trigger of the table.
"""


class Sessions:
    """A maker of connections according to the options of a connector.

    :param transport: the name of the connector's transport, for messages
    :param options: the options for the connection to the server
    """

    def __init__(self, transport: str, options: ConnectionOptions) -> None:
        self._transport = transport
        self._options = options
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def conninfo(self, **more: str) -> str:
        """Return the parameters with which libpq connects.

        :param more: further parameters
        :raises ConnectorFailure: when the URI is none
        """
        try:
            given = conninfo_to_dict(self._options.uri)
        except psycopg.ProgrammingError as error:
            # Neither it nor its cause is shown: both may quote the password.
            reason = "uri is not a connection URI, such as postgresql://user:password@host:5432/database"
            raise ConnectorFailure(f"{self._transport}: {reason}") from _without_text(error)
        settings = " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in _SETTINGS.items())
        asked = str(given.pop("options", "") or "")
        defaults = {"connect_timeout": str(CONNECT_S), "application_name": "airflow-pipelines", **_KEEPALIVE}
        own = {**defaults, **given, **self._ssl(), **more}
        return make_conninfo("", **{**own, "options": f"{asked} {settings}".strip()})

    @property
    def server(self) -> str:
        """The server and the database, without user and password."""
        try:
            given = conninfo_to_dict(self._options.uri)
        except psycopg.ProgrammingError:
            return "the server"
        return f"{given.get('host', 'localhost')}:{given.get('port', '5432')}/{given.get('dbname', given.get('user', ''))}"

    def connect(self, **more: str) -> psycopg.Connection[Any]:
        """Return a connection in which each statement is a transaction, unless it begins one.

        :param more: further parameters of libpq
        :raises ConnectorFailure: when there is none to be had
        """
        conninfo = self.conninfo(**more)
        with self.failures("cannot connect"):
            return psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)

    @contextmanager
    def failures(self, doing: str) -> Iterator[None]:
        """Turn errors of the server into those of a connector, with what to do.

        :param doing: a text that says what cannot be done, for messages
        :raises ConnectorFailure: for an error of the server; :class:`TransientConnectorFailure` when it may go away by itself
        """
        try:
            yield
        except psycopg.Error as error:
            text = self.message(doing, error)
            failure = TransientConnectorFailure if is_transient(error) else ConnectorFailure
            raise failure(text) from _without_text(error)

    def message(self, doing: str, error: psycopg.Error) -> str:
        """Return a message about an error, without the password.

        :param doing: a text that says what cannot be done
        :param error: the error of the client library
        """
        return f"{self._transport}: {doing} ({self.server}): {self.reason(error)}"

    def reason(self, error: psycopg.Error) -> str:
        """Return the message of the server and what to do, without the password.

        :param error: the error of the client library
        """
        text = " ".join((error.diag.message_primary or str(error)).split())
        detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
        said = self._redact(text + detail)
        end = "" if said.endswith("?") else "."
        return f"{said}{end}{_advice(error, text)}"

    def _redact(self, text: str) -> str:
        try:
            password = conninfo_to_dict(self._options.uri).get("password")
        except psycopg.ProgrammingError:
            password = None
        return text.replace(str(password), "***").rstrip(".") if password else text.rstrip(".")

    def _ssl(self) -> dict[str, str]:
        options = self._options
        files = {
            "sslrootcert": self._file("ca.pem", options.ssl_ca_pem, options.ssl_ca_location),
            "sslcert": self._file("client.pem", options.ssl_client_pem, options.ssl_client_location),
            "sslkey": self._file("client.key", options.ssl_client_key, options.ssl_client_key_location),
        }
        parameters = {name: file for name, file in files.items() if file is not None}
        if "sslrootcert" in parameters:
            parameters["sslmode"] = "verify-full" if options.verify_hostname else "verify-ca"
        return parameters

    def _file(self, name: str, text: str | None, location: str | None) -> str | None:
        """Return the file of a certificate or key, since the client library reads it only from a file."""
        if text is None:
            return location
        if self._folder is None:
            # Only this user may read the folder.
            self._folder = tempfile.TemporaryDirectory(prefix="airflow-pipelines-ssl-")
        path = Path(self._folder.name) / name
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)


def break_off(connection: psycopg.Connection[Any]) -> None:
    """Break a connection that another thread waits for, which gets an error.

    :param connection: the connection; its user has to close it
    """
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)


def is_transient(error: psycopg.Error) -> bool:
    """Return True if an error goes away by itself, so that a retry makes sense.

    :param error: the error of the client library
    """
    state = error.sqlstate
    if state is None:
        # The server was not reached, or the connection broke, unless the message shows that the login was refused.
        refused = re.search(r"authentication failed|no password supplied|does not exist|no pg_hba|certificate|SSL", str(error))
        return isinstance(error, psycopg.OperationalError) and refused is None
    return state.startswith(_TRANSIENT)


def is_of_rows(error: psycopg.Error) -> bool:
    """Return True if an error is that of a row, so that the server takes the others.

    :param error: the error of the client library
    """
    return (error.sqlstate or "").startswith(_OF_ROWS)


def may_pass_after_others(error: psycopg.Error) -> bool:
    """Return True if the server may take the row after others: a key that another has or does not have yet, or a trigger.

    :param error: an error for which :func:`is_of_rows` is True
    """
    return error.sqlstate in {"23503", "23505", "23P01", "P0001"}


def column_of(error: psycopg.Error) -> str | None:
    """Return the column that an error is about, or None if the server does not say so.

    :param error: the error of the client library
    """
    if error.diag.column_name:
        return str(error.diag.column_name)
    match = re.search(r"^COPY .*, line \d+, column (.+?)(?:: |$)", error.diag.context or "", re.MULTILINE | re.DOTALL)
    return None if match is None else match[1]


def _advice(error: psycopg.Error, text: str) -> str:
    state = error.sqlstate or ""
    if state in {"28P01", "28000"} or "authentication failed" in text or "no password supplied" in text:
        return " Check user and password in 'uri', and what the server's pg_hba.conf allows."
    if state == "3D000" or ("database" in text and "does not exist" in text):
        return " Check the database in 'uri'."
    if "wal_level" in text:
        return " Set wal_level = logical in the server's configuration, and restart it."
    if "replication role" in text or "WAL sender" in text:
        return " Let the user in 'uri' do that: ALTER ROLE ... REPLICATION."
    if state == "42P01":
        return " Make it again with the columns that it had, or correct its name in the connector's options."
    if state == "53100":
        return " Make room on the server's disk."
    if state in {"22001", "22003"}:
        return " Make the column wider (ALTER TABLE ... ALTER COLUMN ... TYPE ...), or cast in the view."
    if state == "42501":
        return " Give the user in 'uri' the right to it."
    if state == "" and isinstance(error, psycopg.OperationalError):
        return " Check host and port in 'uri', and whether the server runs and can be reached from the machine of the pipeline."
    return ""


def _without_text(error: psycopg.Error) -> Exception:
    """Return an error to name as the cause: its class, without its text, which may contain connection parameters."""
    return type(error)(error.sqlstate or "")
