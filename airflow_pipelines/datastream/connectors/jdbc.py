"""A sink that runs a database statement for each element."""

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
from airflow_pipelines.systems.databases.urls import shown_url

# Quoted text and names, comments, question marks, and colons, which stand for parameters in SQLAlchemy's texts.
_TOKENS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\?|:", re.DOTALL)


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """The connection to a database. Use its ``JdbcConnectionOptionsBuilder`` to make one.

    Each text can contain references, such as ``${secret:NAME}`` and ``${env:NAME}``, which are replaced by their values where the
    connection is opened.

    :param url: a URL of SQLAlchemy, or a JDBC URL that names host, port and database
    :param user_name: the user
    :param password: the password; never shown
    :param driver_name: the Java driver; kept, without effect, because the driver follows from the URL
    """

    url: str
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    driver_name: str | None = None

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions({shown_url(self.url)!r}, user_name={self.user_name!r})"

    def references(self) -> Sequence[str]:
        """Return the references in the options.

        :returns: references such as ``${secret:NAME}``
        """
        return tuple(named_references(self.url, self.user_name, self.password))

    def resolved(self) -> JdbcConnectionOptions:
        """Return the options with the values of their references.

        :returns: options that must never be stored or shown
        :raises StreamProgramError: if a reference has no value
        """
        url = without_references(self.url)
        user, password = (None if text is None else without_references(text) for text in (self.user_name, self.password))
        return JdbcConnectionOptions(url, user, password, self.driver_name)

    class JdbcConnectionOptionsBuilder:
        """A builder of options."""

        def __init__(self) -> None:
            self._url: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None
            self._driver_name: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL of the database.

            :param url: a URL such as ``jdbc:postgresql://host:5432/db``, or a URL of SQLAlchemy; may contain references
            :returns: this object
            """
            self._url = checks.text("url", url)
            return self

        @no_effect("the driver of Python follows from the URL")
        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the Java class of the driver.

            :param driver_name: the name of the class
            :returns: this object
            """
            self._driver_name = checks.text("driver_name", driver_name)
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user.

            :param user_name: the name, or a reference to it, such as ``${env:NAME}``
            :returns: this object
            """
            self._user_name = checks.text("user_name", user_name)
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password.

            :param password: the password, or a reference to it, such as ``${secret:NAME}``; all readers of the pipeline see a
                password that is written in the program
            :returns: this object
            """
            if not isinstance(password, str):
                raise TypeError(f"password takes a str, not a {type(password).__name__}")
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """Make the options.

            :returns: the options
            :raises ValueError: if the URL is missing or cannot be translated
            """
            if self._url is None:
                raise ValueError("The connection needs a URL: call with_url('jdbc:postgresql://host:5432/db') before build()")
            # Importing SQLAlchemy takes most of a second, so only programs with a database import it.
            from airflow_pipelines.systems.databases.engines import database_url

            options = JdbcConnectionOptions(self._url, self._user_name, self._password, self._driver_name)
            if not any(named_references(self._url)):
                database_url(self._url, self._user_name, self._password)
            return options


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The batching and retries of writes to a database. Use :meth:`builder` to make one.

    :param batch_interval_ms: milliseconds after which elements are written, checked when an element arrives; 0 for any time
    :param batch_size: the number of elements after which they are written
    :param max_retries: the maximum number of retries of a transaction that failed because of the connection or a lock

    >>> from airflow_pipelines.datastream.connectors import JdbcExecutionOptions
    >>> JdbcExecutionOptions.builder().with_batch_size(100).with_batch_interval_ms(200).build()
    JdbcExecutionOptions(batch_interval_ms=200, batch_size=100, max_retries=3)
    """

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def __post_init__(self) -> None:
        checks.integer("batch_interval_ms", self.batch_interval_ms, 0)
        checks.integer("batch_size", self.batch_size, 1)
        checks.integer("max_retries", self.max_retries, 0)

    class JdbcExecutionOptionsBuilder:
        """A builder of options."""

        def __init__(self) -> None:
            self._values: dict[str, int] = {}

        def with_batch_interval_ms(self, batch_interval_ms: int) -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
            """Set the time after which elements are written.

            :param batch_interval_ms: milliseconds; 0, the default, for any time
            :returns: this object
            """
            self._values["batch_interval_ms"] = checks.integer("batch_interval_ms", batch_interval_ms, 0)
            return self

        def with_batch_size(self, batch_size: int) -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
            """Set the number of elements after which they are written.

            :param batch_size: the number; 5000 by default
            :returns: this object
            """
            self._values["batch_size"] = checks.integer("batch_size", batch_size, 1)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.JdbcExecutionOptionsBuilder:
            """Set the maximum number of retries of a transaction.

            :param max_retries: the number; 3 by default
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
        """Return a builder for options.

        :returns: the builder
        """
        return JdbcExecutionOptions.JdbcExecutionOptionsBuilder()


