"""The first query over each large relation, begun before a client does so.

The first query over a relation takes seconds: the JVM loads and compiles the code that reads its files or merges its batches. So
the first rows of a query are read in a thread of its own and thrown away. This happens when there is nothing else to do after a
step that has filled a relation with more rows than memory keeps, or has removed rows from it for the first time.
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
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.queries.queries import POOL
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.names import display, quote
from airflow_pipelines.program.relations import ViewKind

REPEATS = 3
"""The number of times that the first query of a form is run: the JVM optimises code only after it has run some times."""
END_S = 10.0
"""The seconds that the end of an incarnation waits for a cancelled query."""


class FirstQueries:
    """The first queries of one incarnation. The pipeline's thread uses it.

    :param group: the name of their Spark job group
    :param log: the log of failed queries
    """

    def __init__(self, context: SparkContext, group: str, log: PipelineLog) -> None:
        self._context = context
        self._group = group
        self._log = log
        self._begun: set[tuple[str, bool]] = set()
        """The relations whose queries were begun, each with True if each row was stored once then.

        There are two forms of queries.
        """
        self._connection = ResultConnection()
        self._thread: threading.Thread | None = None

    def look(self, circuit: Circuit) -> None:
        """Start queries over relations that have become large since the last call; return at once."""
        if self._thread is not None and self._thread.is_alive():
            return
        names: list[str] = []
        for name, plain in tuple(_find_large(circuit, self._begun)):
            is_new = all(known is not plain for _, known in self._begun)
            names += [name] * (REPEATS if is_new else 1)
            self._begun.add((name, plain))
        if names:
            self._thread = threading.Thread(target=self._run, args=(circuit, names), name="first queries", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Abort the queries in progress."""
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
                    next(stream_tables(result.frame, self._connection))
            except AbortedError:
                return
            except (*SPARK_ERRORS, AdhocError, StorageError, LookupError) as error:
                # A client's query gets the same error, or the batches are gone because the incarnation ends.
                self._log.info("the first query over %s failed: %s", display(name), error)


def _find_large(circuit: Circuit, known: set[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Yield the relations for queries that have files in a form that is not known."""
    program, traces = circuit.program, circuit.snapshot.traces
    for name, trace in traces.items():
        table, view = program.tables.get(name), program.views.get(name)
        queried = table.materialized if table is not None else view is not None and view.kind is ViewKind.MATERIALIZED
        if queried and any(batch.table is None for batch in trace.batches) and (form := (name, trace.insert_only)) not in known:
            yield form
