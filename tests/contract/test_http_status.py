from __future__ import annotations

import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status


@pytest.mark.parametrize("code", list(ErrorCode))
def test_each_error_has_the_status_of_an_error(code: ErrorCode) -> None:
    assert 400 <= http_status(code) < 600


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.UNKNOWN_PIPELINE_NAME, 404),
        (ErrorCode.DUPLICATE_NAME, 409),
        (ErrorCode.INVALID_PARAM, 400),
        (ErrorCode.TERMINATING, 410),
        (ErrorCode.API_CONNECTION_LIMIT, 429),
        (ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED, 503),
    ],
)
def test_a_code_has_the_status_that_the_contract_gives_it(code: ErrorCode, status: int) -> None:
    assert http_status(code) == status
