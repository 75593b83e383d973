"""Groups by session whose keys, times and values are columns as they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.sql.plan.ir.aggregate import Accumulator, KeptValue


class SessionTime(Enum):
    """A time of a session."""

    START = "start"
    """That of its first row."""
    END = "end"
    """When the gap after its last row ends."""


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """The sessions of the rows of a key, and what is added up of the rows of each.

    A row that comes more than the gap after the one before it starts a new session; rows without a time are in none.

    :param keys: the columns that say whose session it is
    :param time: the column with the time of a row
    :param gap: in microseconds
    :param accumulators: what is added up, of columns
    :param outputs: what the query gives, in the order of its columns: a time of the session, a column of its key, or a total
    """

    keys: tuple[str, ...]
    time: str
    gap: int
    accumulators: tuple[Accumulator, ...]
    outputs: tuple[SessionTime | str | KeptValue, ...]
