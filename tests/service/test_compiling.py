"""Compiling while a caller waits."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from airflow_pipelines.compiler import stream_binding, work_limit
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.runs.fleet import COMPILE_LIMIT_S
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.compiling import PATIENCE_S
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostTimeout
from tests.service.hosted import host_row


def test_whoever_only_compiles_waits_for_a_host_within_a_limit(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_pipelines.service.compiling.HOST_START_WAIT_S", 0.3)
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    with pytest.raises(Problem, match=r"did not come up within 0\.3 s") as refused:
        control_plane.programs.compile(ProgramSource("create table t (a int);"))
    assert (http_status(refused.value.code), refused.value.code) == (503, "CompilerUnavailable")


def test_a_compiler_that_comes_to_no_end_says_so_before_the_service_gives_up() -> None:
    assert stream_binding.GUARD * stream_binding.EXECUTION_SECONDS + work_limit.GUARD * COMPILE_LIMIT_S < PATIENCE_S


def test_a_request_is_told_that_the_compiler_is_at_work(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)

    def call(*_: object, **__: object) -> httpx.Response:
        raise HostTimeout("POST /compile: no answer within 110 s")

    monkeypatch.setattr(control_plane.compiler, "host", lambda: host)
    monkeypatch.setattr(control_plane.hosts, "call", call)
    source = ProgramSource("create table t (a int);")
    for ask in (lambda: control_plane.programs.compile(source), lambda: control_plane.programs.difference(source, source)):
        with pytest.raises(Problem, match=r"still at work: POST /compile.*Its host lives") as told:
            ask()
        assert (http_status(told.value.code), told.value.code) == (504, "CompilerTimeout")
