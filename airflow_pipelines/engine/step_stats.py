"""Statistics of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from airflow_pipelines.program.reasons import Reason


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """The statistics of one operator in one step.

    :param view: the view that the operator belongs to
    :param relation: the relation that the operator computes: the view itself, or an internal relation of it
    :param strategy: the operator's strategy (``linear``, ``join``, ``accumulators``, ``touched groups``, ``full`` ...), or the
        cheaper one that it used in this step (``all groups``, ``join by recomputing`` ...)
    :param rows_in: the number of rows of the deltas that it read
    :param rows_out: the number of rows of its output delta
    :param duration_ms: its time in milliseconds
    :param reason: the reason why it computed the relation anew, if it did
    """

    view: str
    relation: str
    strategy: str
    rows_in: int
    rows_out: int
    duration_ms: float
    reason: Reason | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the statistics as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "reason": None if self.reason is None else self.reason.to_wire()}


@dataclass(frozen=True, slots=True)
class StepStats:
    """The statistics of one step.

    :param step: its number
    :param duration_ms: its wall-clock time in milliseconds
    :param input_rows: the number of rows of the deltas of all tables
    :param operators: the statistics of the operators that had work to do
    :param table_rows: the number of rows of the delta of each table that had one
    """

    step: int
    duration_ms: float
    input_rows: int
    operators: tuple[OperatorStats, ...] = ()
    table_rows: Mapping[str, int] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """Return the statistics as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "operators": [each.to_wire() for each in self.operators], "table_rows": dict(self.table_rows)}
