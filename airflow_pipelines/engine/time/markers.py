"""The evaluation of markers, whose values follow from the clock and the waterlines."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.outcome import struct_of
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.lateness import Waterlines
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.failures import step_error
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.engine.values.text import literal, scalar
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.markers import CLOCK_COLUMN, CLOCK_TYPE, Marker, waterline_input

_REMEMBERED = 8


@dataclass(frozen=True, slots=True)
class Times:
    """The current time of a circuit.

    :param clock: the clock in microseconds since the epoch, None before the first tick
    """

    clock: int | None
    waterlines: Waterlines


class Markers:
    """The evaluator of a program's markers. It runs one short query for all of them whenever time has advanced."""

    def __init__(
        self, markers: Sequence[Marker], types: Mapping[tuple[str, str], str], session: SparkSession, readers: Mapping[str, str]
    ) -> None:
        """Create markers without values.

        :param types: the Spark DDL types of the columns with lateness, by relation and column
        :param readers: a view that reads each marker, by the marker's relation
        """
        self.markers = {marker.relation: marker for marker in markers}
        self._types = types
        self._session = session
        self._readers = readers
        self._schemas = {name: weighted(struct_of(((m.column, m.type),))) for name, m in self.markers.items()}
        self._known: dict[Any, dict[str, Batch]] = {}

    def versions(self, before: Times, after: Times) -> dict[str, RelationVersions]:
        """Return the versions of each marker before and after a step."""
        if not self.markers:
            return {}
        old, new = self._rows(before), self._rows(after)
        return {name: self._version(name, old.get(name), new.get(name)) for name in self.markers}

    def fresh(self, times: Times) -> dict[str, RelationVersions]:
        """Return each marker as if its row had just been inserted."""
        rows = self._rows(times) if self.markers else {}
        return {name: RelationVersions(Trace(self._schemas[name]), (rows[name],) if name in rows else ()) for name in self.markers}

    def _version(self, name: str, old: Batch | None, new: Batch | None) -> RelationVersions:
        schema = self._schemas[name]
        trace = Trace(schema, () if old is None else (old,))
        if old is new or (old is not None and new is not None and old.to_arrow().equals(new.to_arrow())):
            return RelationVersions(trace)
        tables = [_with_weight(schema, old, -1), _with_weight(schema, new, 1)]
        return RelationVersions(trace, (Batch.in_memory(schema, pa.concat_tables([table for table in tables if table])),))

    def _rows(self, times: Times) -> dict[str, Batch]:
        """Return the row of each marker that has one."""
        key = (times.clock, tuple(sorted((name, *sorted(columns.items())) for name, columns in times.waterlines.items())))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._evaluate(times)
            while len(self._known) > _REMEMBERED:
                self._known.pop(next(iter(self._known)))
        return known

    def _evaluate(self, times: Times) -> dict[str, Batch]:
        # The clock's markers have no row before the first tick, so that a view over them is empty then.
        waiting = {name for name, marker in self.markers.items() if times.clock is None and marker.follows_clock}
        asked = [marker for name, marker in self.markers.items() if name not in waiting]
        if not asked:
            return {}
        inputs = [literal(_format_clock(times.clock), CLOCK_TYPE, CLOCK_COLUMN)]
        for (relation, column), ddl in self._types.items():
            text = times.waterlines.get(relation, {}).get(column)
            inputs.append(literal(text, ddl, waterline_input(relation, column)))
        try:
            row = self._row(asked, inputs)
        except Exception:
            for marker in asked:
                self._check(marker, inputs)
            raise
        return {marker.relation: self._batch(marker, text) for marker, text in zip(asked, row, strict=True)}

    def _row(self, asked: Sequence[Marker], inputs: Sequence[str]) -> Row:
        items = ", ".join(f"CAST({_zoneless_sql(marker)} AS STRING) AS {quote(marker.column)}" for marker in asked)
        # A query over a constant row needs no Spark job.
        return self._session.sql(f"SELECT {items} FROM (SELECT {', '.join(inputs)} FROM VALUES (1))").collect()[0]

    def _check(self, marker: Marker, inputs: Sequence[str]) -> None:
        """Raise the error of a marker that cannot be evaluated, in the name of the view that reads it."""
        try:
            self._row([marker], inputs)
        except Exception as error:
            raise step_error(self._readers.get(marker.relation, marker.relation), error) from error

    def _batch(self, marker: Marker, text: str | None) -> Batch:
        schema = self._schemas[marker.relation]
        return Batch.in_memory(schema, _one_row(schema, text))


def _one_row(schema: StructType, text: str | None) -> pa.Table:
    arrow = arrow_schema(schema)
    kind = arrow[0].type
    if text is not None and pa.types.is_timestamp(kind) and kind.tz is not None:
        text += "Z"
    value = pa.scalar(None, kind) if text is None else scalar(text, kind)
    return pa.table([pa.array([value.as_py()], kind), pa.array([1], pa.int64())], schema=arrow)


def _with_weight(schema: StructType, batch: Batch | None, weight: int) -> pa.Table | None:
    if batch is None:
        return None
    table = batch.to_arrow()
    return table.set_column(table.num_columns - 1, schema.fields[-1].name, pa.array([weight], pa.int64()))


def _zoneless_sql(marker: Marker) -> str:
    """Return the SQL expression of the marker. The session's time zone is UTC, so texts of instants are in UTC."""
    return f"CAST(({marker.text}) AS {marker.type})"


def _format_clock(clock: int | None) -> str | None:
    if clock is None:
        return None
    return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=clock))
