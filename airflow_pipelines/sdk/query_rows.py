"""The rows of ad-hoc queries while they arrive: a JSON object in each line, and the error in the last line if the query fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import httpx

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import QUERY_FAILED_HEADER
from airflow_pipelines.sdk.errors import PipelineAPIError

_LONGEST_IN_URL: Final = 2_000
"""The maximum number of bytes of SQL in the URL, whose length every proxy limits; a longer text is sent in the body."""


def query_request(name: str, query: str, result_format: str) -> tuple[str, dict[str, Any]]:
    """Return the method, and the parameters and body, of an ad-hoc request, depending on its length.

    :param name: the pipeline's name
    :param query: the SQL text
    :param result_format: ``json``, ``text`` and so on
    """
    params = {"format": result_format, "pipeline_name": name}
    if len(query.encode()) <= _LONGEST_IN_URL:
        return "GET", {"params": {"sql": query, **params}}
    return "POST", {"params": params, "json": {"sql": query}}


def query_failed(reason: str) -> PipelineAPIError:
    """Return the error of a query that failed while it ran. The service answers it with 200, since some rows may have been sent.

    :param reason: the service's message
    """
    return PipelineAPIError(200, ErrorCode.AD_HOC_QUERY_ERROR.value, f"the query failed: {reason.strip()}")


class QueryRows:
    """A reader of the lines of one answer.

    :param response: the answer, whose headers have arrived
    """

    def __init__(self, response: httpx.Response) -> None:
        self._failed = QUERY_FAILED_HEADER in response.headers
        self._names: list[str] | None = None

    def row(self, line: str | bytes) -> Mapping[str, Any] | None:
        """Parse the row in a line; return None if the line is empty.

        :param line: the line
        :raises PipelineAPIError: when the query failed
        """
        if not line.strip():
            return None
        row: dict[str, Any] = json.loads(line, parse_float=Decimal)
        # The service reports a failure in a last line of its own; a result's rows all have the same names.
        if list(row) == ["error"] and (self._failed or self._names not in (None, ["error"])):
            raise query_failed(str(row["error"]))
        self._names = list(row)
        return row
