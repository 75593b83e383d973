"""An output that writes a view to Redis: one value per row, under a key made from the columns of an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_pipelines.connectors.base import ConnectorFailure, OutputTransport, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.connectors.left_out import RowProblem, key_alone, parts_that_fit, problems_of, refusing
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.encode import encode_rows, json_texts
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.zsets import WEIGHT

if TYPE_CHECKING:
    import redis
    from redis.client import Pipeline

_NAME: Final = "redis_output"
_SCHEMES: Final = ("redis", "rediss", "unix")
_TIMEOUT_S: Final = 30.0
_STEPS: Final = "airflow_pipelines:steps:"
"""The prefix of the keys under which outputs keep their newest step."""


class RedisValue(StrEnum):
    """The form in which a row is kept."""

    JSON = "json"
    """A string with the row as a JSON object."""
    HASH = "hash"
    """A hash with a field for each column that is not NULL."""


class RedisOutputOptions(BaseModel):
    """The options of the transport.

    :param connection_string: ``redis://user:password@host:6379/0``; ``rediss`` for TLS, ``unix`` for a socket
    :param key_prefix: the prefix of all keys
    :param key_separator: the text between the values of the index's columns in a key
    :param value: the form in which a row is kept
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    connection_string: str = Field(min_length=1)
    key_prefix: str = ""
    key_separator: str = ":"
    value: RedisValue = RedisValue.JSON

    @field_validator("connection_string")
    @classmethod
    def _url(cls, value: str) -> str:
        if "${" not in value and urlsplit(value).scheme not in _SCHEMES:
            raise ValueError("a URL begins with redis://, rediss:// or unix://")
        return value


