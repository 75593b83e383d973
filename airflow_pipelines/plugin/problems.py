"""The error answers of the plugin, in the form of the service's errors."""

from __future__ import annotations

from typing import Any


class PageProblem(Exception):
    """A request that is answered with an error.

    :param status: the HTTP status
    :param error_code: the code, for programs
    :param message: the message, for people: the problem, and its remedy
    :param details: more details, for programs
    """

    def __init__(self, status: int, error_code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.details = details

    def body(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return {"message": self.message, "error_code": self.error_code, "details": self.details or {}}
