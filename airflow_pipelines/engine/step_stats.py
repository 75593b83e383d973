"""Statistics of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from airflow_pipelines.program.reasons import Reason


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """One operator in one step.

    :param view: the view that the operator belongs to
    :param relation: the view itself, or the internal relation of it, that the operator computes
    :param strategy: the operator's strategy (``linear``, ``join``, ``accumulators``, ``touched groups``, ``full`` ...), or what it
        did in this step because it cost less (``all groups``, ``join by recomputing`` ...)
    :param rows_in: rows of the deltas that it read
    :param rows_out: rows of the delta that it gave
    :param duration_ms: its time in milliseconds
    :param reason: why it computed the relation anew, where it did
    """

    view: str
    relation: str
    strategy: str
    rows_in: int
    rows_out: int
    duration_ms: float
    reason: Reason | None = None

    def to_wire(self) -> dict[str, Any]:
        """The statistics as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "reason": None if self.reason is None else self.reason.to_wire()}


@dataclass(frozen=True, slots=True)
class StepStats:
    """One step.

    :param step: its number
    :param duration_ms: its wall-clock time in milliseconds
    :param input_rows: rows of the deltas of all tables
    :param operators: the operators that had something to do
    :param table_rows: rows of the delta of each table that had one
    """

    step: int
    duration_ms: float
    input_rows: int
    operators: tuple[OperatorStats, ...] = ()
    table_rows: Mapping[str, int] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """The statistics as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "operators": [each.to_wire() for each in self.operators], "table_rows": dict(self.table_rows)}
