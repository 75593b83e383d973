"""Spark's function registries, without the functions that programs must not call.

A check of the program's text sees only what the parser understands. A function that is not registered cannot be called, in whatever
form or place: in queries, defaults, bounds of lateness, bodies of functions.
"""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.internals import JavaObject, java_session
from airflow_pipelines.program.allowed_functions import ALLOWED_FUNCTIONS

_NAME = re.compile(r"(?:.*\.)?(\w+)")
_others: WeakKeyDictionary[SparkContext, tuple[list[JavaObject], ...]] = WeakKeyDictionary()
"""Spark's identifiers of the forbidden functions, for each registry.

Listing them takes longer than everything else in creating a session.
"""


def remove_other_functions(session: SparkSession) -> None:
    """Remove every function that is not allowed from a session's registries. Other sessions keep theirs.

    :param session: a new session, which has the default functions of its application
    """
    state = java_session(session).sessionState()
    registries = (state.functionRegistry(), state.tableFunctionRegistry())
    context = session.sparkContext
    if context not in _others:
        _others[context] = tuple(_find_forbidden(registry.listFunction()) for registry in registries)
    for registry, identifiers in zip(registries, _others[context], strict=True):
        for identifier in identifiers:
            registry.dropFunction(identifier)


def _find_forbidden(identifiers: JavaObject) -> list[JavaObject]:
    """Return the identifiers in a Scala sequence that name functions which are not allowed."""
    names = [_NAME.fullmatch(text) for text in identifiers.mkString("\n").split("\n")]
    return [identifiers.apply(at) for at, name in enumerate(names) if name is not None and name[1] not in ALLOWED_FUNCTIONS]
