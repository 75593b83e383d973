"""A source that reads a table or a query of a database, ordered by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.time import Duration
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo
from airflow_pipelines.datastream.connectors.base import Source
from airflow_pipelines.datastream.connectors.jdbc import JdbcConnectionOptions
from airflow_pipelines.datastream.connectors.jdbc_relation import JdbcRelation
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sources import SourceReader
from airflow_pipelines.systems.databases.urls import shown_url

_OPTIONS_HINT = "use JdbcConnectionOptions.JdbcConnectionOptionsBuilder()"


@dataclass(frozen=True)
class JdbcRanges:
    """Ranges of a numeric column by which a table is read. The first and the last one have no outer bound.

    :param column: the column of whole numbers
    :param lower: the lower bound of the ranges
    :param upper: the upper bound of the ranges
    :param number: the number of ranges
    """

    column: str
    lower: int
    upper: int
    number: int

    def bounds(self) -> list[tuple[int | None, int | None]]:
        """Return the first number of each range, and the first one behind it; None for no bound."""
        width = self.upper - self.lower
        cuts = [self.lower + width * part // self.number for part in range(1, self.number)]
        return list(zip([None, *cuts], [*cuts, None], strict=True))


@dataclass(frozen=True)
class JdbcSource(Source):
    """A source that reads the rows of a table or a query, as ``Row``. Use :meth:`builder` to make one.

    Rows are ordered by columns that together are unique and not NULL, such as the primary key. The values of these columns in the
    last row that was read are the position, so that every row is read once, also across failures. Changes to rows that were read
    already, their removal, and rows that appear before the position have no effect.

    :param relation: the table or query, with its settings
    :param start_after: values of the order columns behind which reading begins; None to begin with the first row
    :param ranges: the ranges that are read independently; None for one
    """

    relation: JdbcRelation
    start_after: tuple[Any, ...] | None = field(default=None, repr=False)
    ranges: JdbcRanges | None = None
    gives_timestamps = False

    @staticmethod
    def builder() -> JdbcSourceBuilder:
        """Return a builder for a source.

        :returns: the builder
        """
        return JdbcSourceBuilder()

    @property
    def is_bounded(self) -> bool:
        """True unless it polls for new rows."""
        return self.relation.poll_interval is None

    @property
    def places(self) -> Sequence[str]:
        """The table or the query, and its database."""
        relation = self.relation
        what = f"the table {relation.table}" if relation.query is None else f"the query {relation.query!r}"
        return (f"{what} of {shown_url(relation.connection.url)}",)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows.

        :returns: the type
        """
        return self.relation.type_info

    def references(self) -> Sequence[str]:
        """Return the references in the connection.

        :returns: references such as ``${secret:NAME}``
        """
        return self.relation.connection.references()

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Return the ranges, or one part with all rows.

        :param parallelism: without effect
        :returns: the column and its bounds, or None for all rows
        """
        if self.ranges is None:
            return [None]
        return [(self.ranges.column, low, high) for low, high in self.ranges.bounds()]

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Return a reader of a part.

        :param split: a part from :meth:`splits`
        :param position: the order columns and their values in the last row that was read, None for the beginning
        :returns: the reader
        :raises StreamProgramError: if the position is of other columns, or the driver is not installed
        """
        from airflow_pipelines.datastream.connectors.jdbc_reader import JdbcReader

        if position is not None and position[0] != self.relation.order_columns:
            raise StreamProgramError(
                f"The JDBC source was read in the order of {', '.join(position[0])}, and is to go on in that of"
                f" {', '.join(self.relation.order_columns)}: keep these columns, or give the source"
                " another uid, so that it begins anew."
            )
        return JdbcReader(self.relation, split, self.start_after if position is None else position[1])


