"""A sink that runs a statement of a database for each element."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo
from airflow_pipelines.datastream.connectors.base import Sink
from airflow_pipelines.streams.references import named_references, without_references
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo

# Quoted text and names, comments, question marks, and colons, which stand for parameters in SQLAlchemy's texts.
_TOKENS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\?|:", re.DOTALL)


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """How a database is reached. Made with its ``JdbcConnectionOptionsBuilder``.

    Each text may have references, as ``${secret:NAME}`` and ``${env:NAME}``, which get their values where the database is opened.

    :param url: a URL of SQLAlchemy, or of JDBC where it names host, port and database
    :param user_name: who connects
    :param password: the password; never shown
    :param driver_name: kept; the driver follows from the URL
    """

    url: str
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    driver_name: str | None = None

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions({shown_url(self.url)!r}, user_name={self.user_name!r})"

    def references(self) -> Sequence[str]:
        """The references that the options name.

        :returns: such as ``${secret:NAME}``
        """
        return tuple(named_references(self.url, self.user_name, self.password))

    def resolved(self) -> JdbcConnectionOptions:
        """The options with values in the places of their references.

        :returns: what is never to be kept or shown
        :raises StreamProgramError: when a reference has no value
        """
        url = without_references(self.url)
        user, password = (None if text is None else without_references(text) for text in (self.user_name, self.password))
        return JdbcConnectionOptions(url, user, password, self.driver_name)

    class JdbcConnectionOptionsBuilder:
        """Makes the options."""

        def __init__(self) -> None:
            self._url: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None
            self._driver_name: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set where the database is.

            :param url: such as ``jdbc:postgresql://host:5432/db``, or a URL of SQLAlchemy; may have references
            :returns: this object
            """
            self._url = checks.text("url", url)
            return self

        @no_effect("the driver of Python follows from the URL")
        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the class of the driver in Java.

            :param driver_name: its name
            :returns: this object
            """
            self._driver_name = checks.text("driver_name", driver_name)
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set who connects.

            :param user_name: the name, or a reference to it, such as ``${env:NAME}``
            :returns: this object
            """
            self._user_name = checks.text("user_name", user_name)
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password.

            :param password: the password, or a reference to it, such as ``${secret:NAME}``: what a program has in clear is shown to
                all readers of its pipeline
            :returns: this object
            """
            if not isinstance(password, str):
                raise TypeError(f"password takes a str, not a {type(password).__name__}")
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """Make the options.

            :returns: the options
            :raises ValueError: without a URL, or with one that cannot be translated
            """
            if self._url is None:
                raise ValueError("The connection needs a URL: call with_url('jdbc:postgresql://host:5432/db') before build()")
            # SQLAlchemy takes most of a second to import, which only programs with a database shall wait for.
            from airflow_pipelines.datastream.connectors.jdbc_writer import database_url

            options = JdbcConnectionOptions(self._url, self._user_name, self._password, self._driver_name)
            if not any(named_references(self._url)):
                database_url(self._url, self._user_name, self._password)
            return options


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """When elements are written to a database. Made with :meth:`builder`.

    :param batch_interval_ms: milliseconds after which they are, looked at when an element comes; 0 for any time
    :param batch_size: after how many elements they are
    :param max_retries: how often a transaction is tried again that failed for the connection or a lock
    """

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def __post_init__(self) -> None:
        checks.integer("batch_interval_ms", self.batch_interval_ms, 0)
        checks.integer("batch_size", self.batch_size, 1)
        checks.integer("max_retries", self.max_retries, 0)

    class JdbcExecutionOptionsBuilder:
        """Makes the options."""

        def __init__(self) -> None:
            self._values: dict[str, int] = {}

        def with_batch_interval_ms(self, batch_interval_ms: int) -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
            """Set after which time elements are written.

            :param batch_interval_ms: milliseconds; 0, the default, for any time
            :returns: this object
            """
            self._values["batch_interval_ms"] = checks.integer("batch_interval_ms", batch_interval_ms, 0)
            return self

        def with_batch_size(self, batch_size: int) -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
            """Set after how many elements they are written.

            :param batch_size: 5000 by default
            :returns: this object
            """
            self._values["batch_size"] = checks.integer("batch_size", batch_size, 1)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
            """Set how often a transaction is tried again.

            :param max_retries: 3 by default
            :returns: this object
            """
            self._values["max_retries"] = checks.integer("max_retries", max_retries, 0)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Make the options.

            :returns: the options
            """
            return JdbcExecutionOptions(**self._values)

    @staticmethod
    def builder() -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
        """Begin the options.

        :returns: the builder
        """
        return JdbcExecutionOptions.JdbcExecutionOptionsBuilder()


@dataclass(frozen=True)
class JdbcSink(Sink):
    """Runs a statement for each element. Made with :meth:`sink`.

    Elements are written at least once: those since the last checkpoint are written again after a failure. A statement that
    inserts or updates by the primary key makes that unnoticeable.

    :param statement: the statement in SQLAlchemy's notation of parameters
    :param type_info: type of the rows
    :param connection: how the database is reached
    :param execution: when elements are written
    """

    statement: str
    type_info: RowTypeInfo
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Make the sink.

        :param sql: the statement, with a ``?`` for each field of the rows
        :param type_info: type of the rows
        :param jdbc_connection_options: how the database is reached
        :param jdbc_execution_options: when elements are written
        :returns: the sink
        :raises ValueError: when the rows have more or fewer fields than the statement has question marks
        """
        statement, number = _named_parameters(checks.text("sql", sql))
        row_type = checks.instance("type_info", type_info, RowTypeInfo, "use Types.ROW([...])")
        fields = len(row_type.get_field_names())
        if number != fields:
            raise ValueError(f"The statement has {number} '?', and the rows have {fields} fields: {sql!r:.200}")
        hint = "use JdbcConnectionOptions.JdbcConnectionOptionsBuilder()"
        connection = checks.instance("jdbc_connection_options", jdbc_connection_options, JdbcConnectionOptions, hint)
        execution = jdbc_execution_options or JdbcExecutionOptions()
        return JdbcSink(statement, row_type, connection, checks.instance("jdbc_execution_options", execution, JdbcExecutionOptions))

    def references(self) -> Sequence[str]:
        """The references of the connection.

        :returns: such as ``${secret:NAME}``
        """
        return self.connection.references()

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Begin to write.

        :param subtask: which task writes
        :returns: its writer
        :raises StreamProgramError: when a reference has no value
        :raises ValueError: when the driver is not installed
        """
        from airflow_pipelines.datastream.connectors.jdbc_writer import JdbcWriter, database_engine

        options = self.connection.resolved()
        engine = database_engine(options.url, options.user_name, options.password)
        execution = self.execution
        return JdbcWriter(
            engine,
            self.statement,
            self.type_info.converter(),
            execution.batch_size,
            execution.batch_interval_ms,
            execution.max_retries,
        )


def shown_url(url: str) -> str:
    """A URL as messages may show it: users, passwords and parameters may be secret.

    :param url: of JDBC or SQLAlchemy
    :returns: where the database is
    """
    return re.split("[?;]", re.sub(r"//.*@", "//***@", url))[0]


def _named_parameters(sql: str) -> tuple[str, int]:
    number = 0

    def named(match: re.Match[str]) -> str:
        nonlocal number
        if match[0] != "?":
            return match[0].replace(":", r"\:")
        number += 1
        return f":p{number - 1}"

    return _TOKENS.sub(named, sql), number
