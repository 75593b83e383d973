"""Which rows and groups of a plan need not be kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows that need not be kept: those for which ``condition`` holds, Spark SQL over the columns and the waterlines' inputs.

    ``of_state``: whether they are in the state of the operator that computes ``relation``, or in the relation's own trace.
    """

    relation: str
    condition: str
    of_state: bool
