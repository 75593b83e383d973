"""Connections to PostgreSQL that never wait without limit. Imported only if the store is in PostgreSQL."""

from __future__ import annotations

import time
from typing import Any, Final, TypeVar

import psycopg

T = TypeVar("T")

CONNECT_S: Final = 10
"""The number of seconds that connecting may take if the database's URL does not set ``connect_timeout``."""
ANSWER_S: Final = 30.0
"""The number of seconds to wait for an answer.

libpq itself waits for ever for a server, or a proxy before it, that holds the connection open.
"""


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server does not answer in time."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer, within the limit.

        :param gen: psycopg's generator of the wait
        :param args: passed on to psycopg
        :param options: passed on to psycopg; ``timeout`` is the number of seconds to wait, by default :data:`ANSWER_S`
        :raises psycopg.OperationalError: when no answer comes in time
        """
        began = time.monotonic()
        options["timeout"] = options.get("timeout") or ANSWER_S
        try:
            return super().wait(gen, *args, **options)
        except psycopg.OperationalError as error:
            if time.monotonic() - began < options["timeout"]:
                raise
            # The connection cannot be used any more: its answer may still arrive.
            self.close()
            raise psycopg.OperationalError(f"the server has not answered for {options['timeout']:g} s") from error


def connect(*args: Any, **options: Any) -> PatientConnection:
    """Open a connection; the parameters are those of psycopg."""
    options.setdefault("connect_timeout", CONNECT_S)
    return PatientConnection.connect(*args, **options)
