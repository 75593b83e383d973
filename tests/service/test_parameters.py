"""How the service answers query parameters that make no sense."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

WRONG = [
    ("POST", "/v0/pipelines/p/stop?force=1", "The query parameter 'force' must be true or false, not '1'"),
    ("POST", "/v0/pipelines/p/stop?force=", "The query parameter 'force' must be true or false, not ''"),
    ("POST", "/v0/pipelines/p/start?from_checkpoint=x", "The query parameter 'from_checkpoint' must be a UUID, not 'x'"),
    ("GET", "/v0/pipelines?selector=some", "The query parameter 'selector' must be 'all', 'status' or"),
]


@pytest.mark.parametrize(("method", "path", "message"), WRONG)
def test_a_wrong_query_parameter_is_named_with_what_it_may_be(app: FastAPI, method: str, path: str, message: str) -> None:
    answer = TestClient(app, "http://127.0.0.1").request(method, path)
    assert answer.status_code == 400
    assert answer.json()["error_code"] == "InvalidParam"
    assert answer.json()["message"].startswith(message)


def test_what_is_true_may_be_in_capitals(app: FastAPI) -> None:
    client = TestClient(app, "http://127.0.0.1")
    client.post("/v0/pipelines", json={"name": "p", "program_code": ""})
    assert client.post("/v0/pipelines/p/stop?force=TRUE").status_code == 202


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [("start?initial=Sleeping", 405, "UnsupportedPipelineAction"), ("activate?initial=Standby", 400, "InvalidActivateStatus")],
)
def test_the_contract_has_codes_of_its_own_for_states(app: FastAPI, call: str, status: int, code: str) -> None:
    answer = TestClient(app, "http://127.0.0.1").post(f"/v0/pipelines/p/{call}")
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
