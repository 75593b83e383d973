"""What the plugin answers instead of what was asked for, in the form of the service's errors."""

from __future__ import annotations

from typing import Any


class PageProblem(Exception):
    """A request that is answered with an error.

    :param status: HTTP status
    :param error_code: for programs
    :param message: for people: what was wrong, and what to do
    :param details: more for programs
    """

    def __init__(self, status: int, error_code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.details = details

    def body(self) -> dict[str, Any]:
        """The answer's body."""
        return {"message": self.message, "error_code": self.error_code, "details": self.details or {}}
