"""Execution of a stream program: its process gets the inputs of a step, and its outputs go to other relations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.stream_nodes import StreamGraph
from airflow_pipelines.engine.streams.relation_rows import relation_rows
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.streams.saved_state import PAGES, PROGRESS, REST, SCHEMAS, due_of, pages_of, progress_row, rest_of
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs, spark_jobs
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.streams import RelationInput
from airflow_pipelines.rows.zsets import SEQUENCE
from airflow_pipelines.streams.worker.messages import Feed, FeedKind, RelationFeed, SourceFeed, Stepped
from airflow_pipelines.streams.worker.moving import feed_records

_MICROSECONDS = 1000
"""The number of microseconds in a millisecond."""


class StreamGraphOperator(Operator[StreamGraph]):
    """The operator that evaluates all operators of a stream program in the process of the program.

    The program's state is in that process between two checkpoints, so a step can be evaluated only once: an error ends the
    pipeline, which resumes from its newest checkpoint and the journal.
    """

    depends_on_order = True
    may_be_evaluated_again = False
    has_timers = True

    @property
    def ordered_reads(self) -> frozenset[str]:
        """The hidden tables of the sources, see :class:`Operator`. Rows of the pipeline's relations are ordered by their values."""
        return frozenset(self.node.program.tables.values())

    def state_schemas(self) -> Mapping[str, StateSchema]:
        """Return the schemas of the program's state, see :class:`Operator`."""
        return SCHEMAS

    def timer(self, states: Mapping[str, Trace]) -> int | None:
        """Return the time at which the program wants to be called, see :class:`Operator`."""
        return due_of(states[PROGRESS]) if states else None

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        runtime = context.streams
        if runtime is None:
            raise RuntimeError("a circuit without a process for its stream program cannot evaluate it")
        states = self.empty_states() if kept.states is None else kept.states
        feeds = list(self._feeds(context, runtime))
        stepped = runtime.step((context.clock or 0) // _MICROSECONDS, feeds, self._jobs(context, feeds))
        return Outcome(self._delta(stepped), self._progress(stepped, states, context), consolidated=True)

    def _jobs(self, context: Context, feeds: Sequence[Feed]) -> SparkJobs | None:
        """Return the Spark jobs that chains of this step may run in, or None to run them in the process of the program."""
        least = context.limits.stream_elements
        if self.node.program.dependencies or sum(map(feed_records, feeds)) < least:
            return None  # only the process of the program has the program's own Python environment
        return spark_jobs(context.sessions.large.sparkContext, least)

    def open(
        self,
        runtime: StreamRuntime,
        states: Mapping[str, Trace] | None,
        link_files: Callable[[Path], None],
        now: int | None,
    ) -> None:
        """Start the process of the program from its saved state.

        :param runtime: the runtime that starts it
        :param states: the states; None before the first start
        :param link_files: the function that brings the files of its database to a folder
        :param now: processing time in microseconds since the epoch; None to continue at that of the last step
        """
        traces = self.empty_states() if states is None else states
        runtime.open(rest_of(traces[REST]), pages_of(traces[PAGES]), link_files, None if now is None else now // _MICROSECONDS)

    def progress(self, runtime: StreamRuntime, states: Mapping[str, Trace] | None, version: int) -> dict[str, tuple[Batch, ...]]:
        """Return the rows that the states gain from the program's latest request to be called.

        :param runtime: the runtime of the program
        :param states: the states; None before the first start
        :param version: the version of the newest step
        """
        before = (self.empty_states() if states is None else states)[PROGRESS]
        due = _due(runtime.latest)
        return {} if due == due_of(before) else {PROGRESS: (SCHEMAS[PROGRESS].batch(progress_row(due, before), version),)}

    def _progress(self, stepped: Stepped, states: Mapping[str, Trace], context: Context) -> dict[str, Batch]:
        before, due = states[PROGRESS], _due(stepped)
        if before.batches and not stepped.read and not stepped.outputs and due == due_of(before):
            return {}
        return {PROGRESS: SCHEMAS[PROGRESS].batch(progress_row(due, before), context.version)}

    def _delta(self, stepped: Stepped) -> Batch:
        outputs = stepped.outputs
        columns = {
            "output": pa.array([output.uid for output in outputs], pa.string()),
            "sequence": pa.array(range(len(outputs)), pa.int64()),
            "rows": pa.array([output.rows for output in outputs], pa.int64()),
            "data": pa.array([output.data for output in outputs], pa.binary()),
            WEIGHT: pa.array([1] * len(outputs), pa.int64()),
        }
        return Batch.in_memory(weighted(stage_schema(self.stage)), pa.table(columns))

    def _feeds(self, context: Context, runtime: StreamRuntime) -> Iterator[Feed]:
        """Yield the feeds of a step: those of relations, then those of sources and ends of relations as they have arrived."""
        for each in self.node.program.inputs:
            if runtime.bootstrapped is None or each.uid in runtime.bootstrapped:
                yield from self._relation_feeds(each, context)
        if runtime.bootstrapped is None:
            yield from self._source_feeds(context)

    def _relation_feeds(self, each: RelationInput, context: Context) -> Iterator[Feed]:
        for batch in context.relations[each.relation].delta:
            for rows in relation_rows(batch, context.sessions.large):
                yield RelationFeed(each.uid, _stream(rows))

    def _source_feeds(self, context: Context) -> Iterator[Feed]:
        feeds: list[tuple[int, SourceFeed]] = []
        for uid, table in self.node.program.tables.items():
            for batch in context.relations[table].delta:
                rows = batch.to_arrow()
                for row in rows.to_pylist():
                    feed = SourceFeed(uid, row["split"], FeedKind(row["kind"]), row["records"], row["payload"])
                    feeds.append((row[SEQUENCE], feed))
        feeds.sort(key=lambda numbered: numbered[0])
        return (feed for _, feed in feeds)


def _due(stepped: Stepped) -> int | None:
    return None if stepped.next_due is None else stepped.next_due * _MICROSECONDS


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())
