"""Begins a query over each large relation before a client does.

The first query over a relation takes seconds: the JVM loads and compiles what reads its files, or what merges its batches. So when
there is nothing else to do after a step that has filled a relation with more rows than memory keeps, or has taken rows away from it
for the first time, the first rows of a query are read in a thread of its own and thrown away.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from pyspark import SparkContext

from airflow_pipelines.compiler.adhoc import AdhocError, run_adhoc
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs
from airflow_pipelines.engine.spark.result_connection import AbortedError, ResultConnection
from airflow_pipelines.engine.spark.result_stream import streamed
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.queries.queries import POOL
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.names import display, quote
from airflow_pipelines.program.relations import ViewKind

REPEATS = 3
"""So often the first query of a form is begun: the JVM compiles in earnest what it has run some times."""
END_S = 10.0
"""How long the end of an incarnation waits for a query that has been cancelled."""


class FirstQueries:
    """Begins these queries for one incarnation. Used by the pipeline's thread.

    :param group: the name of their Spark job group
    :param log: says which of them failed
    """

    def __init__(self, context: SparkContext, group: str, log: PipelineLog) -> None:
        self._context = context
        self._group = group
        self._log = log
        self._begun: set[tuple[str, bool]] = set()
        """Relations, and whether each row was stored once when their query was begun: there are two forms of queries."""
        self._connection = ResultConnection()
        self._thread: threading.Thread | None = None

    def look(self, circuit: Circuit) -> None:
        """Begin queries over what has become large since the last look; returns at once."""
        if self._thread is not None and self._thread.is_alive():
            return
        names: list[str] = []
        for name, plain in tuple(_large(circuit, self._begun)):
            is_new = all(known is not plain for _, known in self._begun)
            names += [name] * (REPEATS if is_new else 1)
            self._begun.add((name, plain))
        if names:
            self._thread = threading.Thread(target=self._run, args=(circuit, names), name="first queries", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Break off what runs."""
        if self._thread is not None:
            self._connection.abort()
            cancel_jobs(self._context, self._group)
            self._thread.join(END_S)

    def _run(self, circuit: Circuit, names: list[str]) -> None:
        begin_jobs(self._context, self._group, "first queries over large relations", POOL)
        for name in names:
            try:
                # The result keeps the files that are read.
                result = run_adhoc(circuit, f"SELECT * FROM {quote(name)}")
                if result.frame is not None:
                    next(streamed(result.frame, self._connection))
            except AbortedError:
                return
            except (*SPARK_ERRORS, AdhocError, StorageError, LookupError) as error:
                # A client who asks gets the same error, or the batches are gone because the incarnation ends.
                self._log.info("the first query over %s failed: %s", display(name), error)


def _large(circuit: Circuit, known: set[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """The relations for queries that have files in a form that is not known."""
    program, traces = circuit.program, circuit.snapshot.traces
    for name, trace in traces.items():
        table, view = program.tables.get(name), program.views.get(name)
        queried = table.materialized if table is not None else view is not None and view.kind is ViewKind.MATERIALIZED
        if queried and any(batch.table is None for batch in trace.batches) and (form := (name, trace.insert_only)) not in known:
            yield form
