"""The DEFAULTs that are not the same for each record: those that read the clock or metadata, and random ones."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.engine.spark.analysis import Analysis, QueryRefused
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.markers import CLOCK_TYPE
from airflow_pipelines.sql.rewrite.clock_calls import clock_edits
from airflow_pipelines.sql.rewrite.connector_metadata import METADATA
from airflow_pipelines.sql.syntax.edits import Edited

_FIRST_ROWS: Final = 16
_MOST_ROWS: Final = 16384
"""The maximum number of records for which values are evaluated at a time. The first batch is small, then the batches grow."""
_EPOCH: Final = dt.datetime(1970, 1, 1)


def reads_clock(expression: str) -> bool:
    """Return True if an expression calls functions of the clock.

    :param expression: Spark SQL
    """
    return bool(clock_edits(expression, ()))


def at_time(expression: str, now: int) -> str:
    """Return an expression in which a time replaces the clock's functions.

    :param expression: Spark SQL
    :param now: the time in microseconds since the epoch
    """
    literal = f"{CLOCK_TYPE.upper()} '{_EPOCH + dt.timedelta(microseconds=now)}'"
    return Edited(expression).edit(clock_edits(expression, (), literal)).text


class VaryingDefaults:
    """The DEFAULTs of a table that are not the same for each record. Several threads may use it."""

    def __init__(self, groups: Sequence[DefaultGroup]) -> None:
        """Remember the groups; nothing is evaluated yet.

        :param groups: the DEFAULTs that are evaluated together
        """
        self.columns = frozenset(name for group in groups for name in group.columns)
        self._groups = groups

    def row(self, now: int) -> Mapping[str, Any]:
        """Return the values for one record, in Python types.

        :param now: the time in microseconds since the epoch, as NOW() shows it
        :returns: the values by column
        :raises ValueError: if one cannot be evaluated
        """
        return {name: value for group in self._groups for name, value in group.row(now).items()}


class DefaultGroup:
    """The DEFAULTs that are evaluated with one query: once for each time, or in advance for some records if they are random."""

    def __init__(self, analysis: Analysis, expressions: Mapping[str, str], types: pa.Schema, *, random: bool) -> None:
        """Remember the expressions; nothing is evaluated yet.

        :param analysis: the analysis that evaluates them
        :param expressions: Spark SQL by column
        :param types: the columns in the types of batches
        :param random: True if two records at the same time may have different values
        """
        self.columns = frozenset(expressions)
        self._analysis = analysis
        self._expressions = expressions
        self._types = types
        self._random = random
        self._reads_clock = any(reads_clock(text) for text in expressions.values())
        self._lock = Lock()
        self._time: int | None = None
        self._size = _FIRST_ROWS
        self._rows: deque[Mapping[str, Any]] = deque()

    def row(self, now: int) -> Mapping[str, Any]:
        """Return the values for one record.

        :param now: the time in microseconds since the epoch
        :returns: the values by column
        :raises ValueError: if one cannot be evaluated
        """
        with self._lock:
            if self._reads_clock and now != self._time:
                self._rows.clear()
                self._time, self._size = now, _FIRST_ROWS
            if not self._rows:
                self._rows.extend(self._evaluate(now))
            return self._rows.popleft() if self._random else self._rows[0]

    def _evaluate(self, now: int) -> list[dict[str, Any]]:
        items = (f"{at_time(text, now)} AS {quote(name)}" for name, text in self._expressions.items())
        query = f"SELECT {', '.join(items)}"
        if self._random:
            query += f" FROM range(0, {self._size}, 1, 1)"
            self._size = min(4 * self._size, _MOST_ROWS)
        try:
            return self._analysis.rows(query, self._types)
        except QueryRefused as refused:
            raise ValueError(refused.message) from refused


class DefaultsFromMetadata:
    """The DEFAULTs of a table that read the metadata that a connector has for a record. Several threads may use it."""

    def __init__(self, analysis: Analysis, expressions: Mapping[str, str], types: pa.Schema) -> None:
        """Remember the expressions; nothing is evaluated yet.

        :param analysis: the analysis that evaluates them
        :param expressions: Spark SQL by column, which reads the metadata from the column :data:`METADATA`
        :param types: the columns in the types of batches
        """
        self.columns = frozenset(expressions)
        self._analysis = analysis
        self._expressions = expressions
        self._types = types

    def rows(self, now: int, metadata: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Return the values for some records, in Python types.

        :param now: the time in microseconds since the epoch, as NOW() shows it
        :param metadata: the metadata of each record, by name
        :returns: the values by column, for each record
        :raises ValueError: if one cannot be evaluated
        """
        entries = ", ".join(f"'{field.name}', {_variant(field)}" for field in metadata.schema)
        items = ", ".join(f"{at_time(text, now)} AS {quote(name)}" for name, text in self._expressions.items())
        try:
            return self._analysis.rows_over(
                metadata, lambda view: f"SELECT {items} FROM (SELECT map({entries}) AS {METADATA} FROM {view})", self._types
            )
        except QueryRefused as refused:
            raise ValueError(refused.message) from refused


def _variant(field: pa.Field) -> str:
    name = quote(field.name)
    return f"to_variant_object({name})" if pa.types.is_nested(field.type) else f"CAST({name} AS VARIANT)"
