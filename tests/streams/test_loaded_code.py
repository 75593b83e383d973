"""A package that is installed anew below a host that runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_pipelines.compiler.stream_binding import bind_streams
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.streams import loaded_code
from airflow_pipelines.streams.processes import ChildProcess, ProcessSettings


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two files, as it was loaded."""
    for room in ("streams", "datastream"):
        (tmp_path / room / "deep").mkdir(parents=True)
        (tmp_path / room / "deep" / "code.py").write_text("first = 1")
    monkeypatch.setattr(loaded_code, "_PACKAGE", tmp_path)
    monkeypatch.setattr(loaded_code, "_LOADED", frozenset(loaded_code._files(tmp_path)))
    return tmp_path


def test_what_python_and_others_leave_is_no_change(package: Path) -> None:
    (package / "streams" / "__pycache__").mkdir()
    (package / "streams" / "__pycache__" / "code.pyc").write_bytes(b"compiled")
    (package / "host.py").write_text("loaded by the host alone")
    loaded_code.refuse_changed_code()


@pytest.mark.parametrize("change", ["another", "removed", "touched"])
def test_no_process_is_started_with_other_code(package: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    file = package / "datastream" / "deep" / "code.py"
    match change:
        case "another":
            file.with_name("more.py").write_text("second = 2")
        case "removed":
            file.unlink()
        case "touched":
            os.utime(file, (1, 1))
    monkeypatch.setattr(loaded_code, "_LOADED_VERSION", "0.0.1")
    expected = r"version 0\.0\.1 by version .*airflow-pipelines hosts stop"
    with pytest.raises(loaded_code.LoadedCodeChangedError, match=expected):
        ChildProcess("no.module", ProcessSettings("/no/python"), print)
    with pytest.raises(Problem, match=expected) as refused:
        bind_streams([SourceFile("program.py", "raise SystemExit")])
    assert refused.value.code == "CompilerUnavailable", "so that the next start compiles the program again"
