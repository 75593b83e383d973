"""What operators work with: the versions of the relations in one step, and means to run queries into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews, consolidated_sql, empty_sql
from airflow_pipelines.engine.held_memory import HeldMemory
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.operators.moved_range import moved_range
from airflow_pipelines.engine.operators.relation_versions import RelationVersions
from airflow_pipelines.engine.operators.result import Outcome, stage_schema, struct_of
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.counting import evaluate_and_count
from airflow_pipelines.engine.spark.executed_frames import Executed, executed
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
_LEAST_WIDTH = 64
"""Bytes of a row with texts and the like, however few: an expression may make it wider than what it is made from."""
_COLLECTED = 2
"""So many times the rows that are held may come to the driver at once: it writes them to files in less time than Spark does."""
_AT_ONCE = 2
"""All partitions together may give so many times the rows that are collected before it is known that they are too many, and so many
times may come out of exchanges, to which each task gives its own rows of a group."""
_select_schemas: dict[tuple[Select, tuple[tuple[str, str], ...]], StructType] = {}
"""Schemas of nodes by what they read: to ask Spark takes some milliseconds."""


class Mode(Enum):
    """How an operator runs in one step; it follows from the numbers of rows of what it reads.

    Where the result goes is another question, which :meth:`Context.run` answers by its bytes.

    ``SMALL``: all it touches is small; one task, the result goes to the driver.
    ``NARROW``: its deltas are small, but not what it joins them with; the contents are streamed past the broadcast deltas and the
    result goes to the driver.
    ``LARGE``: a delta is large; Spark makes its own choices.
    """

    SMALL = "small"
    NARROW = "narrow"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Context:
    """One step's view of the relations, and the means to run queries.

    :param sessions: sessions for small, narrow and large queries
    :param batch_views: gives batches names in SQL, and runs queries over them
    :param store: where large batches go
    :param relations: the versions of all relations
    :param by_cost: whether operators may evaluate everything anew when nearly all rows are affected
    :param incomplete: relations whose contents may lack rows that no change can affect any more
    :param unobserved: relations whose deltas have no consumer
    :param limits: what counts as small and as large
    :param clock: the time of the step in microseconds since the epoch; None before the first tick
    :param version: a number that grows from step to step
    :param streams: the process of the program's stream program, where it has one
    :param memory: the room for batches in memory that are not small
    :param pinned: what was fetched for the step, by the query for it: several operators may need the same
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

    def changed(self) -> frozenset[str]:
        """The relations that this step changes, as far as evaluated."""
        # Other threads may add to the relations meanwhile.
        return frozenset(name for name, versions in list(self.relations.items()) if versions.changed)

    def printer(self, mode: Mode, *, empties: bool = False) -> DeltaSql:
        """Prints nodes over this step's relations.

        :param empties: relations without rows are printed as such, so that every text is there
        """
        small = mode is Mode.SMALL

        def read(relation: str, version: Version) -> str | None:
            rows = self.batch_views.rows(self.relations[relation].batches(version), single_partition=small)
            return f"({empty_sql(self.relations[relation].before.schema)})" if rows is None and empties else rows

        def range_of(temporal_filter: TemporalFilter, marker: str) -> str | None:
            return moved_range(temporal_filter, marker, self.relations)

        return DeltaSql(read, single_partition=small, broadcast=mode is Mode.NARROW, moved_range=range_of)

    def over(self, relation: str, batch: Batch) -> DeltaSql:
        """Prints nodes over a batch in memory in the place of whatever version of one relation."""

        def read(name: str, version: Version) -> str | None:
            batches = (batch,) if name == relation else self.relations[name].batches(version)
            return self.batch_views.rows(batches, single_partition=True)

        return DeltaSql(read, single_partition=True)

    def schema(self, node: Linear) -> StructType:
        """The columns of a node's result, without the weight."""
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
        """How an operator that reads these deltas, contents and states runs."""
        if self._all_small(deltas, contents, *states):
            return Mode.SMALL
        return Mode.NARROW if deltas and self._deltas_are_small(deltas) else Mode.LARGE

    def _all_small(self, deltas: frozenset[str], contents: frozenset[str], *states: Trace) -> bool:
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
        """Whether relations together have so few rows that it costs nothing to read them all."""
        return sum(batch.rows for name in names for batch in self.relations[name].batches(version)) <= self.limits.tiny

    def touches_most(self, names: frozenset[str]) -> bool:
        """Whether the step changes so much of relations that to compute everything anew costs less than to find what is touched."""
        if not self.by_cost or names & self.incomplete:
            return False
        changed = sum(batch.rows for name in names for batch in self.relations[name].delta)
        return changed > self.limits.most * sum(self.relations[name].before.rows for name in names)

    def collect(self, query: str, mode: Mode) -> pa.Table:
        """The result of a query that gives little: one job."""
        return self._result(query, mode).rows

    def collect_bounded(self, query: str, mode: Mode) -> pa.Table | None:
        """The result of a query that may give many more rows than it reads; None when they are more than the limit."""
        table = self.collect(f"SELECT * FROM ({query}) LIMIT {self.limits.fan_out + 1}", mode)
        return table if table.num_rows <= self.limits.fan_out else None

    def batch_bounded(self, query: str, mode: Mode) -> Batch | None:
        """Like :meth:`collect_bounded`, as a batch of whatever columns the query gives."""
        found = self._result(f"SELECT * FROM ({query}) LIMIT {self.limits.fan_out + 1}", mode)
        return Batch.in_memory(found.schema, found.rows) if found.rows.num_rows <= self.limits.fan_out else None

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
        """What a stage gives by a query for its delta. Many rows without a consumer are evaluated, but not kept.

        :param may_grow: see :meth:`run`
        :param consolidated: see :class:`Outcome`
        :param unit_weights: every weight is 1
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
            # Otherwise the rows would be written, read and written again. In memory they are added up afterwards.
            return Outcome(self.run(consolidated_sql(Trace(schema), f"({query})"), schema, mode), consolidated=True)
        return Outcome(self.run(query, schema, mode, may_grow), consolidated=consolidated)

    def gains(self, names: frozenset[str]) -> bool:
        """Whether the contents and the deltas of relations have rows of the weight 1 only."""
        return all(batch.insert_only for name in names for batch in self.relations[name].after.batches)

    def run(self, query: str, schema: StructType, mode: Mode, may_grow: bool = False) -> Batch:
        """The result of a query as a batch: in files when it is not small, and too large to be held in memory.

        :param may_grow: the result may have many more rows than the deltas; collecting it is then given up at the limit of rows
        """
        if mode is not Mode.LARGE:
            table = self.collect_bounded(query, mode) if may_grow else self.collect(query, mode)
            if table is not None:
                return self.spill_if_large(Batch.in_memory(schema, table))
            return self.spill(self.batch_views.query(self.sessions.large, query), schema)
        return self.spill_if_large(self.evaluated(query, schema))

    def evaluated(self, query: str, schema: StructType) -> Batch:
        """The result of a large query in files, or in memory for who takes it apart at once: it may be too large to stay there."""
        frame, most = self.batch_views.query(self.sessions.large, query), _COLLECTED * self._rows_to_hold(query, schema)
        if most <= 0:
            return self.spill(frame, schema)
        # What comes before the last exchange runs once, wherever the rows go then.
        result = executed(frame)
        table = self._first_rows(result, most)
        return self.spill(result.frame, schema) if table is None else Batch.in_memory(schema, table)

    def _first_rows(self, result: Executed, most: int) -> pa.Table | None:
        """The rows of a large query's result; None when they are likely or turn out to be more than so many."""
        if self._changed_rows() > most if result.exchanged is None else result.exchanged > _AT_ONCE * most:
            return None
        # Each partition comes to the driver whole.
        of_each = min(most, _AT_ONCE * most // max(1, result.partitions))
        table = collected(first_of_each_partition(result.frame, of_each + 1))
        return table if table.num_rows <= of_each else None

    def _may_be_held(self, query: str, schema: StructType) -> bool:
        """Whether the result of a large query is likely to fit into memory: it seldom has more rows than the step's deltas."""
        return self._changed_rows() <= self._rows_to_hold(query, schema)

    def _changed_rows(self) -> int:
        """The rows of the largest delta of the step, as far as evaluated."""
        return max((sum(batch.rows for batch in versions.delta) for versions in list(self.relations.values())), default=0)

    def _rows_to_hold(self, query: str, schema: StructType) -> int:
        """So many rows of a query's result surely fit into memory: texts and the like are as wide as two rows of what it reads."""
        width = fixed_width(arrow_schema(schema))
        if width is None:
            width = max(_LEAST_WIDTH, 2 * max((batch.row_bytes for batch in self.batch_views.named(query)), default=0))
        return min(self.memory.most_of_one, self.limits.held_bytes) // width

    def spill(self, frame: DataFrame, schema: StructType) -> Batch:
        """A large result: Spark writes it to files. It comes back into memory when it turns out to be small."""
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
        """The batch in the form it should be kept in: one that is too large for the driver's memory goes to files."""
        if batch.table is None or batch.is_small(self.limits):
            return batch
        if self.has_room(batch):
            self.memory.hold(batch.table)
            return batch
        with self.store.lock:
            files = self.store.write(batch.table)
            return Batch.in_files(batch.schema, batch.rows, files, self.store, batch.insert_only)

    def has_room(self, batch: Batch) -> bool:
        """Whether a batch is small, is in files, or may be held in memory."""
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
