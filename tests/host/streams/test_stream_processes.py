"""The processes of a stream program: their files, environment and working folder, and what becomes of their output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.streams.stream_processes import FILES, StreamProcesses
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.program.streams import StreamProgram
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.python_environment.needs import PythonEnvironmentError
from airflow_pipelines.streams.worker.client import ProgramFailedError
from tests.streams.reading.programs import LIMIT, program, receive_all

pytestmark = pytest.mark.core

_HELPER = """
import os
from pathlib import Path

from airflow_pipelines.datastream.functions import SourceFunction


class Reading(SourceFunction):
    is_bounded = True

    def run(self, ctx):
        print("begins")
        yield from Path("data.txt").read_text().split()
        yield os.environ.get("OWN"), os.environ.get("SPARK_HOME"), os.environ.get("AIRFLOW_SECRET"), os.getcwd()


class Flooding(SourceFunction):
    is_bounded = True

    def run(self, ctx):
        for number in range(30_000):
            print("line", number)
        yield "done"


class Failing(SourceFunction):
    def run(self, ctx):
        yield 1
        raise ValueError("not this")
"""
_DEPENDENCIES = SourceFile("sub/helper.py", _HELPER), SourceFile("data.txt", "näh bäh")

Make = Callable[..., StreamProcesses]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PipelineLog]:
    log = PipelineLog(tmp_path / "log", "tested")
    yield log
    log.close()


@pytest.fixture
def make(processes: None, tmp_path: Path, log: PipelineLog) -> Iterator[Make]:
    made: list[StreamProcesses] = []

    def begin(plan: bytes, dependencies: dict[str, Any] | None = None) -> StreamProcesses:
        streams = StreamProgram("program", plan, dependencies=dependencies or {})
        made.append(StreamProcesses(streams, _DEPENDENCIES, "it", tmp_path / "storage", {"OWN": "mine"}, NO_REFERENCES, log))
        return made[-1]

    yield begin
    for each in made:
        each.close()


def _plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> bytes:
    """A program with a class of its module, which is found in the process of the program only by its files."""
    (tmp_path / "bound" / "sub").mkdir(parents=True)
    (tmp_path / "bound" / "sub" / "helper.py").write_text(_HELPER)
    monkeypatch.syspath_prepend(str(tmp_path / "bound"))
    from importlib import import_module
    from sys import modules

    try:
        helper = import_module("sub.helper")
        return program(lambda env: env.add_source(getattr(helper, name)()).uid("s").print())  # type: ignore[func-returns-value]
    finally:
        modules.pop("sub.helper", None)
        modules.pop("sub", None)


def test_a_process_has_files_variables_and_a_folder_of_its_program(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/spark")
    monkeypatch.setenv("AIRFLOW_SECRET", "secret")
    started = make(_plan(monkeypatch, tmp_path, "Reading"))
    folder = tmp_path / "storage" / FILES / "it"
    assert not folder.exists()
    received = receive_all(started.reading(), "s")
    assert received.all == ["näh", "bäh", ("mine", None, None, str(folder))]
    assert started.reading() is started.reading()
    _until_logged(tmp_path, "INFO [tested] stdout: begins")
    reading = started.reading()
    started.close()
    assert not reading.is_alive
    assert not folder.exists()


@pytest.mark.rest
def test_a_flood_of_output_is_in_the_log_and_holds_nothing_up(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = make(_plan(monkeypatch, tmp_path, "Flooding"))
    assert receive_all(started.reading(), "s").all == ["done"]
    _until_logged(tmp_path, "stdout: line 29999\n")


def test_an_error_shows_the_place_in_the_file_of_the_program(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = make(_plan(monkeypatch, tmp_path, "Failing"))
    with pytest.raises(ProgramFailedError, match=r"ValueError: not this \(sub/helper\.py:29\)") as raised:
        receive_all(started.reading(), "s")
    assert str(tmp_path) not in str(raised.value)


def test_what_an_earlier_run_left_is_gone(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "storage" / FILES / "it"
    folder.mkdir(parents=True)
    (folder / "left.txt").write_text("left")
    (folder / "data.txt").write_text("changed")
    started = make(_plan(monkeypatch, tmp_path, "Reading"))
    assert receive_all(started.reading(), "s").all[:2] == ["näh", "bäh"]
    assert not (folder / "left.txt").exists()


def test_an_archive_of_the_program_is_in_its_folder(make: Make, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inner.txt", "inside")
    settings = make(b"", {"archives": [[str(tmp_path / "a.zip"), "unpacked"]]}).settings
    assert settings.folder is not None
    assert (Path(settings.folder) / "unpacked" / "inner.txt").read_text() == "inside"
    assert (Path(settings.folder) / "data.txt").exists()


def test_an_environment_that_cannot_be_made_is_told(make: Make) -> None:
    started = make(b"", {"files": ["nowhere.py"]})
    with pytest.raises(PythonEnvironmentError, match=r"nowhere\.py"):
        started.reading()


def test_nothing_is_started_after_the_end(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = make(_plan(monkeypatch, tmp_path, "Reading"))
    started.stop_reading()
    with pytest.raises(StreamProgramError, match="ended with the pipeline"):
        started.reading()


def _until_logged(folder: Path, text: str) -> None:
    end = time.monotonic() + LIMIT
    while not any(text in path.read_text() for path in folder.glob("log*")):
        assert time.monotonic() < end, f"waited {LIMIT} s for {text!r}"
        time.sleep(0.02)
