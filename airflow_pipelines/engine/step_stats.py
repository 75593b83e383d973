"""Statistics of a step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """One stage of one view in one step: rows of the deltas it read and gave, and its time in milliseconds.

    ``strategy``: what the stage says of itself (``linear``, ``join``, ``accumulators``, ``touched groups``, ``full`` ...), or what
    the step did instead because it cost less (``all groups``, ``join by recomputing`` ...).
    """

    view: str
    strategy: str
    rows_in: int
    rows_out: int
    duration_ms: float


@dataclass(frozen=True, slots=True)
class StepStats:
    """One step: its number, wall-clock time in milliseconds, rows of all table deltas, and the stages that had something to do."""

    step: int
    duration_ms: float
    input_rows: int
    operators: tuple[OperatorStats, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """The statistics as JSON."""
        return asdict(self)
