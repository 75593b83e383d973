"""Queries over batches in memory that are parsed, analysed and planned once and then run over other batches.

A step asks the same questions as the step before, over other rows; to plan them takes several times as long as to run them.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.failures import is_of_query
from airflow_pipelines.engine.spark.planned_query import PlannedQuery, Result, plan_query
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory
from airflow_pipelines.engine.spark.rerun_probe import can_rerun

log = logging.getLogger(__name__)


class PreparedQueries:
    """The planned queries of one session. What cannot be prepared, or not be run so, is planned for each run."""

    def __init__(self, session: SparkSession, limits: Limits = DEFAULT_LIMITS) -> None:
        """No query yet. The first time for a session, this tries whether its plans can be run again."""
        self._limits = limits
        self._maker = LeafFactory(session) if limits.prepared_queries and can_rerun(session) else None
        # None: a query that is planned for each run.
        self._known: OrderedDict[_Key, PlannedQuery | None] = OrderedDict()
        self._lock = threading.Lock()
        self._logged = False

    def result(self, parts: Sequence[str], batches: Sequence[Batch], planned_anew: Callable[[], Result]) -> Result:
        """The result of a query.

        :param parts: the query's text without the names of the batches
        :param batches: what stands between each two parts: batches in memory, each perhaps several times
        :param planned_anew: gives the result in the ordinary way
        """
        distinct = list({batch.number: batch for batch in batches}.values())
        if self._maker is None or sum(batch.table.nbytes for batch in distinct) > self._limits.leaf_bytes:
            return planned_anew()
        places = {batch.number: place for place, batch in enumerate(distinct)}
        order = tuple(places[batch.number] for batch in batches)
        key = (tuple(parts), order, tuple(_signature(batch) for batch in distinct))
        with self._lock:
            known = key in self._known
            query = self._known.get(key)
            if known:
                self._known.move_to_end(key)
        if known and query is None:
            return planned_anew()
        try:
            return self._result(query or self._planned(key, self._maker, distinct), key, self._maker, distinct)
        except _NotPreparedError as failure:
            cause = failure
        # An error that the query raises in the ordinary way as well is its own, and says nothing about its plan.
        result = planned_anew()
        self._give_up(key, cause)
        return result

    def close(self) -> None:
        """Forget all queries."""
        with self._lock:
            self._known.clear()

    def _result(self, query: PlannedQuery, key: _Key, maker: LeafFactory, batches: Sequence[Batch]) -> Result:
        """The result of a planned query, planned again with more room while the batches have become too large for its leaves."""
        while True:
            try:
                found = query.result(batches)
            except Exception as error:
                if is_of_query(error):
                    raise
                raise _NotPreparedError("run") from error
            if found is not None:
                return found
            query = self._planned(key, maker, batches)

    def _planned(self, key: _Key, maker: LeafFactory, batches: Sequence[Batch]) -> PlannedQuery:
        parts, order, _ = key
        try:
            query = plan_query(maker, parts, order, batches)
        except Exception as error:
            raise _NotPreparedError("planned") from error
        self._remember(key, query)
        return query

    def _give_up(self, key: _Key, failure: _NotPreparedError) -> None:
        self._remember(key, None)
        with self._lock:
            first, self._logged = not self._logged, True
        log.log(
            logging.WARNING if first else logging.DEBUG,
            "A query could not be %s as a prepared one and is planned for each run: %s",
            failure,
            " ... ".join(key[0]),
            exc_info=failure.__cause__,
        )

    def _remember(self, key: _Key, query: PlannedQuery | None) -> None:
        with self._lock:
            self._known[key] = query
            self._known.move_to_end(key)
            held = sum(known.bytes for known in self._known.values() if known is not None)
            while len(self._known) > self._limits.prepared_queries or (held > self._limits.prepared_bytes and len(self._known) > 1):
                _, forgotten = self._known.popitem(last=False)
                held -= 0 if forgotten is None else forgotten.bytes


_Key = tuple[tuple[str, ...], tuple[int, ...], tuple[Any, ...]]
"""A query's parts, which batch stands between each two, and what the batches look like."""


class _NotPreparedError(Exception):
    """A query could not be had as a prepared one, for a reason that may have nothing to do with the query."""


def _signature(batch: Batch) -> tuple[Any, ...]:
    """What a batch's rows look like to Spark."""
    return tuple((column.name, column.dataType) for column in batch.schema.fields)
