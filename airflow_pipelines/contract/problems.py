"""The error every HTTP surface speaks: a status, a code of the contract, a message that says what to do, details."""

from __future__ import annotations

from typing import Any

READ_ONLY_HEADER = "airflow-pipelines-read-only"
"""Set by the service on calls for a client that may only read."""


class Problem(Exception):
    """An error with its place in the contract's catalogue.

    Rendered as ``{"message": ..., "error_code": ..., "details": ...}`` with ``status`` as the HTTP status.
    """

    def __init__(self, status: int, error_code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.details = details if details is not None else {}

    def body(self) -> dict[str, Any]:
        """The response body."""
        return {"message": self.message, "error_code": self.error_code, "details": self.details}
