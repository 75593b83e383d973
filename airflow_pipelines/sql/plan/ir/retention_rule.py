"""Which rows and groups of a plan need not be kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows that need not be kept.

    :param relation: the relation, or the one whose operator has them in its state
    :param condition: holds for these rows; Spark SQL over the columns and the waterlines' inputs
    :param of_state: whether they are in the state of the operator that computes ``relation``, or in the relation's own trace
    """

    relation: str
    condition: str
    of_state: bool
