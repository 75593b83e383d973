"""A reader of rows from a database with SQLAlchemy, page by page behind the last row that was read."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Date,
    DateTime,
    Dialect,
    FromClause,
    Select,
    Time,
    and_,
    case,
    column,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy import table as table_of
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.jdbc_relation import JdbcRelation
from airflow_pipelines.datastream.connectors.jdbc_writer import JDBC_RETRIES, TRANSIENT
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sources import Polled, SourceReader
from airflow_pipelines.systems.databases.engines import database_engine, explain_error
from airflow_pipelines.systems.databases.urls import shown_url


class _Decimals(TypeDecorator[Decimal]):
    """A type for decimals that also works for databases without them, such as SQLite, which return floats."""

    impl = NullType
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return a decimal of the digits that the database shows.

        Values that are not decimals are refused where the type is known.
        """
        del dialect
        try:
            return Decimal(str(value)) if isinstance(value, float | str) else value
        except InvalidOperation:
            return value


# Databases without temporal types store text, which SQLAlchemy converts if it knows the type.
_SQL_TYPES: dict[BasicType, type[TypeEngine[Any]]] = {
    BasicType.BIG_DEC: _Decimals,
    BasicType.SQL_DATE: Date,
    BasicType.SQL_TIME: Time,
    BasicType.SQL_TIMESTAMP: DateTime,
}


class JdbcReader(SourceReader):
    """A reader of one part of a table or query.

    :param relation: the table or query
    :param split: column and bounds of the part, None for all rows
    :param last: values of the order columns in the last row that was read, None for none
    :raises StreamProgramError: if the driver is not installed, or a reference of the connection has no value
    """

    def __init__(
        self, relation: JdbcRelation, split: tuple[str, int | None, int | None] | None, last: tuple[Any, ...] | None
    ) -> None:
        self._relation = relation
        self._last = self._given = last
        self._is_checked = False
        options = relation.connection.resolved()
        try:
            self._engine = database_engine(options.url, options.user_name, options.password)
        except ValueError as error:
            raise StreamProgramError(f"The JDBC source cannot reach {shown_url(options.url)}: {error}") from None
        self._convert = relation.type_info.converter()
        self._pages = _Pages(relation, split)
        self._waiting: deque[tuple[Any, tuple[Any, ...]]] = deque()
        self._next_look = 0.0
        self._is_at_end = False

    def poll(self, limit: int) -> Polled:
        """Return the next rows of the page that was fetched, or fetch the next page when it is due."""
        if not self._waiting and time.monotonic() >= self._next_look:
            self._fetch()
        values: list[Any] = []
        while self._waiting and len(values) < limit:
            value, self._given = self._waiting.popleft()
            values.append(value)
        return Polled(values, finished=self._relation.poll_interval is None and self._is_at_end and not self._waiting)

    def position(self) -> Any:
        """Return the order columns, and their values in the last row that was returned."""
        return None if self._given is None else (self._relation.order_columns, self._given)

    def close(self) -> None:
        """Dispose of the engine."""
        self._engine.dispose()

    def _fetch(self) -> None:
        if not self._is_checked:
            if self._run(self._pages.without_order()):
                self._refuse("has rows with NULL in them", "leave these out with set_query('SELECT ... WHERE ... IS NOT NULL')")
            self._is_checked = True
        size = self._relation.fetch_size
        rows = self._run(self._pages.after(self._last, size))
        new = self._pages.new(rows)
        keys = [key for _, key in new]
        # A row equal to the last one would be lost, and one that only seems greater would be read again and again.
        ties = [later for earlier, later in pairwise([self._last, *keys]) if later == earlier]
        if ties or len(rows) - len(new) > 1:
            self._refuse(
                "has several rows with the same values in them", "add a column that makes them unique, such as the primary key"
            )
        for row, key in new:
            self._waiting.append((self._convert(row), key))
        self._last = keys[-1] if keys else self._last
        self._is_at_end = len(rows) < self._pages.limit(size)
        if self._is_at_end:
            self._next_look = time.monotonic() + (self._relation.poll_interval or 0.0)

    def _run(self, statement: Select[Any]) -> Sequence[Sequence[Any]]:
        try:
            return JDBC_RETRIES.retrying(TRANSIENT)(self._rows, statement)
        except SQLAlchemyError as error:
            reason = explain_error(error, "the connection options", self._engine.url.password)
            raise StreamProgramError(
                f"The JDBC source cannot read {self._what()}: {reason} Check that the database is there, that"
                f" it has what is read, with the columns {', '.join(self._pages.columns)}, and that the user may read it."
            ) from None

    def _rows(self, statement: Select[Any]) -> Sequence[Sequence[Any]]:
        with self._engine.connect() as connection:
            return connection.execute(statement).fetchall()

    def _what(self) -> str:
        relation = self._relation
        what = f"table {relation.table!r}" if relation.query is None else f"query {relation.query!r:.200}"
        return f"the {what} of {shown_url(relation.connection.url)}"

    def _refuse(self, why: str, what_to_do: str) -> None:
        columns = ", ".join(self._relation.order_columns)
        raise StreamProgramError(
            f"The JDBC source reads {self._what()} in the order of {columns}, and it {why}, so it cannot know which it has read:"
            f" {what_to_do}."
        )


