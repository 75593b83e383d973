"""Errors of PostgreSQL: those that pass by themselves, those of single rows, and what to do about the others.

Codes are those of appendix A of PostgreSQL's documentation.
"""

from __future__ import annotations

import re
from typing import Final

import psycopg

_TRANSIENT: Final = ("08", "53", "57", "40", "55006", "55P03")
"""The beginnings of codes of errors that go away by themselves: a lost connection, a server that starts or is full, a conflict."""
_OF_ROWS: Final = ("22", "23", "44", "54", "P0001")
"""The beginnings of codes of errors that come from a row.

They are about its values, about a constraint, a partition or a limit that it does not fit, or raised by a trigger of the table.
"""
_REFUSED: Final = re.compile(
    r"authentication failed|no password supplied|does not exist|no pg_hba|certificate|does not support SSL|sslmode"
    r"|SSL error: .*(alert|wrong version number|unsupported protocol|no protocols available)"
)
"""The parts of messages without a code that show a refusal. A connection by TLS that breaks has "SSL" in its messages, too."""
_NAMES: Final = re.compile(r'"[^"]*"')
"""The names of hosts, users and databases in messages."""


def is_transient(error: psycopg.Error) -> bool:
    """Return True if an error goes away by itself, so that a retry makes sense.

    :param error: the error of the client
    """
    state = error.sqlstate
    if state is None:
        # The server was not reached, or the connection broke, unless the message shows that the connection was refused.
        return isinstance(error, psycopg.OperationalError) and _REFUSED.search(_NAMES.sub("", str(error))) is None
    return state.startswith(_TRANSIENT)


def is_of_rows(error: psycopg.Error) -> bool:
    """Return True if an error is that of a row, so that the server takes the others.

    :param error: the error of the client
    """
    return (error.sqlstate or "").startswith(_OF_ROWS)


def may_pass_after_others(error: psycopg.Error) -> bool:
    """Return True if the server may take the row after others: a key that another has or does not have yet, or a trigger.

    :param error: an error for which :func:`is_of_rows` is True
    """
    return error.sqlstate in {"23503", "23505", "23P01", "P0001"}


def column_of(error: psycopg.Error) -> str | None:
    """Return the column that an error is about, or None if the server does not say so.

    :param error: the error of the client
    """
    if error.diag.column_name:
        return str(error.diag.column_name)
    match = re.search(r"^COPY .*, line \d+, column (.+?)(?:: |$)", error.diag.context or "", re.MULTILINE | re.DOTALL)
    return None if match is None else match[1]


def advise(error: psycopg.Error, text: str, where: str) -> str:
    """Return sentences about what to do, with a blank before them; an empty text where nothing is known.

    :param error: the error
    :param text: its message
    :param where: the place where user, server and database were given, such as the name of an option
    """
    state = error.sqlstate or ""
    if state in {"28P01", "28000"} or "authentication failed" in text or "no password supplied" in text:
        return f" Check user and password in {where}, and what the server's pg_hba.conf allows."
    if state == "3D000" or ("database" in text and "does not exist" in text):
        return f" Check the database in {where}."
    if "wal_level" in text:
        return " Set wal_level = logical in the server's configuration, and restart it."
    if "replication role" in text or "WAL sender" in text:
        return f" Let the user in {where} do that: ALTER ROLE ... REPLICATION."
    if state == "42P01":
        return " Make it again with the columns that it had, or correct its name where it is given."
    if state == "53100":
        return " Make room on the server's disk."
    if state in {"22001", "22003"}:
        return " Make the column wider (ALTER TABLE ... ALTER COLUMN ... TYPE ...), or cast in the view."
    if state == "42501":
        return f" Give the user in {where} the right to it."
    if state == "" and isinstance(error, psycopg.OperationalError):
        return f" Check host and port in {where}, and whether the server runs and can be reached from the machine of the pipeline."
    return ""
