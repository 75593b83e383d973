"""The domain error of the service and its hosts: a code of the contract, a message that says what to do, and details."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode

READ_ONLY_HEADER = "airflow-pipelines-read-only"
"""The header that the service sets on calls for a client that may only read."""
QUERY_FAILED_HEADER = "airflow-pipelines-query-failed"
"""The header of an answer to a query that failed before its first row: the status is 200, and the body gives the reason."""
QUERY_FAILED_LINE = "ERROR: "
"""The prefix of the last line of a query's text that broke off; lines of rows begin with ``|`` or ``+``."""


class Problem(Exception):
    """An error with a code of the contract's catalogue.

    Over HTTP its body is ``{"message": ..., "error_code": ..., "details": ...}``, with the status that
    :mod:`airflow_pipelines.contract.http_status` has for the code.

    :param code: the code of the error
    :param message: what was wrong, where, and what to do
    :param details: a JSON value whose shape depends on the code
    """

    def __init__(self, code: ErrorCode, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details if details is not None else {}

    def body(self) -> dict[str, Any]:
        """Return the error in wire form.

        :returns: the body of an answer, which is also the form of a ``deployment_error``
        """
        return {"message": self.message, "error_code": self.code.value, "details": self.details}
