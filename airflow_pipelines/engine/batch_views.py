"""Batches as tables that SQL text can name, and the running of such text."""

from __future__ import annotations

import re
import threading
import weakref
from collections import OrderedDict, deque

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.functions.value_bytes import VALUE_BYTES
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.planned_query import Result
from airflow_pipelines.engine.spark.prepared_queries import PreparedQueries
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.storage.batch_store import Verification
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.merge import merging
from airflow_pipelines.sql.rewrite.determinism.total_order import sortable

_VIEW = "airflow_pipelines_batch_"
_PREFIX = f"global_temp.{_VIEW}"
_NUMBERS = re.compile(rf"\b{re.escape(_PREFIX)}(\d+)\b")


class BatchViews:
    """Names for batches in SQL, and ways to run queries that have such names.

    Making a DataFrame and a view costs 10-25 ms: it is done when a query needs it, and a batch keeps its view for as long as
    something refers to the batch. Views are global temporary ones, which all sessions see.
    """

    def __init__(self, sessions: SparkSessions, limits: Limits = DEFAULT_LIMITS) -> None:
        """Name batches for ``sessions``."""
        self.sessions = sessions
        self._limits = limits
        self._prepared = PreparedQueries(sessions.small, limits)
        self._views: set[int] = set()
        self._bundles: OrderedDict[tuple[int, ...], Batch] = OrderedDict()
        # A batch that was flushed, or read back into memory, is another object of the same number.
        self._users: dict[int, weakref.WeakSet[Batch]] = {}
        self._dead: deque[int] = deque()
        self._lock = threading.Lock()

    def table(self, batch: Batch) -> str:
        """The name under which queries that go through :meth:`query` or :meth:`result` read ``batch``."""
        with self._lock:
            users = self._users.setdefault(batch.number, weakref.WeakSet())
            if batch not in users:
                users.add(batch)
                weakref.finalize(batch, self._dead.append, batch.number)
        return f"{_PREFIX}{batch.number}"

    def query(self, session: SparkSession, text: str) -> DataFrame:
        """A query over batches by their names."""
        return session.sql(self.known(text))

    def known(self, text: str) -> str:
        """The query itself, after all sessions know the batches that it names."""
        for number in dict.fromkeys(map(int, _NUMBERS.findall(text))):
            with self._lock:
                if number in self._views:
                    self._reopen(number)
                    continue
                batch = self._batch(number)
                session = self.sessions.small if batch.table is not None else self.sessions.large
                batch.frame(session).createOrReplaceGlobalTempView(f"{_VIEW}{number}")
                self._views.add(number)
        return text

    def result(self, text: str) -> Result:
        """The result of a query that reads only batches in memory: one job of one task."""
        parts = _NUMBERS.split(text)
        with self._lock:
            batches = [self._batch(int(number)) for number in parts[1::2]]

        def planned_anew() -> Result:
            frame = self.query(self.sessions.small, text)
            return Result(collected(frame), frame.schema)

        if batches and all(batch.table is not None for batch in batches):
            return self._prepared.result(parts[::2], batches, planned_anew)
        return planned_anew()

    def _batch(self, number: int) -> Batch:
        """A batch that has been named; one with its rows in memory if there is one."""
        users = list(self._users.get(number, ()))
        if not users:
            raise LookupError(f"batch {number} is gone, but a query names it")
        return next((batch for batch in users if batch.table is not None), users[0])

    def _reopen(self, number: int) -> None:
        """Open the files of a batch that has a view, where each opening is to be verified."""
        for batch in list(self._users.get(number, ()))[:1]:
            if batch.table is None and batch.store is not None and batch.store.verification is Verification.ALWAYS:
                batch.store.verify(batch.files)

    def sweep(self, keep: int = 0) -> None:
        """Drop the views of batches that nothing refers to any more; up to ``keep`` of them may wait for a better moment."""
        if len(self._dead) <= keep:
            return
        while self._dead:
            number = self._dead.popleft()
            # Dropped under the lock, so that nobody is given the name meanwhile.
            with self._lock:
                if self._users.get(number):
                    continue
                self._users.pop(number, None)
                if number in self._views:
                    self._views.discard(number)
                    self.sessions.small.catalog.dropGlobalTempView(f"{_VIEW}{number}")

    def close(self) -> None:
        """Drop all views and forget all plans."""
        with self._lock:
            views, self._views = self._views, set()
            self._bundles.clear()
        for number in views:
            self.sessions.small.catalog.dropGlobalTempView(f"{_VIEW}{number}")
        self._prepared.close()

    def rows(self, batches: tuple[Batch, ...], single_partition: bool = False) -> str | None:
        """A table expression for the rows of several batches with their weights, or None when there are no batches."""
        if single_partition and len(batches) > 1 and all(batch.table is not None for batch in batches):
            batches = self._bundled(batches)
        if len(batches) < 2:
            return self.table(batches[0]) if batches else None
        hint = "/*+ COALESCE(1) */ " if single_partition else ""
        return f"(SELECT {hint}* FROM ({' UNION ALL '.join(f'SELECT * FROM {self.table(batch)}' for batch in batches)}))"

    def _bundled(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Batches in memory with the newest ones as one: the same text then serves however many there are."""
        newest, rows = len(batches), 0
        while newest and rows + batches[newest - 1].rows <= self._limits.bundled_rows:
            newest -= 1
            rows += batches[newest].rows
        if len(batches) - newest < 2:
            return batches
        numbers = tuple(batch.number for batch in batches[newest:])
        with self._lock:
            bundle = self._bundles.pop(numbers, None)
            if bundle is None:
                table = pa.concat_tables([batch.table for batch in batches[newest:]])
                insert_only = all(batch.insert_only for batch in batches[newest:])
                bundle = Batch(batches[0].schema, table.num_rows, table, insert_only=insert_only)
            self._bundles[numbers] = bundle
            while len(self._bundles) > self._limits.bundles:
                self._bundles.popitem(last=False)
        return (*batches[:newest], bundle)

    def contents(self, trace: Trace, single_partition: bool = False) -> str:
        """A query for the contents of a relation's trace as a plain multiset, without weights."""
        names = [quote(name) for name in trace.keys]
        columns = ", ".join(names)
        rows = self.rows(trace.batches, single_partition)
        if rows is None:
            return f"SELECT {columns} FROM ({empty_sql(trace.schema)})"
        return expanded_sql(trace, rows, insert_only=trace.insert_only)


def empty_sql(schema: StructType) -> str:
    """A query without rows that has the columns of a schema."""
    columns = ", ".join(f"CAST(NULL AS {type_text(field.dataType)}) AS {quote(field.name)}" for field in schema.fields)
    return f"SELECT {columns} WHERE FALSE"


def expanded_sql(trace: Trace, rows: str, *, insert_only: bool) -> str:
    """A query for plain rows, each as often as its weight says.

    :param rows: table expression of the columns of ``trace``, whose own batches do not matter here
    :param insert_only: whether every weight is 1
    """
    columns = ", ".join(quote(name) for name in trace.keys) or "1 AS `__one`"
    if insert_only:
        return f"SELECT {columns} FROM {rows}"
    consolidated = consolidated_sql(trace, rows, "> 0")
    return f"SELECT {columns} FROM ({consolidated}) LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT({WEIGHT}))) AS `__n`"


def consolidated_sql(trace: Trace, rows: str, keep: str | None = None) -> str:
    """A query that adds up equal rows of a trace; ``rows`` is a table expression of its columns.

    ``keep``: the condition on the weight of the rows that stay; by default those stay that have a sum other than 0, because a batch
    may change an accumulator of a row without changing its weight.
    """
    keys, groups = [], []
    for field in trace.schema.fields:
        if field.name in trace.sums:
            continue
        name = quote(field.name)
        kind = type_text(field.dataType)
        group = _grouping_key(name, kind)
        keys.append(name if group == name else f"ANY_VALUE({name}) AS {name}")
        groups.append(group)
    types = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    sums = [f"CAST({merging(name)}({quote(name)}) AS {types[name]}) AS {quote(name)}" for name in trace.sums]
    group = f" GROUP BY {', '.join(groups)}" if groups else ""
    changed = " OR ".join(f"SUM({quote(name)}) <> 0" for name in trace.sums if merging(name) == "SUM")
    kept = f"SUM({WEIGHT}) {keep}" if keep else changed
    return f"SELECT {', '.join([*keys, *sums])} FROM {rows}{group} HAVING {kept}"


def _grouping_key(name: str, kind: str) -> str:
    """An expression by which Spark groups a column of canonical values."""
    if "variant" in kind:
        # It cannot be grouped by, but its bytes can.
        return f"{VALUE_BYTES}({name})"
    # Grouped by itself, Spark 4.2 makes a zero of each NULL that a MAP of numbers holds.
    return sortable(name, kind) if "map<" in kind else name
