from __future__ import annotations

import importlib
import logging
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.functions import MapFunction
from airflow_pipelines.datastream.python_dependencies import PythonDependencies
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.python_environment.needs import PythonEnvironmentError, PythonNeeds
from tests.streams.python_environment.packages import wheel


@pytest.fixture(autouse=True)
def _this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith("dependency_of_a_test_")]:
        del sys.modules[name]


def test_files_folders_and_archives_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "dependency_of_a_test_1.py").write_text("X = 1\n")
    (tmp_path / "b" / "dependency_of_a_test_2").mkdir(parents=True)
    (tmp_path / "b" / "dependency_of_a_test_2" / "__init__.py").write_text("X = 2\n")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("dependency_of_a_test_3.py", "X = 3\n")
    files = [tmp_path / "a" / "dependency_of_a_test_1.py", tmp_path / "b", tmp_path / "c.zip"]
    for _ in range(2):
        with PythonDependencies(files).in_this_process():
            pass
    assert [importlib.import_module(f"dependency_of_a_test_{number}").X for number in (1, 2, 3)] == [1, 2, 3]
    assert sys.path.count(str(tmp_path / "b")) == 1
    assert not (tmp_path / "user").exists()


@pytest.mark.processes
def test_requirements_can_be_imported(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    wheel(packages, "dependency_of_a_test_4", "1.0")
    file = tmp_path / "requirements.txt"
    file.write_text("dependency_of_a_test_4==1.0\n")
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_python_requirements(str(file), str(packages))
    versions = environment.from_collection([0]).map(lambda _: importlib.import_module("dependency_of_a_test_4").VERSION)
    assert list(versions.execute_and_collect()) == ["1.0"]
    file.write_text("dependency_of_a_test_4==2.0\n")
    with pytest.raises(PythonEnvironmentError, match=r"(?s)'dependency_of_a_test_4==2.0' cannot be .*No matching .*_4==2.0"):
        versions.execute_and_collect()


@pytest.mark.processes
def test_a_package_that_was_imported_already_stays_and_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wheel(tmp_path / "packages", "tenacity", "99.0")
    importlib.import_module("tenacity")
    (tmp_path / "requirements.txt").write_text("tenacity==99.0\n")
    dependencies = PythonDependencies(requirements=(tmp_path / "requirements.txt", tmp_path / "packages"))
    for _ in range(2):
        with dependencies.in_this_process():
            assert not hasattr(importlib.import_module("tenacity"), "VERSION")
    (said,) = caplog.messages
    assert said.startswith("The package 'tenacity' 99.0 is required and was installed, but this process has imported another one")


class _Weights(MapFunction):
    def open(self, runtime_context):
        self.weights = Path("model", "weights.txt").read_text()

    def map(self, value):
        return value, self.weights


def _with_model(tmp_path: Path) -> StreamExecutionEnvironment:
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("weights.txt", "heavy")
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.add_python_archive(str(tmp_path / "model.zip"), "model")
    return environment


def test_functions_find_archives_in_their_working_folder_however_the_program_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("line\n")
    environment = _with_model(tmp_path)
    weighted = environment.read_text_file("in.txt").map(_Weights())
    assert list(weighted.execute_and_collect()) == [("line", "heavy")]
    assert Path.cwd() == tmp_path
    weighted.print()
    environment.execute()
    assert Path.cwd() == tmp_path
    weighted.print()
    environment.execute_async().get_job_execution_result().result(30)
    assert capsys.readouterr().out == "('line', 'heavy')\n" * 2


class _Rates(MapFunction):
    def open(self, runtime_context):
        cache = runtime_context.get_distributed_cache()
        self.rate = Path(cache.get_file("rate")).read_text()
        self.tables = sorted(path.name for path in Path(cache.get_file("tables")).iterdir())
        self.convert = cache.get_file("convert")

    def map(self, value):
        return value, self.rate, self.tables, subprocess.run([self.convert], check=True, capture_output=True, text=True).stdout


@pytest.mark.processes
def test_functions_find_registered_files_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "rate-2024.txt").write_text("1.5")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv").write_text("x")
    (tmp_path / "convert.sh").write_text("#!/bin/sh\necho converted\n")
    environment = _with_model(tmp_path)
    environment.register_cached_file(str(tmp_path / "rate-2024.txt"), "rate")
    environment.register_cached_file(str(tmp_path / "tables"), "tables")
    environment.register_cached_file(str(tmp_path / "convert.sh"), "convert", executable=True)
    before = Path.cwd()
    assert list(environment.from_collection([1]).map(_Rates()).execute_and_collect()) == [(1, "1.5", ["a.csv"], "converted\n")]
    assert Path.cwd() == before
    (tmp_path / "rate-2024.txt").write_text("1.6")
    ((_, rate, *_),) = environment.from_collection([1]).map(_Rates()).execute_and_collect()
    assert rate == "1.6", "another content is another file"
    needs = environment._dependencies.needs()
    assert PythonNeeds.from_json(needs.to_json(tmp_path), tmp_path) == needs


def test_files_that_cannot_be_registered_or_found_are_named(tmp_path: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(FileNotFoundError, match="there is no"):
        environment.register_cached_file(str(tmp_path / "none"), "rate")
    for name in ("../rate", "."):
        with pytest.raises(PythonEnvironmentError, match="name it as a single file"):
            environment.register_cached_file(str(tmp_path), name)
    (tmp_path / "rate.txt").write_text("1.5")
    environment.register_cached_file(str(tmp_path / "rate.txt"), "rate")
    with pytest.raises(ValueError, match="with the name 'rate' already"):
        environment.register_cached_file(str(tmp_path), "rate")
    with pytest.raises(StreamProgramError, match=r"No file was registered with the name 'tables'; there are \['rate'\]"):
        list(environment.from_collection([1]).map(_Rates()).execute_and_collect())


def test_what_functions_write_into_their_working_folder_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def write(value: str) -> str:
        Path("left.txt").write_text(value)
        return str(Path.cwd())

    before = Path.cwd()
    (folder,) = _with_model(tmp_path).from_collection(["written"]).map(write).execute_and_collect()
    assert Path.cwd() == before
    assert Path(folder, "left.txt").read_text() == "written"
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == [f"The program has written left.txt to its working folder, which is kept: {folder}"]


def test_the_working_folder_is_left_when_the_program_fails(tmp_path: Path) -> None:
    before = Path.cwd()
    environment = _with_model(tmp_path)
    failing = environment.from_collection([0]).map(lambda number: 1 // number)
    failing.print()
    with pytest.raises(ZeroDivisionError):
        environment.execute()
    assert Path.cwd() == before
    with pytest.raises(ZeroDivisionError):
        next(failing.execute_and_collect())
    assert Path.cwd() == before


def test_another_interpreter_is_said_to_have_no_effect_once(caplog: pytest.LogCaptureFixture) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_python_executable("/opt/python-of-a-test")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert list(environment.from_collection([1]).execute_and_collect()) == [1]
    (said,) = caplog.messages
    assert said.startswith(
        "set_python_executable('/opt/python-of-a-test') has no effect here: a program that runs in its own process"
    )
