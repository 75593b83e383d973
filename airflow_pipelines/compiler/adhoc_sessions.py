"""The sessions for ad-hoc requests, each used by one request at a time. To make a session takes longer than a small query."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from airflow_pipelines.engine.functions.python_functions import register_functions
from airflow_pipelines.engine.spark.sessions import sibling
from airflow_pipelines.engine.spark.value_bytes import register_value_bytes
from airflow_pipelines.program.functions import FunctionDefinition

MOST_IDLE = 16
"""The maximum number of idle sessions of an application. If there are more, the one that has waited longest is dropped."""

_Kind = tuple[tuple[tuple[str, str], ...], tuple[FunctionDefinition, ...]]
"""The kind of a session: its settings and Python functions."""

_idle: WeakKeyDictionary[SparkContext, deque[tuple[_Kind, SparkSession]]] = WeakKeyDictionary()
_lock = threading.Lock()


@contextmanager
def adhoc_session(
    spark: SparkSession, conf: Mapping[str, str], functions: tuple[FunctionDefinition, ...]
) -> Iterator[SparkSession]:
    """Yield a session for exclusive use within the block, which must drop the temporary views that it creates.

    Frames made in it stay valid afterwards.

    :param spark: any session of the application
    :param conf: its settings
    :param functions: the Python functions that its queries may call
    """
    kind = (tuple(conf.items()), functions)
    session = _waiting(spark.sparkContext, kind) or _make_session(spark, conf, functions)
    yield session
    # Not after an error, which may have left the session in an unknown state.
    with _lock:
        _idle.setdefault(spark.sparkContext, deque(maxlen=MOST_IDLE)).append((kind, session))


def _waiting(context: SparkContext, kind: _Kind) -> SparkSession | None:
    """Remove and return an idle session of a kind, or None."""
    with _lock:
        idle = _idle.get(context, deque())
        pair = next((entry for entry in reversed(idle) if entry[0] == kind), None)
        if pair is None:
            return None
        idle.remove(pair)
    return pair[1]


def _make_session(spark: SparkSession, conf: Mapping[str, str], functions: tuple[FunctionDefinition, ...]) -> SparkSession:
    session = sibling(spark, conf)
    register_value_bytes(session)
    register_functions(session, functions)
    return session
