"""A test of Spark's internals, which must work as prepared queries expect: once per application, over synthetic rows."""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.spark.planned_query import PlannedQuery, plan_query
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory

log = logging.getLogger(__name__)

_Rows = Sequence[tuple[int, int]]
_Row = tuple[int | None, int | None]
_SCHEMA = StructType([StructField("k", LongType()), StructField("v", LongType())])
_CONTENTS: Sequence[_Rows] = (((1, 2), (2, 1), (3, 1)), (), ((2, 2),))
"""The rows of the leaves in one run after the other. The plan is made while they have none."""
_JOIN = ("SELECT l.v, COUNT(r.k) AS n FROM ", " l FULL JOIN ", " r ON l.k = r.v GROUP BY l.v")
"""A query that reads a leaf twice, and has a join above which Spark exchanges rows."""
_SUBQUERY = ("SELECT k, (SELECT MAX(v) FROM ", ") AS most FROM ", "")
"""A query with a plan that keeps its result, so that it must be planned for each run."""

_found: weakref.WeakKeyDictionary[SparkContext, bool] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def can_rerun(session: SparkSession) -> bool:
    """Return True if prepared queries read the current rows in each run.

    :param session: a session for small inputs; they all have the same settings, so one answers for the whole application
    """
    application = session.sparkContext
    with _lock:
        answer = _found.get(application)
        if answer is None:
            answer = _found[application] = _tried(session)
        return answer


def _tried(session: SparkSession) -> bool:
    try:
        seen = _sees_each_run(session)
    except Exception:
        log.exception("Queries are planned for each run: this Spark has other inner parts than those that are known")
        return False
    if not seen:
        log.error("Queries are planned for each run: a plan of this Spark does not see the rows of each run")
    return seen


def _sees_each_run(session: SparkSession) -> bool:
    factory = LeafFactory(session)
    join, subquery = (plan_query(factory, parts, (0, 0), [_batch(())]) for parts in (_JOIN, _SUBQUERY))
    return (
        join.runs_again
        and not subquery.runs_again
        and all(_answer(join, rows) == _expected_join(rows) for rows in _CONTENTS)
        and all(_answer(subquery, rows) == _expected_subquery(rows) for rows in _CONTENTS[:2])
    )


@dataclass(frozen=True, slots=True)
class _ProbeRows:
    """The rows of one run, as a leaf holds them."""

    table: pa.Table
    schema: StructType = _SCHEMA
    number: int = field(default_factory=itertools.count(1).__next__)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    @property
    def memory_bytes(self) -> int:
        """The size of the rows in bytes."""
        return int(self.table.nbytes)


def _batch(rows: _Rows) -> _ProbeRows:
    columns = {name: pa.array([row[at] for row in rows], pa.int64()) for at, name in enumerate(_SCHEMA.names)}
    return _ProbeRows(pa.table(columns))


def _answer(query: PlannedQuery, rows: _Rows) -> Counter[_Row] | None:
    result = query.result([_batch(rows)])
    return None if result is None else Counter(tuple(row.values()) for row in result.rows.to_pylist())


def _expected_join(rows: _Rows) -> Counter[_Row]:
    counts: Counter[int | None] = Counter()
    for k, v in rows:
        counts[v] += sum(other == k for _, other in rows)
    keys = {k for k, _ in rows}
    unmatched = sum(v not in keys for _, v in rows)
    if unmatched:
        counts[None] += unmatched
    return Counter(counts.items())


def _expected_subquery(rows: _Rows) -> Counter[_Row]:
    return Counter((k, max(v for _, v in rows)) for k, _ in rows)
