"""Connections to a server, and the messages when one cannot be had."""

from __future__ import annotations

import os
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
from airflow_pipelines.systems.databases.postgresql import advise, is_transient

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
        return said + end + advise(error, text, "'uri'")

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


def _without_text(error: psycopg.Error) -> Exception:
    """Return an error to name as the cause: its class, without its text, which may contain connection parameters."""
    return type(error)(error.sqlstate or "")
