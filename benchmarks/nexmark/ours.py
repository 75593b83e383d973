"""Nexmark on our engine: each query is a program of its own, and every batch of events is one step.

A step's time runs from opening the batch's Parquet files to the published snapshot, merging of traces included. The journal is off,
as checkpoints are off in the systems that it is compared with.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from benchmarks.measure import timed
from benchmarks.nexmark.queries import QUERIES, Query, program
from benchmarks.nexmark.streams import Stream

WARM_UP = 5
"""Steps whose time says what planning a query for the first time takes."""


@dataclass(frozen=True)
class Run:
    """What one query took.

    ``operators``: milliseconds by strategy, summed over the steps; some work at the same time. ``reading`` and ``merging``:
    milliseconds in which the events are read, and batches of the state merged. ``rows``: what the view emitted.
    """

    query: str
    events: int
    seconds: float
    strategies: tuple[str, ...]
    operators: Mapping[str, float]
    reading: float
    merging: float
    rows: int

    def profile(self, steps: int) -> dict[str, float]:
        """Milliseconds of a step by what they are for, in the mean.

        :param steps: how many steps there were
        """
        known = {"reading": self.reading, **self.operators, "merging": self.merging}
        rest = max(self.seconds * 1000 - sum(known.values()), 0.0)
        return {name: milliseconds / steps for name, milliseconds in (known | {"rest": rest}).items()}

    @property
    def events_per_s(self) -> float:
        """Events of the whole stream, those of tables that the query does not read included, per second."""
        return self.events / self.seconds


def run_query(query: Query, sessions: SparkSessions, stream: Stream, size: int, events: int | None = None) -> Run:
    """Feed a stream to a program with one query.

    :param size: events per step
    :param events: how many events of the stream; all by default
    """
    compiled = compile_program(program([query], append_only=True), sessions)
    operators: dict[str, float] = {}
    rows, seconds, reading, merging = 0, 0.0, 0.0, 0.0
    with tempfile.TemporaryDirectory(prefix="pipelines-nexmark-") as folder:
        circuit = Circuit(compiled, sessions, BatchStore(Path(folder)))
        circuit.has_consumers = lambda _: False
        try:
            if "side_input" in query.reads:
                circuit.publish(circuit.step([_inserts("side_input", stream.side_input())]))
            batches = stream.batches(size, events)
            for batch in batches:
                with timed() as watch:
                    with timed() as reads:
                        changes = _changes(query, batch)
                    step = circuit.step(changes)
                    circuit.publish(step)
                    with timed() as merges:
                        circuit.maintain()
                seconds += watch.seconds
                reading += reads.seconds * 1000
                merging += merges.seconds * 1000
                rows += step.stats.operators[-1].rows_out if step.stats.operators else 0
                for figure in step.stats.operators:
                    operators[figure.strategy] = operators.get(figure.strategy, 0.0) + figure.duration_ms
        finally:
            circuit.close()
    strategies = tuple(stage.strategy for stage in compiled.plans[query.name].stages)
    return Run(query.name, len(batches) * size, seconds, strategies, operators, reading, merging, rows)


def step_seconds(query: Query, sessions: SparkSessions, side_input: Path, before: Sequence[Path], batches: Sequence[Path]) -> float:
    """Measure the median time of a step, in seconds.

    :param side_input: the file of the bounded table
    :param before: the batches that make the state, each a step that is not timed
    :param batches: the batch of each step; the first :data:`WARM_UP` ones do not count
    """
    compiled = compile_program(program([query], append_only=True), sessions)
    seconds = []
    with tempfile.TemporaryDirectory(prefix="pipelines-nexmark-") as folder:
        circuit = Circuit(compiled, sessions, BatchStore(Path(folder)))
        circuit.has_consumers = lambda _: False
        try:
            if "side_input" in query.reads:
                circuit.publish(circuit.step([_inserts("side_input", side_input)]))
            for batch in (*before, *batches):
                with timed() as watch:
                    circuit.publish(circuit.step(_changes(query, batch)))
                    circuit.maintain()
                seconds.append(watch.seconds)
        finally:
            circuit.close()
    return median(seconds[len(before) + WARM_UP :])


def final_answer(query: Query, sessions: SparkSessions, stream: Stream, size: int) -> pa.Table:
    """Compute a query's answer over a whole stream."""
    text = program([query], append_only=True).replace("CREATE VIEW", "CREATE MATERIALIZED VIEW")
    with tempfile.TemporaryDirectory(prefix="pipelines-nexmark-") as folder:
        circuit = Circuit(compile_program(text, sessions), sessions, BatchStore(Path(folder)))
        try:
            if "side_input" in query.reads:
                circuit.publish(circuit.step([_inserts("side_input", stream.side_input())]))
            for batch in stream.batches(size):
                circuit.publish(circuit.step(_changes(query, batch)))
            return circuit.relation(query.name).toArrow()
        finally:
            circuit.close()


def by_name(names: tuple[str, ...] = ()) -> tuple[Query, ...]:
    """Return the queries with these names, in the order of all queries; without names, return all of them."""
    return tuple(query for query in QUERIES if not names or query.name in names)


def _changes(query: Query, batch: Path) -> list[TableChanges]:
    return [_inserts(name, batch / f"{name}.parquet") for name in query.reads if name != "side_input"]


def _inserts(table: str, path: Path) -> TableChanges:
    rows = pq.read_table(path)
    return TableChanges(table, rows.append_column(OP, pa.repeat(pa.scalar(int(Op.INSERT), pa.int8()), rows.num_rows)))
