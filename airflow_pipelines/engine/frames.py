"""Batches as tables that SQL text can name: registered once per batch, forgotten when the batch is."""

from __future__ import annotations

import threading
import weakref
from collections import deque

from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.sessions import SparkSessions
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.identifiers import quote
from airflow_pipelines.sql.plan.nodes import merging


class Frames:
    """Names for batches in the SQL of all sessions.

    Making a DataFrame and a view costs 10-25 ms, so that a batch keeps its view for as long as something refers to it. Views are
    global temporary ones, which all sessions see.
    """

    def __init__(self, sessions: SparkSessions) -> None:
        """Name batches for ``sessions``."""
        self.sessions = sessions
        self._names: dict[int, str] = {}
        # A batch that was flushed, or read back into memory, is another object of the same number.
        self._users: dict[int, weakref.WeakSet[Batch]] = {}
        self._dead: deque[int] = deque()
        self._lock = threading.Lock()

    def table(self, batch: Batch) -> str:
        """The name under which SQL reads ``batch``."""
        with self._lock:
            users = self._users.setdefault(batch.number, weakref.WeakSet())
            if batch not in users:
                users.add(batch)
                weakref.finalize(batch, self._dead.append, batch.number)
            name = self._names.get(batch.number)
            if name is None:
                name = f"airflow_pipelines_batch_{batch.number}"
                session = self.sessions.small if batch.table is not None else self.sessions.large
                batch.frame(session).createOrReplaceGlobalTempView(name)
                self._names[batch.number] = name
        return f"global_temp.{name}"

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
                name = self._names.pop(number, None)
                if name is not None:
                    self.sessions.small.catalog.dropGlobalTempView(name)

    def close(self) -> None:
        """Drop all views."""
        with self._lock:
            names, self._names = list(self._names.values()), {}
        for name in names:
            self.sessions.small.catalog.dropGlobalTempView(name)

    def rows(self, batches: tuple[Batch, ...], single_partition: bool = False) -> str | None:
        """A table expression for the rows of several batches with their weights, or None when there are no batches."""
        if len(batches) < 2:
            return self.table(batches[0]) if batches else None
        hint = "/*+ COALESCE(1) */ " if single_partition else ""
        return f"(SELECT {hint}* FROM ({' UNION ALL '.join(f'SELECT * FROM {self.table(batch)}' for batch in batches)}))"

    def contents(self, trace: Trace, single_partition: bool = False) -> str:
        """A query for the contents of a relation's trace as a plain multiset, without weights."""
        names = [quote(name) for name in trace.keys]
        columns = ", ".join(names)
        rows = self.rows(trace.batches, single_partition)
        if rows is None:
            return f"SELECT {columns} FROM ({empty_rows(trace.schema)})"
        return expanded(trace, rows, insert_only=trace.insert_only)


def empty_rows(schema: StructType) -> str:
    """A query without rows that has the columns of a schema."""
    columns = ", ".join(f"CAST(NULL AS {field.dataType.simpleString()}) AS {quote(field.name)}" for field in schema.fields)
    return f"SELECT {columns} WHERE FALSE"


def expanded(trace: Trace, rows: str, *, insert_only: bool) -> str:
    """A query for plain rows, each as often as its weight says.

    :param rows: table expression of the columns of ``trace``, whose own batches do not matter here
    :param insert_only: whether every weight is 1
    """
    columns = ", ".join(quote(name) for name in trace.keys)
    if insert_only:
        return f"SELECT {columns} FROM {rows}"
    return f"SELECT {columns} FROM ({summed(trace, rows, '> 0')}) LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT({WEIGHT}))) AS `__n`"


def summed(trace: Trace, rows: str, keep: str | None = None) -> str:
    """A query that adds up equal rows of a trace; ``rows`` is a table expression of its columns.

    ``keep``: the condition on the weight of the rows that stay; by default those stay that have a sum other than 0, because a batch
    may change an accumulator of a row without changing its weight.
    """
    keys, groups = [], []
    for field in trace.schema.fields:
        if field.name in trace.sums:
            continue
        name = quote(field.name)
        if "variant" in field.dataType.simpleString():
            # A VARIANT cannot be grouped by, but its JSON text can, and says the same.
            keys.append(f"ANY_VALUE({name}) AS {name}")
            groups.append(f"TO_JSON(NAMED_STRUCT('v', {name}))")
        else:
            keys.append(name)
            groups.append(name)
    types = {field.name: field.dataType.simpleString() for field in trace.schema.fields}
    sums = [f"CAST({merging(name)}({quote(name)}) AS {types[name]}) AS {quote(name)}" for name in trace.sums]
    group = f" GROUP BY {', '.join(groups)}" if groups else ""
    changed = " OR ".join(f"SUM({quote(name)}) <> 0" for name in trace.sums if merging(name) == "SUM")
    kept = f"SUM({WEIGHT}) {keep}" if keep else changed
    return f"SELECT {', '.join([*keys, *sums])} FROM {rows}{group} HAVING {kept}"
