"""The reasons why a part of a view is recomputed, and the spans of the program that cause it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_pipelines.program.spans import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a relation is recomputed in full instead of incrementally.

    :param message: a sentence for people
    :param span: the span in the program's text that causes it; None if it is not known, or there is no such text
    :param expression: the text of the span; empty if the whole query is the cause
    """

    message: str
    span: Span | None = None
    expression: str = ""

    def __str__(self) -> str:
        return self.message

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form; without a span all positions are 0, as in messages about a program."""
        return {
            "message": self.message,
            "expression": self.expression,
            **(self.span or NOWHERE).to_wire(),
        }


@dataclass(frozen=True, slots=True)
class RecomputedPart:
    """A part of a view that is recomputed.

    :param view: the view
    :param relation: the relation that is recomputed: the view itself, or an internal relation of it
    :param strategy: the strategy of its evaluation (``full``, ``join by recomputing`` ...)
    :param reason: the reason
    """

    view: str
    relation: str
    strategy: str
    reason: Reason

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"view": self.view, "relation": self.relation, "strategy": self.strategy, **self.reason.to_wire()}
