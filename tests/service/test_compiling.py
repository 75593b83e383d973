"""Compiling while a caller waits."""

from __future__ import annotations

import pytest

from airflow_pipelines.compiler.stream_binding import EXECUTION_SECONDS
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.compiling import COMPILE_TIMEOUT_S
from airflow_pipelines.service.control_plane import ControlPlane


def test_whoever_only_compiles_waits_for_a_host_within_a_limit(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_pipelines.service.compiling.HOST_START_WAIT_S", 0.3)
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    with pytest.raises(Problem, match=r"did not come up within 0\.3 s") as refused:
        control_plane.programs.compile(ProgramSource("create table t (a int);"))
    assert (http_status(refused.value.code), refused.value.code) == (503, "CompilerUnavailable")


def test_the_author_of_a_script_that_does_not_end_is_told_before_the_service_gives_up() -> None:
    assert EXECUTION_SECONDS + 15 <= COMPILE_TIMEOUT_S
