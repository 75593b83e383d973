"""Says why Spark refuses a query where its own sentence does not say what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airflow_pipelines.engine.spark.analysis import QueryRefused

_ENTRIES = "SORT_ARRAY(MAP_ENTRIES(m)) gives what can be compared"
_SENTENCES: Sequence[tuple[str, re.Pattern[str], str]] = (
    (
        "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
        re.compile(r'Cannot resolve "(?P<what>.*)" due to .* on type "(?P<kind>[^"]*\bMAP<[^"]*)"', re.DOTALL),
        "{what} compares values of type {kind}, and MAPs cannot be compared there: " + _ENTRIES,
    ),
    (
        "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE",
        re.compile(r'type of column (?P<what>\S+) is "(?P<kind>[^"]*)"', re.DOTALL),
        "DISTINCT, UNION, INTERSECT and EXCEPT do not compare MAPs, and column {what} is a {kind}: GROUP BY does, and " + _ENTRIES,
    ),
    (
        "EXPRESSION_TYPE_IS_NOT_ORDERABLE",
        re.compile(r'expression "(?P<what>.*)" cannot be sorted because its type "(?P<kind>[^"]*\bMAP<[^"]*)"', re.DOTALL),
        "Rows cannot be partitioned or sorted by {what}, which is a {kind}: " + _ENTRIES,
    ),
    (
        "NUM_TABLE_VALUE_ALIASES_MISMATCH",
        re.compile(r"number of aliases: (?P<names>\d+); number of output columns: (?P<columns>\d+)"),
        "A relation has {columns} columns here, and names for {names}: name each of them, or none",
    ),
)
"""By Spark's condition and what it says: a sentence of our own."""


def explain_refusal(refused: QueryRefused) -> str:
    """Say why Spark refuses a query.

    :param refused: what Spark says
    :returns: a sentence of our own where there is one, Spark's otherwise
    """
    for condition, pattern, sentence in _SENTENCES:
        found = pattern.search(refused.message) if refused.condition == condition else None
        if found is not None:
            # The name that Spark has for what IN reads.
            return sentence.format(**found.groupdict()).replace("(listquery())", "(query)")
    return refused.message
