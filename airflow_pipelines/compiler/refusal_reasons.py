"""The reasons why Spark refuses a query, for cases in which its own message does not tell what to write instead."""

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
"""The sentences of our own, by Spark's condition and a pattern of its message."""


def explain_refusal(refused: QueryRefused) -> str:
    """Return the reason why Spark refuses a query.

    :param refused: Spark's refusal
    :returns: a sentence of our own if there is one, else Spark's message
    """
    for condition, pattern, sentence in _SENTENCES:
        match = pattern.search(refused.message) if refused.condition == condition else None
        if match is not None:
            # Spark's name for the query of IN.
            return sentence.format(**match.groupdict()).replace("(listquery())", "(query)")
    return refused.message
