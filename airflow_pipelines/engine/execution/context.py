"""The context of operators: the versions of the relations in one step, and the means to run queries into batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews, consolidated_sql, empty_sql
from airflow_pipelines.engine.execution.moved_range import moved_range
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema, struct_of
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.execution.ways import Budget, TooMuch, first_accepted
from airflow_pipelines.engine.held_memory import HeldMemory
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.counting import evaluate_and_count
from airflow_pipelines.engine.spark.executed_frames import ExecutedFrame, execute_exchanges
from airflow_pipelines.engine.spark.failures import refused_write
from airflow_pipelines.engine.spark.limited_frames import first_of_each_partition
from airflow_pipelines.engine.spark.planned_query import Result
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import COMPRESSION, BatchStore
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.arrow import fixed_width
from airflow_pipelines.rows.zsets import can_group
from airflow_pipelines.sql.plan.ir.delta_sql import DeltaSql
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select, TemporalFilter, UnionAll
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.version import Version

_REMEMBERED = 1024
_MOST = 0.3
"""The share of rows: a step that changes more of them counts as changing all of them."""
_LEAST_WIDTH = 64
"""The minimum assumed bytes of a row with variable-width values: an expression may make it wider than its input."""
_COLLECTED = 2
"""The limit of rows that are collected to the driver at once, as a multiple of those that may be held.

The driver writes them to files in less time than Spark does.
"""
_AT_ONCE = 2
"""The limit of rows that all partitions together may return before they are known to be too many, as a multiple of the limit.

