"""Groups by session whose keys, times and values are columns without expressions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.sql.plan.ir.aggregate import Accumulator, KeptValue


class SessionTime(Enum):
    """A time of a session."""

    START = "start"
    """The time of its first row."""
    END = "end"
    """The time at which the gap after its last row ends."""


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """The sessions of the rows of a key, and the totals of each session.

    A row that is more than the gap after the row before it starts a new session; rows without a time are in no session.

    :param keys: the columns of the key
    :param time: the column with the time of a row
    :param gap: the gap in microseconds
    :param accumulators: the totals of columns
    :param outputs: the query's columns in order: a time of the session, a column of its key, or a total
    """

    keys: tuple[str, ...]
    time: str
    gap: int
    accumulators: tuple[Accumulator, ...]
    outputs: tuple[SessionTime | str | KeptValue, ...]
