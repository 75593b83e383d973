"""What can go wrong in a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A row of ``relation``'s change that makes a step fail; values that JSON does not have are texts."""

    relation: str
    row: Mapping[str, Any]


class StepError(Exception):
    """A step failed as a whole and nothing of it is kept.

    :param view: the relation whose evaluation failed
    :param condition: Spark's error condition (``DIVIDE_BY_ZERO`` ...), or the exception's class
    :param message: a short cause
    :param expression: the failing expression's text as far as Spark tells, or None
    :param failing_row: a row that is enough to fail, when there is one and it was found
    :param trace: for a log, the whole of an error that the message does not explain, such as a fault within Java
    """

    def __init__(
        self,
        view: str,
        condition: str,
        message: str,
        expression: str | None = None,
        failing_row: FailingRow | None = None,
        trace: str | None = None,
    ) -> None:
        super().__init__(f"view {view!r}: {condition}: {message}")
        self.view = view
        self.condition = condition
        self.message = message
        self.expression = expression
        self.failing_row = failing_row
        self.trace = trace
