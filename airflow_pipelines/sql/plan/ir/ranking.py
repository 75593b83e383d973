"""A ranking function over columns without expressions: the parsed form of a window function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RankFunction(Enum):
    """The way in which ranks are counted."""

    ROW_NUMBER = "row_number"
    """Each row has its own rank."""
    RANK = "rank"
    """Rows that are equal in ORDER BY share a rank; the next rank is the number of the row."""
    DENSE_RANK = "dense_rank"
    """Rows that are equal in ORDER BY share a rank; the next rank is the next number."""


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column by which rows are ordered.

    :param name: its name
    :param descending: True if the greatest value comes first
    :param nulls_first: True if NULL comes before all values
    """

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rank of each row within its partition.

    :param function: the way in which ranks are counted
    :param partition: the columns of PARTITION BY
    :param order: the columns by which rows are ordered, the most significant first
    """

    function: RankFunction
    partition: tuple[str, ...]
    order: tuple[OrderColumn, ...]
