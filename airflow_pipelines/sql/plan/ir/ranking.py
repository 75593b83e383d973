"""A ranking function over columns as they are: what a window function says, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RankFunction(Enum):
    """How places are counted."""

    ROW_NUMBER = "row_number"
    """Each row has its own place."""
    RANK = "rank"
    """Rows that ORDER BY holds equal share a place; the next place is that of the row's number."""
    DENSE_RANK = "dense_rank"
    """Rows that ORDER BY holds equal share a place; the next place is the next number."""


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column by which rows are ordered.

    :param name: its name
    :param descending: whether the greatest value comes first
    :param nulls_first: whether NULL comes before all values
    """

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Gives each row a place among those that agree with it in some columns.

    :param function: how places are counted
    :param partition: the columns in which they agree
    :param order: the columns by which they are ordered, the first one decides first
    """

    function: RankFunction
    partition: tuple[str, ...]
    order: tuple[OrderColumn, ...]