class RedisOutput:
    """An output that sets and deletes keys, some thousand at once, and writes the number of a step with the last of its keys.

    Setting or deleting a key twice has the same effect as once. So an interrupted step is complete once it was replayed.
    """

    def __init__(self, options: RedisOutputOptions, context: OutputContext) -> None:
        """Make an output that is not open yet.

        :param options: the server and the keys
        :param context: the context of the connector, with the view and the writer
        """
        self._options = options
        self._context = context
        self._steps_key = _STEPS + context.writer
        self._client: redis.Redis | None = None

    def open(self, resumed: bool) -> None:
        """Connect to the server.

        :param resumed: True if the step that the server has belongs to this pipeline's history
        :raises ConnectorFailure: when the server refuses it; :class:`TransientConnectorFailure` when it cannot be reached
        """
        import redis

        with self._failures("cannot connect"):
            self._client = redis.Redis.from_url(
                self._options.connection_string, socket_timeout=_TIMEOUT_S, socket_connect_timeout=10.0, decode_responses=True
            )
            self._client.ping()
            if not resumed:
                self._client.delete(self._steps_key)

    def committed_step(self) -> int | None:
        """Return the newest step that was written completely to the server."""
        with self._failures("cannot ask for the newest step"):
            kept = self._require_client().hget(self._steps_key, "step")
        return None if kept is None else int(str(kept))

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step.

        :returns: the number of rows that were set or deleted, and the number of bytes of their keys and values
        :raises ConnectorFailure: when they cannot be written
        :raises OvertakenError: when a later run of the pipeline writes
        """
        fence = self._context.fence
        if fence is not None:
            fence.check()
        count = size = 0
        with self._failures(f"cannot write step {step}"), self._require_client().pipeline(transaction=True) as commands:
            for table in changes.tables():
                if count:
                    self._execute(commands)
                for key, row in self._encode_fitting(table):
                    size += self._put(commands, key, row)
                    count += 1
            commands.hset(self._steps_key, mapping={"step": step, "epoch": 0 if fence is None else fence.epoch})
            self._execute(commands)
        return count, size

    def close(self) -> None:
        """Close the connection to the server."""
        if self._client is not None:
            self._client.close()

    def _require_client(self) -> redis.Redis:
        if self._client is None:
            raise ConnectorFailure(f"{_NAME} is not open")
        return self._client

    def _execute(self, commands: Pipeline) -> None:
        """Execute the collected commands at once, unless a later run of the pipeline has written."""
        fence = self._context.fence
        if fence is not None:
            fence.check()
            kept = self._require_client().hget(self._steps_key, "epoch")
            if kept is not None and int(str(kept)) > fence.epoch:
                raise ConnectorFailure(f"{_NAME}: a later run of the pipeline writes these keys; this one ends.")
        commands.execute()

    def _put(self, commands: Pipeline, key: str, row: str | None) -> int:
        if row is None:
            commands.delete(key)
            return len(key)
        if self._options.value is RedisValue.JSON:
            commands.set(key, row)
            return len(key) + len(row)
        fields = {name: _field(value) for name, value in jsontext.loads(row).items() if value is not None}
        # Remove fields that have become NULL.
        commands.delete(key)
        if fields:
            commands.hset(key, mapping=fields)
        return len(key) + sum(len(name) + len(text) for name, text in fields.items())

    def _encode_fitting(self, changes: pa.Table) -> Iterator[tuple[str, str | None]]:
        """Yield the same as :meth:`_rows` for the changes that can be encoded. A deleted row needs no more than its key."""

        def refuse(change: pa.Table, problem: RowProblem) -> pa.Table | None:
            is_delete = change.num_rows == 1 and change.column(WEIGHT)[0].as_py() < 0
            return key_alone(change, self._context.key) if is_delete else leave_out(change, problem)

        encoded = problems_of(lambda rows: list(self._rows(rows)))
        leave_out = refusing(encoded, self._context.left_out)
        for part in parts_that_fit(changes, encoded, refuse):
            yield from part

    def _rows(self, changes: pa.Table) -> Iterator[tuple[str, str | None]]:
        """Yield each row's key, and the row as JSON, or None for a deleted row. Skip the old rows of updates."""
        weights = python_values(changes.column(WEIGHT))
        updates = python_values(changes.column(UPDATE)) if UPDATE in changes.column_names else [False] * len(weights)
        rows = changes.drop_columns([name for name in (UPDATE, WEIGHT) if name in changes.column_names])
        parts = [_key_texts(rows.column(name)) for name in self._context.key]
        for weight, of_update, text, key in zip(weights, updates, encode_rows(rows), zip(*parts, strict=True), strict=True):
            if weight < 0 and of_update:
                continue
            yield self._options.key_prefix + self._options.key_separator.join(key), text if weight > 0 else None

    @contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        """Turn errors of the client library into those of a connector, without the password.

        :param doing: a text that says what cannot be done
        """
        from redis import exceptions

        try:
            yield
        except exceptions.RedisError as error:
            parts = urlsplit(self._options.connection_string)
            server = f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path
            text = str(error).rstrip(".")
            if parts.password:
                text = text.replace(parts.password, "***")
            message = f"{_NAME}: {doing} ({server}): {text}.{_advice(error)}"
            raise (TransientConnectorFailure if _is_transient(error) else ConnectorFailure)(message) from type(error)()


def _is_transient(error: Exception) -> bool:
    from redis import exceptions

    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return False
    passing = (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.BusyLoadingError,
        exceptions.ReadOnlyError,
        exceptions.OutOfMemoryError,
        exceptions.TryAgainError,
        exceptions.MasterDownError,
    )
    return isinstance(error, passing) or str(error).startswith(("MISCONF", "OOM", "EXECABORT"))


def _advice(error: Exception) -> str:
    from redis import exceptions

    if isinstance(error, exceptions.AuthenticationError):
        return " Check user and password in 'connection_string'."
    if isinstance(error, exceptions.NoPermissionError):
        return " Let the user do that (ACL SETUSER); the output needs SET, DEL, HSET, HGET, MULTI and EXEC."
    if isinstance(error, exceptions.OutOfMemoryError) or str(error).startswith("OOM"):
        return " The server is full: raise its maxmemory."
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
        return " Check host and port in 'connection_string', and whether the server runs."
    return ""


def _key_texts(values: pa.ChunkedArray) -> list[str]:
    return [_field(jsontext.loads(text)) for text in json_texts(values)]


def _field(value: Any) -> str:
    """Return a value as a text: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else jsontext.dumps(value)


def _open(options: RedisOutputOptions, context: OutputContext) -> OutputTransport:
    return RedisOutput(options, context)


REDIS_OUTPUT: Final = OutputDefinition(
    name=_NAME,
    options=RedisOutputOptions,
    open=_open,
    guarantee=Guarantee.EXACTLY_ONCE,
    needs_index=True,
    mirrors=lambda _: True,
    packages=("redis",),
    extra="redis",
)
