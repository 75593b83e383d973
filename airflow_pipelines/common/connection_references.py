"""The values of ``${conn:CONN_ID.FIELD}``: fields of Airflow connections, as Airflow has them when it is asked."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from airflow_pipelines.common.secret_files import SecretError, SecretFiles

FIELDS: Final = ("host", "port", "login", "password", "schema", "conn_type", "uri")
"""The fields of every connection. A field of its extras is written ``extra.NAME``."""
_FIELD: Final = re.compile(rf"(?P<id>[^${{}}]+?)\.(?P<field>{'|'.join(FIELDS)}|extra\.(?P<extra>[^${{}}]+))")
FRESH_S: Final = 30.0
"""The number of seconds for which an answer of Airflow is reused, since a text may name several fields of a connection."""
ASK_S: Final = 60.0
"""The number of seconds that Airflow may take to answer."""
_MARK: Final = "airflow-pipelines-connection:"
_ASKING: Final = f"""
import json, sys
from airflow.sdk import Connection
try:
    found = Connection.get(sys.argv[1])
    answer = {{name: getattr(found, name) for name in ("host", "port", "login", "password", "schema", "conn_type")}}
    answer["uri"] = found.get_uri()
    answer.update({{"extra." + name: value for name, value in found.extra_dejson.items()}})
except Exception as error:
    # Only its kind: the message of a secrets backend may quote what it read.
    answer = {{"failed": type(error).__name__}}
print()
print("{_MARK}" + json.dumps(answer, default=lambda value: None))
"""
_VARIABLES: Final = ("AIRFLOW_HOME", "AIRFLOW_CONFIG", "AIRFLOW__", "AIRFLOW_CONN_")


class ConnectionProblem(LookupError):
    """The error of a connection field that is not available. The message gives the reason and never contains a value."""


@dataclass(frozen=True, slots=True)
class ConnectionField:
    """A reference to a field of a connection.

    :param conn_id: the id of the connection
    :param field: one of :data:`FIELDS`, or ``extra``
    :param extra: the name within the extras
    """

    conn_id: str
    field: str
    extra: str | None = None

    @property
    def name(self) -> str:
        """The field's name as it is written after the connection's id."""
        return self.field if self.extra is None else f"extra.{self.extra}"

    @classmethod
    def of(cls, text: str) -> ConnectionField:
        """Parse ``CONN_ID.FIELD``.

        :raises ConnectionProblem: when the text does not have that form
        """
        parsed = _FIELD.fullmatch(text)
        if parsed is None:
            known = ", ".join(FIELDS)
            raise ConnectionProblem(f"write ${{conn:CONN_ID.FIELD}}, with one of the fields {known}, or extra.NAME")
        return cls(parsed["id"], "extra" if parsed["extra"] else parsed["field"], parsed["extra"])


class AirflowRefusal(Exception):
    """The error of a connection that Airflow does not provide. The message contains no value of it."""


class AirflowConnections:
    """A reader of connections: from the secrets that a task has handed over, else from Airflow.

    Airflow is asked only if it is installed and configured.
    """

    def __init__(
        self, allowed: Sequence[str], secrets: SecretFiles | None = None, ask: Callable[[str], Mapping[str, str]] | None = None
    ) -> None:
        """Create the reader; nothing is read yet.

        :param allowed: the ids that connectors may name; ``*`` stands for any characters
        :param secrets: the secrets that tasks have handed over
        :param ask: a function that returns the fields of a connection; None for :func:`ask_airflow`
        """
        self._ask = ask or ask_airflow
        self._answers: dict[str, tuple[float, Mapping[str, str]]] = {}
        self._lock = threading.Lock()
        self._allowed = tuple(allowed)
        self._secrets = secrets

    def value(self, text: str) -> str:
        """Return the value of a connection's field.

        :param text: ``CONN_ID.FIELD``
        :raises ConnectionProblem: when the connection or the field is not available here
        """
        wanted = ConnectionField.of(text)
        if not any(fnmatchcase(wanted.conn_id, pattern) for pattern in self._allowed):
            raise ConnectionProblem(
                f"connectors may not read the connection {wanted.conn_id!r} here; the setting connector_connections of the service "
                "says which they may"
            )
        handed_over = self._read_handed_over(wanted)
        return self._read_from_airflow(wanted) if handed_over is None else handed_over

    def _read_handed_over(self, wanted: ConnectionField) -> str | None:
        if self._secrets is None:
            return None
        try:
            return self._secrets.read(f"airflow/{wanted.conn_id}/{wanted.extra or wanted.field}")
        except SecretError:
            # It was not handed over; Airflow may have it.
            return None

    def _read_from_airflow(self, wanted: ConnectionField) -> str:
        hand_over = f"have the task that deploys the pipeline hand the connection over (secret_conn_ids=[{wanted.conn_id!r}])"
        if not _is_configured():
            raise ConnectionProblem(
                f"Airflow is not installed and configured where the pipeline runs; {hand_over}, or give the host AIRFLOW_HOME or "
                f"AIRFLOW_CONN_{wanted.conn_id.upper()}"
            )
        try:
            fields = self._fetch_fields(wanted.conn_id)
        except AirflowRefusal as error:
            raise ConnectionProblem(
                f"Airflow gives no connection {wanted.conn_id!r} here ({error}); make it, or {hand_over}"
            ) from None
        value = fields.get(wanted.name)
        if value is None:
            raise ConnectionProblem(f"the connection {wanted.conn_id!r} has no {wanted.name}")
        return value

    def _fetch_fields(self, conn_id: str) -> Mapping[str, str]:
        """Return the fields of a connection; Airflow is asked at most once in :data:`FRESH_S` seconds."""
        with self._lock:
            asked, fields = self._answers.get(conn_id, (-math.inf, {}))
            if time.monotonic() - asked > FRESH_S:
                fields = self._ask(conn_id)
                self._answers[conn_id] = (time.monotonic(), fields)
            return fields


def ask_airflow(conn_id: str) -> dict[str, str]:
    """Return the fields of a connection that have a value.

    Airflow is asked in a separate process, since importing it sets up logging and database models for the whole process.

    :param conn_id: the id of the connection
    :raises AirflowRefusal: when Airflow does not provide it
    """
    command = [sys.executable, "-c", _ASKING, conn_id]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=False)
    except subprocess.TimeoutExpired:
        raise AirflowRefusal(f"it has not answered for {ASK_S:g} s") from None
    answers = [line.removeprefix(_MARK) for line in asked.stdout.splitlines() if line.startswith(_MARK)]
    if not answers:
        raise AirflowRefusal(f"its process ended with exit code {asked.returncode}")
    answer: dict[str, Any] = json.loads(answers[-1])
    if "failed" in answer:
        raise AirflowRefusal(answer["failed"])
    return {name: str(value) for name, value in answer.items() if isinstance(value, str | int | float) and str(value) != ""}


def _is_configured() -> bool:
    """Return True if Airflow is installed and set up here. Importing it where it is not set up would create a folder for it."""
    set_up = any(name.startswith(_VARIABLES) for name in os.environ) or (Path.home() / "airflow" / "airflow.cfg").is_file()
    return set_up and importlib.util.find_spec("airflow") is not None
