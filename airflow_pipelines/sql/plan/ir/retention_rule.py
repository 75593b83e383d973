"""The rows and groups of a plan that need not be kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """A rule for rows that need not be kept.

    :param relation: the relation, or the relation whose operator holds the rows in its state
    :param condition: the condition that holds for these rows: Spark SQL over the columns and the waterlines' inputs
    :param of_state: True if the rows are in the state of the operator that computes ``relation``, False if they are in its trace
    """

    relation: str
    condition: str
    of_state: bool
