"""Clauses of Spark SQL that have no effect in a pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.program.messages import NO_EFFECT, ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.program.spans import Span

_ARRANGED = "the pipeline arranges the rows that it stores by itself"
_CONNECTED = "a pipeline keeps its rows itself, and they come and go through connectors: WITH ('connectors' = '[...]')"
_REPLACED = "a program says which relations there are, and replaces the one before it"
REASONS: Mapping[str, str] = {
    "CLUSTER BY": _ARRANGED,
    "CLUSTERED BY": _ARRANGED,
    "COMMENT": "what readers of the program should know is written after --",
    "DEFAULT COLLATION": "texts are compared letter by letter",
    "EXTERNAL": _CONNECTED,
    "GLOBAL": "a program has one name space",
    "IF NOT EXISTS": _REPLACED,
    "LOCATION": _CONNECTED,
    "NOT ENFORCED": "a primary key always holds, since a row replaces the one with its key",
    "OPTIONS": _CONNECTED,
    "OR REPLACE": _REPLACED,
    "PARTITIONED BY": _ARRANGED,
    "RELY": "keys are no hints for the planner",
    "ROW FORMAT": _CONNECTED,
    "SET": "it is a setting of another compiler",
    "SKEWED BY": _ARRANGED,
    "STORED AS": _CONNECTED,
    "TBLPROPERTIES": "properties that a pipeline knows are written WITH ('key' = 'value')",
    "USING": _CONNECTED,
    "WITH SCHEMA": "a view's columns follow from its query",
}
"""The clauses, each with the reason why it has no effect."""


class Ignored:
    """The clauses of one statement that have no effect, each kind with its first position."""

    def __init__(self) -> None:
        self._found: dict[str, Span] = {}

    def note(self, clause: str, span: Span) -> None:
        """Note a clause, which is one of :data:`REASONS`; of several of a kind only the first counts."""
        self._found.setdefault(clause, span)

    def warnings(self, source: SourceText) -> list[ProgramMessage]:
        """Return one warning for each kind of clause."""
        return [
            source.warning(span, NO_EFFECT, f"{clause} has no effect: {REASONS[clause]}") for clause, span in self._found.items()
        ]
