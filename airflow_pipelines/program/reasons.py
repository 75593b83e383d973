"""Why a part of a view is recomputed, and which part of the program asks for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_pipelines.program.places import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a relation is recomputed in full instead of following the changes of what it reads.

    :param message: a sentence for people
    :param span: the place in the program's text that it is about; None where that is not known, or where it is about no text
    :param expression: what stands there; empty when it is about the whole query
    """

    message: str
    span: Span | None = None
    expression: str = ""

    def __str__(self) -> str:
        return self.message

    def to_wire(self) -> dict[str, Any]:
        """The JSON form; without a place all positions are 0, as in messages about a program."""
        return {
            "message": self.message,
            "expression": self.expression,
            **(self.span or NOWHERE).to_wire(),
        }


@dataclass(frozen=True, slots=True)
class RecomputedPart:
    """A part of a view that is recomputed.

    :param view: the view
    :param relation: the view itself, or the internal relation of it, that is recomputed
    :param strategy: how it is evaluated (``full``, ``join by recomputing`` ...)
    :param reason: why
    """

    view: str
    relation: str
    strategy: str
    reason: Reason

    def to_wire(self) -> dict[str, Any]:
        """The JSON form."""
        return {"view": self.view, "relation": self.relation, "strategy": self.strategy, **self.reason.to_wire()}
