from __future__ import annotations

import json

import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.service import errors


def test_an_answer_of_a_host_keeps_its_code_message_and_details() -> None:
    body = {"message": "It is being stopped.", "error_code": "Terminating", "details": {"a": 1}}
    problem = errors.of_host(410, json.dumps(body))
    assert problem.code is ErrorCode.TERMINATING
    assert problem.body() == body


@pytest.mark.parametrize("text", ["<html>", "[]", '{"detail": "Not Found"}'])
def test_an_answer_that_is_no_problem_of_this_release_says_what_its_status_was(text: str) -> None:
    problem = errors.of_host(418, text)
    assert problem.code is ErrorCode.RUNNER_INTERACTION_UNREACHABLE
    assert "418" in problem.message


def test_a_code_of_a_later_release_stays_in_the_message() -> None:
    problem = errors.of_host(418, '{"error_code": "OfALaterRelease", "message": "the pot is short and stout"}')
    assert problem.code is ErrorCode.RUNNER_INTERACTION_UNREACHABLE
    assert "418 OfALaterRelease: the pot is short and stout" in problem.message