class _Pages:
    """The queries of a part, and the interpretation of their rows.

    :param relation: the table or query
    :param split: column and bounds of the part, None for all rows
    """

    def __init__(self, relation: JdbcRelation, split: tuple[str, int | None, int | None] | None) -> None:
        self.columns = relation.type_info.get_field_names()
        types = relation.type_info.get_field_types()
        self._values = [column(name, _sql_type(each)) for name, each in zip(self.columns, types, strict=True)]
        # Without types, because a position is compared as the driver returned it.
        self._order: list[ColumnElement[Any]] = [column(name) for name in relation.order_columns]
        self._from = _from(relation, {*self.columns, *relation.order_columns, *([split[0]] if split else [])})
        self._within = _within(split)

    def limit(self, size: int) -> int:
        """Return the maximum number of rows of a query. The last row that was read may be among them, and a duplicate of it."""
        return size + 2

    def after(self, last: tuple[Any, ...] | None, size: int) -> Select[Any]:
        """Return the query for the next rows, including the last one that was read if it still exists."""
        is_new: ColumnElement[Any] = literal(1) if last is None else case((self._behind(last, or_equal=False), 1), else_=0)
        key = [each.label(f"order_{number}") for number, each in enumerate(self._order)]
        statement = select(*self._values, *key, is_new.label("is_new")).select_from(self._from).where(*self._within)
        if last is not None:
            statement = statement.where(self._behind(last, or_equal=True))
        return statement.order_by(*self._order).limit(self.limit(size))

    def new(self, rows: Sequence[Sequence[Any]]) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Return values and order of the rows that were not read yet."""
        width = len(self._values)
        return [(tuple(row[:width]), tuple(row[width:-1])) for row in rows if row[-1]]

    def without_order(self) -> Select[Any]:
        """Return the query for rows that have no place in the order."""
        return (
            select(literal(1)).select_from(self._from).where(*self._within, or_(*(each.is_(None) for each in self._order))).limit(1)
        )

    def _behind(self, last: tuple[Any, ...], *, or_equal: bool) -> ColumnElement[bool]:
        """Return the condition that a row is behind another in the order, without tuples, which some databases cannot compare."""
        *first, final = self._order
        condition: ColumnElement[bool] = final >= last[-1] if or_equal else final > last[-1]
        for each, value in reversed(list(zip(first, last, strict=False))):
            condition = or_(each > value, and_(each == value, condition))
        return condition


def _sql_type(info: TypeInformation) -> TypeEngine[Any] | None:
    known = _SQL_TYPES.get(info.basic_type) if isinstance(info, BasicTypeInfo) else None
    return None if known is None else known()


def _from(relation: JdbcRelation, columns: set[str]) -> FromClause:
    if relation.query is not None:
        # A colon would mark a parameter, and a comment at the end would swallow the text behind the query.
        escaped = relation.query.replace(":", r"\:") + "\n"
        return text(escaped).columns(*(column(name) for name in sorted(columns))).subquery("source")
    schema, _, name = str(relation.table).rpartition(".")
    return table_of(name, schema=schema or None)


def _within(split: tuple[str, int | None, int | None] | None) -> list[ColumnElement[bool]]:
    if split is None:
        return []
    name, low, high = split
    number: ColumnElement[Any] = column(name)
    if low is None:
        return [] if high is None else [or_(number < high, number.is_(None))]
    return [number >= low] if high is None else [number >= low, number < high]
