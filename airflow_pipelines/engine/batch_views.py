"""Views that give batches a name in SQL text, and queries over these views."""

from __future__ import annotations

import re
import threading
import weakref
from collections import deque
from collections.abc import Iterable

from cachetools import LRUCache
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, concat_batches
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.planned_query import Result
from airflow_pipelines.engine.spark.prepared_queries import PreparedQueries, QueryPlan
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.spark.value_bytes import VALUE_BYTES
from airflow_pipelines.engine.storage.batch_store import Verification
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import has_map, has_variant
from airflow_pipelines.rows.zsets import VERSION, Merge
from airflow_pipelines.sql.values.total_order import sortable

_VIEW = "airflow_pipelines_batch_"
_PREFIX = f"global_temp.{_VIEW}"
_BUNDLES = 200
"""The number of bundles that are cached."""
_NUMBERS = re.compile(rf"\b{re.escape(_PREFIX)}(\d+)\b")


class BatchViews:
    """Registry of the views that name batches in SQL, and runner of queries over them.

    It takes 10-25 ms to create a DataFrame and a view. So a view is created when a query first needs it, and stays for as long as
    something refers to its batch. Views are global temporary views, which all sessions see.
    """

    def __init__(self, sessions: SparkSessions, limits: Limits = DEFAULT_LIMITS) -> None:
        """:param sessions: the sessions in which the queries run."""
        self.sessions = sessions
        self._limits = limits
        self._prepared = PreparedQueries(sessions, limits)
        self._views: set[int] = set()
        # The bytes of each view's rows in memory, by the number of its batch.
        self._in_jvm: dict[int, int] = {}
        self._bundles: LRUCache[tuple[int, ...], Batch] = LRUCache(_BUNDLES)
        # The live objects of each number: a batch that was flushed, or read back into memory, is another object of the same number.
        self._users: dict[int, weakref.WeakSet[Batch]] = {}
        # The batches written to files for a query, by the number of the passing batch that they copy.
        self._written: dict[int, Batch] = {}
        self._dead: deque[int] = deque()
        self._lock = threading.Lock()

    def table(self, batch: Batch) -> str:
        """Return the name of a batch in queries for :meth:`query`, :meth:`with_views` and :meth:`result`."""
        with self._lock:
            users = self._users.setdefault(batch.number, weakref.WeakSet())
            if batch not in users:
                users.add(batch)
                weakref.finalize(batch, self._dead.append, batch.number)
        return f"{_PREFIX}{batch.number}"

    def query(self, session: SparkSession, text: str) -> DataFrame:
        """Return the DataFrame of a query over named batches."""
        return session.sql(self.with_views(text))

    def with_views(self, text: str) -> str:
        """Create the views of the batches that a query names, and return the query."""
        for number in dict.fromkeys(map(int, _NUMBERS.findall(text))):
            with self._lock:
                if number in self._views:
                    self._verify(number)
                    continue
                batch = self._make_readable(self._batch(number))
                session = self.sessions.small if batch.table is not None else self.sessions.large
                batch.frame(session, self._limits).createOrReplaceGlobalTempView(f"{_VIEW}{number}")
                self._views.add(number)
                self._in_jvm[number] = batch.memory_bytes
        return text

    def result(self, text: str) -> Result:
        """Run a query over batches in memory as one job of one task, and return its result."""
        parts = _NUMBERS.split(text)
        with self._lock:
            batches = [self._batch(int(number)) for number in parts[1::2]]

        def planned_anew() -> Result:
            frame = self.query(self.sessions.small, text)
            return Result(collected(frame), frame.schema)

        if batches and all(batch.table is not None for batch in batches):
            return self._prepared.result(parts[::2], batches, planned_anew)
        return planned_anew()

    def result_in_driver(self, text: str, most_bytes: int, lane: int = 0) -> Result | None:
        """Evaluate a query over batches in memory without a job, and return its result.

        :param text: the query
        :param most_bytes: the maximum number of bytes of Arrow data that the result may have
        :param lane: the number of the calling thread's lane; the same query can run in two lanes at the same time
        :returns: the result; None for a query that needs a job, and for a larger result
        """
        parts = _NUMBERS.split(text)
        with self._lock:
            batches = [self._batch(int(number)) for number in parts[1::2]]
        return self._prepared.result_in_driver(parts[::2], batches, most_bytes, lane)

    def find_batches(self, text: str) -> list[Batch]:
        """Return the batches that a query names, each once."""
        with self._lock:
            return [self._batch(number) for number in dict.fromkeys(map(int, _NUMBERS.findall(text)))]

    def plans(self) -> list[QueryPlan]:
        """Return the queries that are planned once and rerun over other batches, with their plans."""
        return self._prepared.plans()

    def _batch(self, number: int) -> Batch:
        """Return the batch of a view's number. Of several batches with the same rows, prefer one that has them in memory."""
        users = list(self._users.get(number, ()))
        if not users:
            raise LookupError(f"batch {number} is gone, but a query names it")
        return next((batch for batch in users if batch.table is not None), users[0])

    def _make_readable(self, batch: Batch) -> Batch:
        """Return a batch in the form that Spark reads.

        A batch too large to be held in memory is written to files, not copied to the JVM.
        """
        if not batch.is_passing or batch.store is None:
            return batch
        written = self._written[batch.number] = batch.in_files_only(batch.store)
        return written

    def _verify(self, number: int) -> None:
        """Verify the files of a batch that has a view, if each query has to verify the files that it reads."""
        for batch in list(self._users.get(number, ()))[:1]:
            if batch.table is None and batch.store is not None and batch.store.verification is Verification.ALWAYS:
                batch.store.verify(batch.files)

    def sweep(self, keep: int = 0) -> None:
        """Drop the views of batches that nothing refers to any more, and release files that were written for queries over them.

        :param keep: the number of dead views up to which nothing is dropped, provided that the JVM keeps few rows for them
        """
        with self._lock:
            self._written = {number: batch for number, batch in self._written.items() if self._users.get(number)}
        if (
            len(self._dead) <= keep
            and sum(self._in_jvm.get(number, 0) for number in list(self._dead)) <= self._limits.plans.leaf_bytes
        ):
            return
        while self._dead:
            number = self._dead.popleft()
            # Under the lock, so that no other thread gets the name meanwhile.
            with self._lock:
                if self._users.get(number):
                    continue
                self._users.pop(number, None)
                if number in self._views:
                    self._views.discard(number)
                    self._in_jvm.pop(number, None)
                    self.sessions.small.catalog.dropGlobalTempView(f"{_VIEW}{number}")

    def close(self) -> None:
        """Drop all views and forget all planned queries."""
        with self._lock:
            views, self._views = self._views, set()
            self._in_jvm.clear()
            self._written.clear()
            self._bundles.clear()
        for number in views:
            self.sessions.small.catalog.dropGlobalTempView(f"{_VIEW}{number}")
        self._prepared.close()

    def rows(self, batches: tuple[Batch, ...], single_partition: bool = False) -> str | None:
        """Return a table expression for the rows of several batches, with their weights.

        :param single_partition: True if the rows are to be in one partition
        :returns: the table expression; None when there are no batches
        """
        if single_partition and len(batches) > 1 and all(batch.table is not None for batch in batches):
            batches = self._bundle(batches)
        if len(batches) < 2:
            return self.table(batches[0]) if batches else None
        hint = "/*+ COALESCE(1) */ " if single_partition else ""
        return f"(SELECT {hint}* FROM ({' UNION ALL '.join(f'SELECT * FROM {self.table(batch)}' for batch in batches)}))"

    def _bundle(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Return the batches with the newest small ones joined into one, so that one prepared query serves any number of them."""
        newest, rows = len(batches), 0
        while newest and rows + batches[newest - 1].rows <= self._limits.merges.bundled_rows:
            newest -= 1
            rows += batches[newest].rows
        if len(batches) - newest < 2:
            return batches
        numbers = tuple(batch.number for batch in batches[newest:])
        with self._lock:
            bundle = self._bundles.get(numbers)
            if bundle is None:
                bundle = self._bundles[numbers] = concat_batches(batches[newest:])
        return (*batches[:newest], bundle)

    def contents(self, trace: Trace, single_partition: bool = False) -> str:
        """Return a query for the contents of a relation: each row as often as its weight says, without the weight."""
        names = [quote(name) for name in trace.columns]
        columns = ", ".join(names)
        rows = self.rows(trace.batches, single_partition)
        if rows is None:
            return f"SELECT {columns} FROM ({empty_sql(trace.schema)})"
        return expanded_sql(trace, rows, insert_only=trace.insert_only)


def empty_sql(schema: StructType) -> str:
    """Return a query that has the columns of a schema and no rows."""
    return empty_columns_sql((quote(field.name), type_text(field.dataType)) for field in schema.fields)


def empty_columns_sql(columns: Iterable[tuple[str, str]]) -> str:
    """Return a query with the given columns and no rows.

    Spark would treat NULLs in a SELECT list as constants and evaluate expressions over them during planning: ``MAP(k, v)`` would
    fail although there is no row.

    :param columns: pairs of a name, quoted where needed, and the Spark name of the type
    """
    names, kinds = zip(*columns, strict=True)
    values = ", ".join(f"CAST(NULL AS {kind})" for kind in kinds)
    return f"SELECT * FROM VALUES ({values}) AS __nothing({', '.join(names)}) WHERE FALSE"


def expanded_sql(trace: Trace, rows: str, *, insert_only: bool) -> str:
    """Return a query that repeats each row as often as its weight says, and drops the weight.

    :param trace: the trace that defines the columns; its batches do not matter
    :param rows: a table expression of these columns
    :param insert_only: True if every weight is 1
    """
    columns = ", ".join(quote(name) for name in trace.columns) or "1 AS `__one`"
    if insert_only:
        return f"SELECT {columns} FROM {rows}"
    consolidated = consolidated_sql(trace, rows, "> 0")
    return f"SELECT {columns} FROM ({consolidated}) LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT({WEIGHT}))) AS `__n`"


def consolidated_sql(trace: Trace, rows: str, keep: str | None = None) -> str:
    """Return a query that merges rows which are equal except for their weights and other sums.

    :param trace: the trace that defines the columns and which of them are sums; its batches do not matter
    :param rows: a table expression of these columns
    :param keep: the condition on the weight of the rows to keep. By default rows are kept that have any sum other than 0, because a
        batch may change an accumulator of a row without changing its weight
    """
    keys, groups = [], []
    for field in trace.schema.fields:
        if field.name in trace.merges:
            continue
        name = quote(field.name)
        kind = type_text(field.dataType)
        group = grouping_key(name, kind)
        keys.append(name if group == name else f"ANY_VALUE({name}) AS {name}")
        groups.append(group)
    types = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    merged = [f"CAST({_format_merge(name, merge)} AS {types[name]}) AS {quote(name)}" for name, merge in trace.merges.items()]
    group = f" GROUP BY {', '.join(groups)}" if groups else ""
    query = f"SELECT {', '.join([*keys, *merged])} FROM {rows}{group}"
    if keep is not None:
        return f"{query} HAVING SUM({WEIGHT}) {keep}"
    if not trace.drops_zeros:
        return query
    changed = " OR ".join(f"SUM({quote(name)}) <> 0" for name, merge in trace.merges.items() if merge is Merge.SUM)
    return f"{query} HAVING {changed}"


def _format_merge(name: str, merge: Merge) -> str:
    """Return the SQL expression of the merged value of a column for a key."""
    if merge is Merge.NEWEST:
        return f"MAX_BY({quote(name)}, {quote(VERSION)})"
    return f"{merge.value}({quote(name)})"


def grouping_key(name: str, kind: str) -> str:
    """Return the expression by which Spark groups a column of canonical values.

    :param name: the column as SQL
    :param kind: its type as Spark DDL
    """
    if has_variant(kind):
        # Spark cannot group by a VARIANT, but it can group by its bytes.
        return f"{VALUE_BYTES}({name})"
    # Spark 4.2 turns each NULL in a MAP of numbers into a zero when it groups by the MAP itself.
    return sortable(name, kind) if has_map(kind) else name