@dataclass(frozen=True)
class JdbcSink(Sink):
    """A sink that runs a statement for each element. Use :meth:`sink` to make one.

    Elements are written at least once: those since the last checkpoint are written again after a failure. A statement that inserts
    or updates by the primary key is idempotent.

    :param statement: the statement in SQLAlchemy's notation of parameters
    :param type_info: type of the rows
    :param connection: the options of the connection
    :param execution: the batching and retries of writes

    >>> import sqlite3, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, Types
    >>> from airflow_pipelines.datastream.connectors import JdbcConnectionOptions, JdbcSink
    >>> env, sale = StreamExecutionEnvironment.get_execution_environment(), Types.ROW([Types.STRING(), Types.INT()])
    >>> with tempfile.TemporaryDirectory() as folder, sqlite3.connect(f"{folder}/shop.db") as shop:
    ...     table = shop.execute("CREATE TABLE sales (fruit TEXT, number INT)")
    ...     options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{folder}/shop.db").build()
    ...     sink = JdbcSink.sink("INSERT INTO sales VALUES (?, ?)", sale, options)
    ...     end = env.from_collection([("pears", 3)], sale).add_sink(sink)
    ...     result = env.execute("sales")
    ...     shop.execute("SELECT * FROM sales").fetchall()
    [('pears', 3)]
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
        :param jdbc_connection_options: the options of the connection
        :param jdbc_execution_options: the batching and retries of writes; None for the defaults
        :returns: the sink
        :raises ValueError: if the number of fields differs from the number of question marks
        """
        statement, number = _name_parameters(checks.text("sql", sql))
        row_type = checks.instance("type_info", type_info, RowTypeInfo, "use Types.ROW([...])")
        fields = len(row_type.get_field_names())
        if number != fields:
            raise ValueError(f"The statement has {number} '?', and the rows have {fields} fields: {sql!r:.200}")
        hint = "use JdbcConnectionOptions.JdbcConnectionOptionsBuilder()"
        connection = checks.instance("jdbc_connection_options", jdbc_connection_options, JdbcConnectionOptions, hint)
        execution = jdbc_execution_options or JdbcExecutionOptions()
        return JdbcSink(statement, row_type, connection, checks.instance("jdbc_execution_options", execution, JdbcExecutionOptions))

    def references(self) -> Sequence[str]:
        """Return the references in the connection.

        :returns: references such as ``${secret:NAME}``
        """
        return self.connection.references()

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task.

        :param subtask: the task that writes
        :returns: its writer
        :raises StreamProgramError: if a reference has no value
        :raises ValueError: if the driver is not installed
        """
        from airflow_pipelines.datastream.connectors.jdbc_writer import JdbcWriter
        from airflow_pipelines.systems.databases.engines import database_engine

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


def _name_parameters(sql: str) -> tuple[str, int]:
    number = 0

    def name_parameter(match: re.Match[str]) -> str:
        nonlocal number
        if match[0] != "?":
            return match[0].replace(":", r"\:")
        number += 1
        return f":p{number - 1}"

    return _TOKENS.sub(name_parameter, sql), number
