"""Spark's registries of functions, which every session of ours has without those that would be a door out of it.

A check of the text sees what a parser of ours understands of it; a function that is not registered cannot be called however it is
written, and wherever: in queries, defaults, bounds of lateness, bodies of functions.
"""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from airflow_pipelines.sql.program.allowed_functions import ALLOWED_FUNCTIONS

_NAME = re.compile(r"(?:.*\.)?(\w+)")
_others: WeakKeyDictionary[SparkContext, tuple[list[Any], ...]] = WeakKeyDictionary()
"""Spark's identifiers of what is not allowed, for each registry: to list them takes longer than all else in making a session."""


def remove_other_functions(session: SparkSession) -> None:
    """Take from a session's registries every function that is not allowed. Other sessions keep theirs.

    :param session: a new session, which has the functions that all sessions of its application are made with
    """
    state = session._jsparkSession.sessionState()
    registries = (state.functionRegistry(), state.tableFunctionRegistry())
    context = session.sparkContext
    if context not in _others:
        _others[context] = tuple(_not_allowed(registry.listFunction()) for registry in registries)
    for registry, identifiers in zip(registries, _others[context], strict=True):
        for identifier in identifiers:
            registry.dropFunction(identifier)


def _not_allowed(identifiers: Any) -> list[Any]:
    """Those of a Scala sequence of function identifiers that name a function which is not allowed."""
    names = [_NAME.fullmatch(text) for text in identifiers.mkString("\n").split("\n")]
    return [identifiers.apply(at) for at, name in enumerate(names) if name is not None and name[1] not in ALLOWED_FUNCTIONS]
