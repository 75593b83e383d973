"""Markers: hidden relations of one row that hold the progress of time, by the clock or by the data.

A query that depends on the clock reads markers like any other relation, so that the ordinary rules for deltas apply when a
marker moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.description import DERIVED

CLOCK_RELATION = "now$0"
"""The marker of the clock itself."""
CLOCK_COLUMN = "__now"
"""The column of the clock's marker, which is also the name of the clock's value in the texts of all markers."""
CLOCK_TYPE = "timestamp_ntz"


@dataclass(frozen=True, slots=True)
class Marker:
    """A relation of one column and at most one row.

    :param type: Spark DDL
    :param text: the value as Spark SQL over the clock (:data:`CLOCK_COLUMN`) and waterlines (:func:`waterline_input`). There is no
     row before the first tick; while a waterline is not known the value is NULL.
    """

    relation: str
    column: str
    type: str
    text: str
    follows_clock: bool = field(default=True, compare=False, metadata=DERIVED)
    """True if the value is over the clock; else it is over waterlines."""


CLOCK = Marker(CLOCK_RELATION, CLOCK_COLUMN, CLOCK_TYPE, quote(CLOCK_COLUMN))
"""The clock: the time of the newest tick, in UTC."""


def is_marker(relation: str) -> bool:
    """Return True if a relation that a view's query reads is a marker of the clock."""
    return relation.startswith("now$")


def waterline_input(relation: str, column: str) -> str:
    """Return the name of a column's waterline in the texts of markers.

    :param relation: the relation with the column
    :param column: the column with LATENESS
    """
    return f"__w:{relation}.{column}"
