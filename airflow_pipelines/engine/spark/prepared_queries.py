"""Prepared queries: queries over batches in memory that are planned once and then run over other batches.

Each step runs the same queries as the step before, over other rows. Planning them takes several times as long as running them.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType

from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.failures import is_of_query
from airflow_pipelines.engine.spark.planned_query import PlannedQuery, Result, plan_query
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory, LeafRows
from airflow_pipelines.engine.spark.rerun_probe import can_rerun
from airflow_pipelines.engine.spark.result_connection import ResultTooLargeError
from airflow_pipelines.engine.spark.sessions import SparkSessions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query of a step, and Spark's plan for it.

    :param query: SQL, in which batches are named by their places
    :param physical_plan: Spark's plan, node by node
    """

    query: str
    physical_plan: str


class PreparedQueries:
    """The prepared queries of one circuit. A query that cannot be prepared, or fails when run as one, is planned for each run."""

    def __init__(self, sessions: SparkSessions, limits: Limits) -> None:
        """Create an empty cache. The first call for an application tests whether its plans can be rerun."""
        self._limits = limits
        self._factories: tuple[LeafFactory, LeafFactory] | None = None
        if limits.plans.queries and can_rerun(sessions.small):
            interpreted = LeafFactory(sessions.small)
            self._factories = interpreted, interpreted.of(sessions.compiled)
        # None stands for a query that is planned for each run.
        self._known: OrderedDict[_Key, PlannedQuery | None] = OrderedDict()
        self._lock = threading.Lock()
        self._logged = False

    def result(self, parts: Sequence[str], batches: Sequence[LeafRows], planned_anew: Callable[[], Result]) -> Result:
        """Return the result of a query.

        :param parts: the query's text, split at the names of the batches
        :param batches: the batches in memory whose names are between each two parts; one may be named several times
        :param planned_anew: the function that evaluates the query without preparing it
        """
        request = self._request(parts, batches)
        if request is None:
            return planned_anew()
        try:
            query = self._query(request)
            if query is not None:
                return self._result(query, request)
        except _NotPreparedError as failure:
            cause = failure
        else:
            return planned_anew()
        # If this raises as well, the error is the query's own and says nothing about its plan.
        result = planned_anew()
        self._give_up(request, cause)
        return result

    def result_in_driver(self, parts: Sequence[str], batches: Sequence[LeafRows], most_bytes: int, lane: int) -> Result | None:
        """Return the result of a query without running a job.

        :param parts: see :meth:`result`
        :param batches: see :meth:`result`
        :param most_bytes: the maximum number of bytes of Arrow data of the result
        :param lane: the number of the calling thread's lane; each lane has a plan of its own
        :returns: the result; None for a query that needs a job, and for a larger result
        """
        request = self._request(parts, batches, lane)
        if request is None:
            return None
        try:
            query = self._query(request)
            return None if query is None or query.in_driver is None else self._result(query, request, most_bytes)
        except ResultTooLargeError:
            return None
        except _NotPreparedError as failure:
            self._give_up(request, failure)
            return None

    def plans(self) -> list[QueryPlan]:
        """Return the planned queries in the order in which they were last run."""
        with self._lock:
            planned = [(key, query) for key, query in self._known.items() if query is not None]
        return [QueryPlan(_text(key.parts, key.order), query.physical_plan) for key, query in planned]

    def close(self) -> None:
        """Remove all queries."""
        with self._lock:
            self._known.clear()

    def _request(self, parts: Sequence[str], batches: Sequence[LeafRows], lane: int = 0) -> _Request | None:
        """Return the request for a query.

        It is None if nothing is prepared, or the batches are too large to be copied for each run.
        """
        distinct = list({batch.number: batch for batch in batches}.values())
        if self._factories is None or sum(batch.memory_bytes for batch in distinct) > self._limits.plans.leaf_bytes:
            return None
        places = {batch.number: place for place, batch in enumerate(distinct)}
        order = tuple(places[batch.number] for batch in batches)
        compiled = sum(batch.rows for batch in distinct) > self._limits.plans.compiled_rows
        return _Request(_Key(tuple(parts), order, tuple(map(_signature, distinct)), compiled, lane), distinct)

    def _query(self, request: _Request) -> PlannedQuery | None:
        """Return the planned query of a request, or None for one that is planned for each run."""
        with self._lock:
            known = request.key in self._known
            query = self._known.get(request.key)
            if known:
                self._known.move_to_end(request.key)
        return query if known else self._plan(request)

    def _result(self, query: PlannedQuery, request: _Request, most_bytes: int = sys.maxsize) -> Result:
        """Return the result of a planned query.

        If the batches do not fit into its leaves, it is planned again with larger ones.
        """
        while True:
            try:
                result = query.result(request.batches, most_bytes)
            except ResultTooLargeError:
                raise
            except Exception as error:
                if is_of_query(error):
                    raise
                raise _NotPreparedError("run") from error
            if result is not None:
                return result
            query = self._plan(request)

    def _plan(self, request: _Request) -> PlannedQuery:
        key, factories = request.key, self._factories
        if factories is None:
            raise _NotPreparedError("planned")
        try:
            query = plan_query(factories[key.compiled], key.parts, key.order, request.batches)
        except Exception as error:
            raise _NotPreparedError("planned") from error
        self._remember(key, query)
        return query

    def _give_up(self, request: _Request, failure: _NotPreparedError) -> None:
        self._remember(request.key, None)
        with self._lock:
            first, self._logged = not self._logged, True
        log.log(
            logging.WARNING if first else logging.DEBUG,
            "A query could not be %s as a prepared one and is planned for each run: %s",
            failure,
            " ... ".join(request.key.parts),
            exc_info=failure.__cause__,
        )

    def _remember(self, key: _Key, query: PlannedQuery | None) -> None:
        with self._lock:
            self._known[key] = query
            self._known.move_to_end(key)
            size = sum(known.bytes for known in self._known.values() if known is not None)
            while len(self._known) > self._limits.plans.queries or (size > self._limits.plans.bytes and len(self._known) > 1):
                _, forgotten = self._known.popitem(last=False)
                size -= 0 if forgotten is None else forgotten.bytes


_Signature = tuple[tuple[str, DataType], ...]


@dataclass(frozen=True, slots=True)
class _Key:
    """The key of a planned query in the cache.

    :param parts: its text, split at the names of batches
    :param order: the index of the batch that is named between each two parts
    :param signatures: the columns of the batches
    :param compiled: True if it is compiled because the batches have many rows
    :param lane: the number of one of several plans of the same query
    """

    parts: tuple[str, ...]
    order: tuple[int, ...]
    signatures: tuple[_Signature, ...]
    compiled: bool
    lane: int


@dataclass(frozen=True, slots=True)
class _Request:
    """A query over batches, each given once."""

    key: _Key
    batches: Sequence[LeafRows]


class _NotPreparedError(Exception):
    """The failure of planning or running a prepared query, for a reason that may have nothing to do with the query."""


def _text(parts: Sequence[str], order: Sequence[int]) -> str:
    return parts[0] + "".join(f"batch_{place}{part}" for place, part in zip(order, parts[1:], strict=True))


def _signature(batch: LeafRows) -> _Signature:
    """Return the columns of a batch as Spark sees them."""
    return tuple((column.name, column.dataType) for column in batch.schema.fields)
