"""Answers to ad-hoc queries that fail."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark import java_errors
from airflow_pipelines.host.api.routers.query import EvaluationFailed, _convert_errors


class JavaError(Py4JJavaError):
    """An exception of the JVM that is known by its stack."""

    def __init__(self) -> None:
        self.errmsg = ""

    def __str__(self) -> str:
        return "an error of Java"


def problem_of(error: Exception) -> Problem:
    with pytest.raises(Problem) as raised, _convert_errors(EvaluationFailed):
        raise error
    return raised.value


def test_a_request_without_memory_has_a_status_in_all_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_errors, "java_stack", lambda _: "java.lang.OutOfMemoryError: Java heap space")
    for error in (JavaError(), MemoryError("OutOfMemoryError: Java heap space")):
        problem = problem_of(error)
        assert type(problem) is Problem, "an evaluation that fails has the status 200 in text and JSON"
        assert problem.code == "AdHocQueryError"
        assert "for which the host has no memory (OutOfMemoryError: Java heap space). Make shorter texts" in problem.message


def test_what_fails_otherwise_is_an_evaluation_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_errors, "java_stack", lambda _: "java.lang.IllegalStateException: odd")
    assert type(problem_of(JavaError())) is EvaluationFailed