class JdbcSourceBuilder:
    """A builder of sources that read a database.

    >>> from airflow_pipelines.datastream import Types
    >>> from airflow_pipelines.datastream.connectors import JdbcConnectionOptions, JdbcSource
    >>> options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:shop.db").build()
    >>> sale = Types.ROW_NAMED(["id", "fruit"], [Types.LONG(), Types.STRING()])
    >>> builder = JdbcSource.builder().set_connection_options(options).set_table("sales").set_type_info(sale)
    >>> source = builder.set_order_columns("id").start_after(1000).build()
    >>> source.is_bounded, source.get_produced_type() == sale
    (True, True)
    """

    def __init__(self) -> None:
        self._connection: JdbcConnectionOptions | None = None
        self._type: RowTypeInfo | None = None
        self._order: tuple[str, ...] = ()
        self._table: str | None = None
        self._query: str | None = None
        self._start_after: tuple[Any, ...] | None = None
        self._ranges: JdbcRanges | None = None
        self._interval: float | None = None
        self._fetch_size = 1000

    def set_connection_options(self, jdbc_connection_options: JdbcConnectionOptions) -> JdbcSourceBuilder:
        """Set the connection to the database.

        :param jdbc_connection_options: the options
        :returns: this object
        """
        self._connection = checks.instance("jdbc_connection_options", jdbc_connection_options, JdbcConnectionOptions, _OPTIONS_HINT)
        return self

    def set_table(self, table: str) -> JdbcSourceBuilder:
        """Set the table or view to read.

        :param table: the name, or ``schema.name``
        :returns: this object
        """
        self._table = checks.text("table", table)
        return self

    def set_query(self, query: str) -> JdbcSourceBuilder:
        """Set the query whose result is read. It runs as a subquery, so it must not have ``ORDER BY`` or ``;``.

        :param query: the query
        :returns: this object
        """
        self._query = checks.text("query", query).strip().removesuffix(";")
        return self

    def set_type_info(self, type_info: RowTypeInfo) -> JdbcSourceBuilder:
        """Set the columns to read, and their types.

        :param type_info: ``Types.ROW_NAMED(columns, types)``
        :returns: this object
        """
        self._type = checks.instance("type_info", type_info, RowTypeInfo, "use Types.ROW_NAMED(columns, types)")
        return self

    def set_order_columns(self, *columns: str) -> JdbcSourceBuilder:
        """Set the columns by which rows are ordered.

        :param columns: columns that together are unique and not NULL; rows that appear later must have greater values
        :returns: this object
        """
        self._order = tuple(checks.text("columns", column) for column in columns)
        if len(set(self._order)) != len(self._order):
            raise ValueError(f"An order column comes twice: {', '.join(self._order)}")
        return self

    def start_after(self, *values: Any) -> JdbcSourceBuilder:
        """Set the values of the order columns behind which reading begins. The default is the first row.

        :param values: one value for each order column
        :returns: this object
        """
        if any(value is None for value in values):
            raise ValueError("start_after takes values that are not None: rows are not read in the order of NULL")
        self._start_after = values
        return self

    def set_splits(self, column: str, lower: int, upper: int, number: int) -> JdbcSourceBuilder:
        """Read ranges of a column independently, in parallel by the tasks of the source. Rows keep their order within a range.

        Rows below the lower bound and rows without a number belong to the first range, and rows from the upper bound on to the
        last.

        :param column: the column of whole numbers
        :param lower: the lower bound of the ranges
        :param upper: the upper bound of the ranges
        :param number: the number of ranges, which have the same width
        :returns: this object
        """
        checks.text("column", column)
        checks.integer("lower", lower)
        checks.integer("number", number, 1)
        checks.integer("upper", upper, lower + number)
        self._ranges = JdbcRanges(column, lower, upper, number)
        return self

    def monitor_continuously(self, poll_interval: Duration) -> JdbcSourceBuilder:
        """Keep polling for new rows.

        :param poll_interval: the time between two polls, more than 0
        :returns: this object
        """
        interval = checks.instance("poll_interval", poll_interval, Duration, "use Duration.of_seconds(...)")
        self._interval = checks.integer("poll_interval in ms", interval.to_millis(), 1) / 1000
        return self

    def set_fetch_size(self, fetch_size: int) -> JdbcSourceBuilder:
        """Set the number of rows that a query fetches.

        :param fetch_size: the number; 1000 by default
        :returns: this object
        """
        self._fetch_size = checks.integer("fetch_size", fetch_size, 1)
        return self

    def build(self) -> JdbcSource:
        """Make the source.

        :returns: the source
        :raises ValueError: if something is missing, or does not fit
        """
        if self._connection is None:
            raise ValueError("The source needs a connection: call set_connection_options(...) before build()")
        if (self._table is None) == (self._query is None):
            raise ValueError("The source reads either a table or a query: call set_table('orders') or set_query('SELECT ...')")
        if self._type is None:
            raise ValueError("The source needs the type of its rows: call set_type_info(Types.ROW_NAMED(columns, types))")
        if not self._order:
            raise ValueError(
                "The source needs columns that are unique together, in whose order it reads: call set_order_columns('id')"
            )
        if self._start_after is not None and len(self._start_after) != len(self._order):
            raise ValueError(f"start_after() takes one value for each order column: {', '.join(self._order)}")
        relation = JdbcRelation(
            self._connection, self._type, self._order, self._table, self._query, self._interval, self._fetch_size
        )
        return JdbcSource(relation, self._start_after, self._ranges)
