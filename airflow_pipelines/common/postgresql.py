"""Connections to PostgreSQL on which nobody waits without end. Imported only where the store is in PostgreSQL."""

from __future__ import annotations

import time
from typing import Any, Final, TypeVar

import psycopg

T = TypeVar("T")

CONNECT_S: Final = 10
"""How long a connection may take to come about, where the database's URL says nothing about it (``connect_timeout``)."""
ANSWER_S: Final = 30.0
"""How long an answer is waited for. libpq waits for ever for a server, or a proxy before it, that holds the connection open."""


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server does not answer in time."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer, within the limit.

        :param gen: psycopg's generator of the wait
        :param args: passed on to psycopg
        :param options: passed on to psycopg; ``timeout`` are the seconds to wait, :data:`ANSWER_S` without
        :raises psycopg.OperationalError: when there is none
        """
        began = time.monotonic()
        options["timeout"] = options.get("timeout") or ANSWER_S
        try:
            return super().wait(gen, *args, **options)
        except psycopg.OperationalError as error:
            if time.monotonic() - began < options["timeout"]:
                raise
            # Nobody knows what it is about to answer.
            self.close()
            raise psycopg.OperationalError(f"the server has not answered for {options['timeout']:g} s") from error


def connect(*args: Any, **options: Any) -> PatientConnection:
    """Open a connection; the parameters are those of psycopg."""
    options.setdefault("connect_timeout", CONNECT_S)
    return PatientConnection.connect(*args, **options)
