"""Completion tokens."""

from __future__ import annotations

import base64
from uuid import uuid4

import pytest

from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.inputs.tokens import CompletionToken


def test_a_token_survives_being_passed_back() -> None:
    token = CompletionToken(uuid4(), "t.api-ingress-1>>?", 12)
    assert CompletionToken.decode(token.encode()) == token
    # A plus sign that was not escaped in a URL arrives as a space.
    assert CompletionToken.decode(token.encode().replace("+", " ")) == token


@pytest.mark.parametrize(
    "text", ["", "x", "====", base64.b64encode(b"{}").decode(), base64.b64encode(b'{"u":1,"e":2,"c":3}').decode()]
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        CompletionToken.decode(text)
    assert (http_status(caught.value.code), caught.value.code) == (400, "InvalidParam")