The same factor limits the rows that come out of exchanges, to which each task contributes its own rows of a group.
"""
_select_schemas: dict[tuple[Select, tuple[tuple[str, str], ...]], StructType] = {}
"""The schemas of nodes by their inputs: asking Spark for one takes some milliseconds."""


class Mode(Enum):
    """The way in which an operator runs in one step. It follows from the numbers of rows of its inputs.

    It does not determine where the result goes: :meth:`Context.run` decides that by its size.

    ``SMALL``: all inputs are small. One task runs, and the result goes to the driver.

    ``NARROW``: its deltas are small, but the contents that it joins them with are not. The contents are streamed past the broadcast
    deltas and the result goes to the driver.

    ``LARGE``: a delta is large. Spark makes its own choices.
    """

    SMALL = "small"
    NARROW = "narrow"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Context:
    """One step's view of the relations, and the means to run queries.

    :param sessions: sessions for small, narrow and large queries
    :param batch_views: the views that give batches names in SQL, and run queries over them
    :param store: the store for large batches
    :param relations: the versions of all relations
    :param by_cost: True if operators may evaluate everything anew when nearly all rows are affected
    :param incomplete: the relations whose contents may lack rows that no change can affect any more
    :param unobserved: the relations whose deltas have no consumer
    :param limits: the sizes that count as small and as large
    :param clock: the time of the step in microseconds since the epoch; None before the first tick
    :param version: a number that grows from step to step
    :param streams: the process of the program's stream program, if it has one
    :param memory: the room for batches in memory that are not small
    :param pinned: the batches fetched for the step, by their queries; several operators may need the same
    """

    sessions: SparkSessions
    batch_views: BatchViews
    store: BatchStore
    relations: Mapping[str, RelationVersions] = field(default_factory=dict)
    by_cost: bool = False
    incomplete: frozenset[str] = frozenset()
    unobserved: frozenset[str] = frozenset()
    limits: Limits = DEFAULT_LIMITS
    clock: int | None = None
    version: int = 0
    streams: StreamRuntime | None = None
    memory: HeldMemory = field(default_factory=lambda: HeldMemory(0))
    pinned: dict[str, Batch] = field(default_factory=dict)

    def find_changed(self) -> frozenset[str]:
        """Return the relations that this step has changed so far."""
        # Other threads may add to the relations meanwhile.
        return frozenset(name for name, versions in list(self.relations.items()) if versions.changed)

    def printer(self, mode: Mode, *, empties: bool = False) -> DeltaSql:
        """Return a printer of nodes over this step's relations.

        :param empties: True to print relations without rows as empty queries, so that every text exists
        """
        small = mode is Mode.SMALL

        def read(relation: str, version: Version) -> str | None:
            rows = self.batch_views.rows(self.relations[relation].batches(version), single_partition=small)
            return f"({empty_sql(self.relations[relation].before.schema)})" if rows is None and empties else rows

        def range_of(temporal_filter: TemporalFilter, marker: str) -> str | None:
            return moved_range(temporal_filter, marker, self.relations)

        return DeltaSql(read, single_partition=small, broadcast=mode is Mode.NARROW, moved_range=range_of)

    def over(self, relation: str, batch: Batch) -> DeltaSql:
        """Return a printer of nodes over a batch in memory, which replaces all versions of one relation."""

        def read(name: str, version: Version) -> str | None:
            batches = (batch,) if name == relation else self.relations[name].batches(version)
            return self.batch_views.rows(batches, single_partition=True)

        return DeltaSql(read, single_partition=True)

    def schema(self, node: Linear) -> StructType:
        """Return the columns of a node's result, without the weight."""
        match node:
            case Scan():
                columns = self.relations[node.relation].before.schema
                return StructType([columns[name] for name in node.columns])
            case UnionAll():
                return struct_of(node.types)
            case Select():
                relations = tuple((name, self.relations[name].before.schema.json()) for name in sorted(node.reads))
                known = _select_schemas.get((node, relations))
                if known is None:
                    empty = DeltaSql(lambda name, _: f"({empty_sql(self.relations[name].before.schema)})")
                    with_weight = self.sessions.small.sql(str(empty.contents(node, Version.BEFORE))).schema
                    known = _select_schemas[node, relations] = StructType(with_weight.fields[:-1])
                    while len(_select_schemas) > _REMEMBERED:
                        _select_schemas.pop(next(iter(_select_schemas)), None)
                return known

    def mode(self, deltas: frozenset[str], contents: frozenset[str], *states: Trace) -> Mode:
        """Return the mode of an operator that reads these deltas, contents and states."""
        if self._are_all_small(deltas, contents, *states):
            return Mode.SMALL
        return Mode.NARROW if deltas and self._deltas_are_small(deltas) else Mode.LARGE

    def _are_all_small(self, deltas: frozenset[str], contents: frozenset[str], *states: Trace) -> bool:
        batches = [batch for name in deltas - contents for batch in self.relations[name].delta]
        batches += [batch for name in contents for batch in self.relations[name].after.batches]
        batches += [batch for state in states for batch in state.batches]
        return self._are_small(batches) and sum(batch.rows for batch in batches) <= self.limits.small_input

    def _deltas_are_small(self, names: frozenset[str]) -> bool:
        batches = [batch for name in names for batch in self.relations[name].delta]
        return self._are_small(batches) and sum(batch.rows for batch in batches) <= self.limits.small_rows

    def _are_small(self, batches: Sequence[Batch]) -> bool:
        return all(batch.table is not None and batch.is_small(self.limits) for batch in batches)

    def is_tiny(self, names: frozenset[str], version: Version = Version.AFTER) -> bool:
        """Return True if relations together have so few rows that reading all of them costs nothing."""
        return self.is_few(batch for name in names for batch in self.relations[name].batches(version))

    def is_few(self, batches: Iterable[Batch]) -> bool:
        """Return True if batches together have so few rows that reading all of them costs nothing."""
        return sum(batch.rows for batch in batches) <= self.limits.tiny

    def touches_most(self, names: frozenset[str]) -> bool:
        """Return True if the step changes so much of relations that recomputing everything costs less than finding the changes."""
        if not self.by_cost or names & self.incomplete:
            return False
        return self.is_most(names, sum(self.relations[name].before.rows for name in names))

    def is_most(self, names: frozenset[str], rows: int) -> bool:
        """Return True if the deltas of relations have so many rows that finding what they affect costs more than reading all.

        :param names: the relations
        :param rows: the number of all rows that they may affect
        """
        return sum(batch.rows for name in names for batch in self.relations[name].delta) > _MOST * rows

    def collect(self, query: str, mode: Mode) -> pa.Table:
        """Return the result of a query that returns few rows, by one job."""
        return self._result(query, mode).rows

    def collect_bounded(self, query: str, mode: Mode) -> pa.Table:
        """Return the result of a query that may return many more rows than it reads.

        :raises TooMuch: if they exceed the limit
        """
        return self._bounded(query, mode).rows

    def batch_bounded(self, query: str, mode: Mode) -> Batch:
        """Return the result of :meth:`collect_bounded` as a batch with the query's own columns."""
        result = self._bounded(query, mode)
        return Batch.in_memory(result.schema, result.rows)

    def _bounded(self, query: str, mode: Mode) -> Result:
        result = self._result(f"SELECT * FROM ({query}) LIMIT {self.limits.fan_out + 1}", mode)
        Budget(self.limits.fan_out).spend(result.rows.num_rows)
        return result

    def _result(self, query: str, mode: Mode) -> Result:
        if mode is Mode.SMALL:
            return self.batch_views.result(query)
        frame = self.batch_views.query(self.sessions.narrow, query)
        return Result(collected(frame), frame.schema)

    def emit(
        self,
        stage: Stage,
        query: str,
        mode: Mode,
        *,
        may_grow: bool = False,
        consolidated: bool = False,
        unit_weights: bool = False,
    ) -> Outcome:
        """Return the outcome of a stage with a query for its delta. Many rows without a consumer are evaluated, but not kept.

        :param may_grow: see :meth:`run`
        :param consolidated: see :class:`Outcome`
        :param unit_weights: True if every weight is 1
        """
        schema = weighted(stage_schema(stage))
        if mode is Mode.LARGE and stage.relation in self.unobserved:
            rows = evaluate_and_count(self.batch_views.query(self.sessions.large, query))
            return Outcome(Batch.empty(schema), consolidated=True, unobserved=rows)
        if (
            mode is Mode.LARGE
            and not consolidated
            and not unit_weights
            and not (self._may_be_held(query, schema) and can_group(arrow_schema(schema)))
        ):
            # Consolidate in the query: otherwise the rows would be written, read and written again. In memory this happens later.
            return Outcome(self.run(consolidated_sql(Trace(schema), f"({query})"), schema, mode), consolidated=True)
        return Outcome(self.run(query, schema, mode, may_grow), consolidated=consolidated)

    def gains(self, names: frozenset[str]) -> bool:
        """Return True if the contents and the deltas of relations only have rows of the weight 1."""
        return all(batch.insert_only for name in names for batch in self.relations[name].after.batches)

    def run(self, query: str, schema: StructType, mode: Mode, may_grow: bool = False) -> Batch:
        """Return the result of a query as a batch.

        It is in files if it is neither small nor fits into the memory for large batches.

        :param may_grow: True if the result may have many more rows than the deltas; collecting it then stops at the limit of rows
        """
        if mode is Mode.LARGE:
            return self.spill_if_large(self.evaluate(query, schema))
        return first_accepted(
            lambda: self.spill_if_large(
                Batch.in_memory(schema, self.collect_bounded(query, mode) if may_grow else self.collect(query, mode))
            ),
            lambda: self.spill(self.batch_views.query(self.sessions.large, query), schema),
        )

    def evaluate(self, query: str, schema: StructType) -> Batch:
        """Return the result of a large query in files, or in memory for immediate use by the caller.

        It may be too large to stay in memory.
        """
        frame, most = self.batch_views.query(self.sessions.large, query), _COLLECTED * self._rows_to_hold(query, schema)
        if most <= 0:
            return self.spill(frame, schema)
        # Everything before the last exchange runs once, no matter where the rows go.
        result = execute_exchanges(frame)
        return first_accepted(
            lambda: Batch.in_memory(schema, self._first_rows(result, most)), lambda: self.spill(result.frame, schema)
        )

    def _first_rows(self, result: ExecutedFrame, most: int) -> pa.Table:
        """Return the rows of a large query's result.

        :raises TooMuch: if they are likely to be, or turn out to be, more than ``most``
        """
        if self._changed_rows() > most if result.exchanged is None else result.exchanged > _AT_ONCE * most:
            raise TooMuch("rows to hold in memory")
        # Each partition is sent to the driver as a whole.
        of_each = min(most, _AT_ONCE * most // max(1, result.partitions))
        table = collected(first_of_each_partition(result.frame, of_each + 1))
        Budget(of_each).spend(table.num_rows)
        return table

    def _may_be_held(self, query: str, schema: StructType) -> bool:
        """Return True if the result of a large query is likely to fit into memory.

        It seldom has more rows than the step's deltas.
        """
        return self._changed_rows() <= self._rows_to_hold(query, schema)

    def _changed_rows(self) -> int:
        """Return the number of rows of the largest delta that the step has computed so far."""
        return max((sum(batch.rows for batch in versions.delta) for versions in list(self.relations.values())), default=0)

    def _rows_to_hold(self, query: str, schema: StructType) -> int:
        """Return the number of rows of a query's result that surely fit into memory.

        Variable-width values are assumed to be as wide as two rows of the input.
        """
        width = fixed_width(arrow_schema(schema))
        if width is None:
            width = max(_LEAST_WIDTH, 2 * max((batch.row_bytes for batch in self.batch_views.find_batches(query)), default=0))
        return min(self.memory.most_of_one, self.limits.held_bytes) // width

    def spill(self, frame: DataFrame, schema: StructType) -> Batch:
        """Write a large result to files by Spark, and return it. It is read back into memory if it turns out to be small."""
        staging = self.store.staging()
        try:
            frame.write.mode("overwrite").option("compression", COMPRESSION).parquet(str(staging))
        except BaseException as error:
            self.store.discard(staging)
            refused = refused_write(self.store.folder, error)
            if refused is not None:
                raise refused from error
            raise
        with self.store.lock:
            files = self.store.adopt(staging)
            rows, insert_only = self._statistics(files)
            batch = Batch.in_files(schema, rows, files, self.store, insert_only)
        if rows <= self.limits.small_rows:
            return replace(batch, table=batch.to_arrow())
        return batch

    def spill_if_large(self, batch: Batch) -> Batch:
        """Return the batch in the form to keep it in: one that is too large for the driver's memory goes to files."""
        if batch.table is None or batch.is_small(self.limits):
            return batch
        if self.has_room(batch):
            self.memory.hold(batch.table)
            return batch
        with self.store.lock:
            files = self.store.write(batch.table)
            return Batch.in_files(batch.schema, batch.rows, files, self.store, batch.insert_only)

    def has_room(self, batch: Batch) -> bool:
        """Return True if a batch is small, is in files, or may be held in memory."""
        if batch.table is None or batch.is_small(self.limits):
            return True
        return batch.memory_bytes <= self.limits.held_bytes and self.memory.has_room(batch.memory_bytes)

    def _statistics(self, files: tuple[str, ...]) -> tuple[int, bool]:
        rows, insert_only = 0, True
        for name in files:
            metadata = pq.read_metadata(self.store.path(name))
            rows += metadata.num_rows
            for group in range(metadata.num_row_groups):
                part = metadata.row_group(group)
                columns = [part.column(at) for at in range(part.num_columns)]
                statistics = next(column for column in columns if column.path_in_schema == WEIGHT).statistics
                insert_only &= statistics is not None and statistics.has_min_max and statistics.min == statistics.max == 1
        return rows, insert_only
