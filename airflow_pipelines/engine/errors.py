"""What can go wrong in a step."""

from __future__ import annotations


class StepError(Exception):
    """A step failed as a whole and nothing of it is kept.

    ``view``: the relation whose evaluation failed. ``expression``: the failing expression's text as far as Spark tells, or None.
    ``condition``: Spark's error condition (``DIVIDE_BY_ZERO`` ...), or the exception's class. ``message``: a short cause.
    """

    def __init__(self, view: str, condition: str, message: str, expression: str | None = None) -> None:
        super().__init__(f"view {view!r}: {condition}: {message}")
        self.view = view
        self.condition = condition
        self.message = message
        self.expression = expression
