from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from airflow_pipelines.streams.python_environment import environment
from airflow_pipelines.streams.python_environment.environment import make_environment
from airflow_pipelines.streams.python_environment.needs import Archive, PythonEnvironmentError, PythonNeeds, Requirements
from tests.service.waiting import until
from tests.streams.python_environment.packages import wheel

pytestmark = pytest.mark.core

_ENVIRONMENTS = "[0-9a-f]*-*"


def _run(executable: Path, code: str, *paths: Path) -> str:
    command = [executable, "-c", f"import sys; sys.path[:0] = {[str(path) for path in paths]}; {code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout.strip()


def _requirements(tmp_path: Path, text: str) -> PythonNeeds:
    (tmp_path / "packages").mkdir(exist_ok=True)
    return PythonNeeds(Requirements(text, cached_packages=tmp_path / "packages"))


def test_files_and_archives_are_copied_once_and_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in ("a", "b"):
        (tmp_path / folder / "same.py").write_text(f"WHERE = '{folder}'\n")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as packed:
        packed.writestr("zipped.py", "X = 3\n")
        packed.writestr("model.txt", "weights")
    needs = PythonNeeds(
        files=(tmp_path / "a" / "same.py", tmp_path / "b", tmp_path / "c.zip"),
        archives=(Archive(tmp_path / "c.zip", "model/v1"), Archive(tmp_path / "c.zip", "other")),
    )
    made = make_environment(needs, tmp_path / "cache")
    (tmp_path / "a" / "same.py").unlink()
    assert made.executable == Path(sys.executable)
    assert [path.name for path in made.paths] == ["0", "b", "c.zip"]
    assert (made.paths[0] / "same.py").read_text() == "WHERE = 'a'\n"
    work = made.make_working_folder(tmp_path)
    assert (work / "model" / "v1" / "model.txt").read_text() == (work / "other" / "model.txt").read_text() == "weights"
    assert made.make_working_folder(tmp_path) != work


def test_the_same_contents_are_one_environment_and_others_are_not(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for file in (tmp_path / "a" / "module.py", tmp_path / "b" / "module.py"):
        file.write_text("X = 1\n")
    first = make_environment(PythonNeeds(files=(tmp_path / "a" / "module.py",)), cache)
    assert make_environment(PythonNeeds(files=(tmp_path / "b" / "module.py",)), cache) == first
    (tmp_path / "b" / "module.py").write_text("X = 2\n")
    other = make_environment(PythonNeeds(files=(tmp_path / "b" / "module.py",)), cache)
    assert other != first
    assert (first.paths[0] / "module.py").read_text() == "X = 1\n"
    shutil.rmtree(first.paths[0].parents[1])
    again = make_environment(PythonNeeds(files=(tmp_path / "a" / "module.py",)), cache)
    assert (again.paths[0] / "module.py").read_text() == "X = 1\n"


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("X = 1\n")
    (tmp_path / "a.zip").write_text("no archive")
    for needs in (
        PythonNeeds(archives=(Archive(tmp_path / "a.zip", "a"),)),
        PythonNeeds(files=(tmp_path / "module.py",), archives=(Archive(tmp_path / "a.zip", "a"),)),
    ):
        with pytest.raises(PythonEnvironmentError, match="is no archive"):
            make_environment(needs, tmp_path / "cache")
    with pytest.raises(PythonEnvironmentError, match=r"The Python file '.*missing.py' is not there"):
        make_environment(PythonNeeds(files=(tmp_path / "missing.py",)), tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock", ".lock"]


@pytest.mark.core(slow_because="an environment is made")
@pytest.mark.processes
def test_requirements_are_installed_once_next_to_this_project(tmp_path: Path) -> None:
    wheel(tmp_path / "packages", "required_by_a_test", "1.0", requires="tenacity", script=True)
    needs = _requirements(tmp_path, "required_by_a_test==1.0\n")
    made = make_environment(needs, tmp_path / "cache")
    code = "import required_by_a_test, rich, airflow_pipelines.streams; print(required_by_a_test.VERSION, sys.prefix)"
    assert _run(made.executable, code) == f"1.0 {made.executable.parents[1]}"
    script = made.executable.with_name("required_by_a_test")
    assert subprocess.run([script], check=True, capture_output=True, text=True).stdout == "1.0\n"
    before = made.executable.lstat().st_ino
    assert make_environment(needs, tmp_path / "cache") == made
    assert made.executable.lstat().st_ino == before
    made.executable.unlink()
    assert _run(make_environment(needs, tmp_path / "cache").executable, code).startswith("1.0 ")
    assert len(list((tmp_path / "cache").glob(_ENVIRONMENTS))) == 1


@pytest.mark.rest
@pytest.mark.processes
def test_a_requirement_comes_before_a_package_of_this_project(tmp_path: Path) -> None:
    wheel(tmp_path / "packages", "tenacity", "99.0")
    made = make_environment(_requirements(tmp_path, "tenacity==99.0\n"), tmp_path / "cache")
    assert _run(made.executable, "import tenacity; print(tenacity.VERSION)") == "99.0"
    wheel(tmp_path / "packages", "needs_tenacity", "1.0", requires="tenacity<99")
    made = make_environment(_requirements(tmp_path, "needs_tenacity\n"), tmp_path / "cache")
    assert _run(made.executable, "import tenacity; print(hasattr(tenacity, 'VERSION'))") == "False"


@pytest.mark.rest
@pytest.mark.processes
def test_a_requirement_that_cannot_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "packages", "required_by_a_test", "1.0")
    wheel(tmp_path / "packages", "above", "1.0", requires="below-all==3")
    cases = {
        "required_by_a_test==1.0\nabsent_package==2.0  # never was\n": (
            "absent_package==2.0",
            "No matching .* absent_package==2.0",
        ),
        "required-by.a-test==7\n": ("required-by.a-test==7", "No matching"),
        "required_by_a_test\nabove\n": ("above", "No matching .* below-all==3"),
        "required_by_a_test=>1\n": ("required_by_a_test=>1", "Invalid requirement"),
    }
    for text, (named, said) in cases.items():
        with pytest.raises(PythonEnvironmentError, match=f"(?s)The requirement '{named}' cannot be installed; pip said:\n.*{said}"):
            make_environment(_requirements(tmp_path, text), tmp_path / "cache")
    monkeypatch.setenv("PIP_RETRIES", "0")
    text = "--index-url http://someone:hidden@localhost:9/simple\nabsent_package\n"
    with pytest.raises(PythonEnvironmentError, match="'absent_package' cannot be installed") as raised:
        make_environment(PythonNeeds(Requirements(text)), tmp_path / "cache")
    assert "localhost" in str(raised.value)
    assert "hidden" not in str(raised.value)
    assert "someone" not in str(raised.value)
    assert not list((tmp_path / "cache").glob(_ENVIRONMENTS))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installer remembers what it has built by its path, also for tests of another run."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "installer"))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "installer"))


_MAKE = """
import sys
from pathlib import Path
from airflow_pipelines.streams.python_environment.environment import make_environment
from airflow_pipelines.streams.python_environment.needs import PythonNeeds, Requirements
folder = Path(sys.argv[1])
made = make_environment(PythonNeeds(Requirements("slow_to_build\\n", cached_packages=folder / "packages")), folder / "cache")
print(made.executable, flush=True)
"""


def _source_package(folder: Path) -> None:
    """A source package whose build notes that it runs, and takes its time; it needs no package to be built with."""
    package = folder / "slow_to_build-1.0"
    package.mkdir(parents=True)
    (package / "pyproject.toml").write_text("[build-system]\nrequires = []\nbuild-backend = 'build'\nbackend-path = ['.']\n")
    (package / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: slow_to_build\nVersion: 1.0\n")
    source = Path(__file__).with_name("packages.py").read_text()
    (package / "build.py").write_text(
        source
        + f"""

def build_wheel(target, config_settings=None, metadata_directory=None):
    import os, time
    with open({str(folder / "builds")!r}, "a") as builds:
        builds.write(f"{{os.getpid()}}\\n")
    time.sleep(float(os.environ["BUILD_SECONDS"]))
    return wheel(Path(target), "slow_to_build", "1.0").name
"""
    )
    shutil.make_archive(str(folder / "packages" / "slow_to_build-1.0"), "gztar", folder, "slow_to_build-1.0")


def _start(folder: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _MAKE, str(folder)]
    environment = os.environ | {"BUILD_SECONDS": str(seconds)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _wait_for_build(folder: Path, process: subprocess.Popen[str]) -> int:
    deadline = time.monotonic() + 60
    while not (folder / "builds").exists() or not (folder / "builds").read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no build has begun"
        time.sleep(0.05)
    return int((folder / "builds").read_text().splitlines()[0])


@pytest.mark.rest
@pytest.mark.processes
def test_two_processes_at_once_make_one_environment(tmp_path: Path) -> None:
    _source_package(tmp_path)
    both = [_start(tmp_path, 1) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert said[0] == said[1]
    assert _run(Path(said[0][0].strip()), "import slow_to_build; print(slow_to_build.VERSION)") == "1.0"
    assert len((tmp_path / "builds").read_text().splitlines()) == 1


@pytest.mark.rest
@pytest.mark.processes
def test_one_that_is_killed_leaves_no_environment(tmp_path: Path) -> None:
    _source_package(tmp_path)
    process = _start(tmp_path, 120)
    build = _wait_for_build(tmp_path, process)
    process.kill()
    process.communicate(timeout=60)
    (half,) = (tmp_path / "cache").glob(_ENVIRONMENTS)
    os.killpg(os.getpgid(build), signal.SIGKILL)  # what the process had started went on without it
    said, _ = _start(tmp_path, 0).communicate(timeout=120)
    assert _run(Path(said.strip()), "import slow_to_build; print(slow_to_build.VERSION)") == "1.0"
    assert not half.exists()


@pytest.mark.rest
@pytest.mark.processes
def test_what_hangs_is_ended_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _source_package(tmp_path)
    monkeypatch.setenv("BUILD_SECONDS", "120")
    needs = PythonNeeds(Requirements("slow_to_build\n", cached_packages=tmp_path / "packages"))
    with pytest.raises(PythonEnvironmentError, match="The requirement 'slow_to_build' took more than 4 s to install"):
        make_environment(needs, tmp_path / "cache", limit_seconds=4)
    build = int((tmp_path / "builds").read_text().splitlines()[0])
    assert not list((tmp_path / "cache").glob(_ENVIRONMENTS))
    # It is killed, but a busy machine takes a moment to end it.
    until(lambda: not Path(f"/proc/{build}").exists() or "Z" in Path(f"/proc/{build}/stat").read_text(), 10.0)


def test_who_waits_for_another_process_does_so_for_a_while(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("X = 1\n")
    needs = PythonNeeds(files=(tmp_path / "module.py",))
    made = make_environment(needs, tmp_path / "cache")
    (lock,) = (tmp_path / "cache").glob("*.lock")
    shutil.rmtree(made.paths[0].parents[1])
    with environment._hold_lock(lock, 0), pytest.raises(PythonEnvironmentError, match=r"Another process has been making .* 0.2 s"):
        make_environment(needs, tmp_path / "cache", limit_seconds=0.2)
    assert make_environment(needs, tmp_path / "cache").paths[0].is_dir()


@pytest.mark.processes
def test_an_executable_of_its_own_sees_this_project_too(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    packages = tmp_path / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "only_there.py").write_text("X = 5\n")
    made = make_environment(PythonNeeds(executable=str(tmp_path / "venv" / "bin" / "python")), tmp_path / "cache")
    assert _run(made.executable, "import only_there, airflow_pipelines, rich; print(only_there.X)") == "5"


@pytest.mark.processes
def test_an_executable_in_an_archive(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as packed:
        packed.write(python, "bin/python")
    archive = Archive(tmp_path / "own.zip", "own.zip")
    made = make_environment(PythonNeeds(archives=(archive,), executable="own.zip/bin/python"), tmp_path / "cache")
    assert _run(made.executable, "import airflow_pipelines; print(6)") == "6"


@pytest.mark.processes
def test_an_executable_that_cannot_run_functions_is_refused(tmp_path: Path) -> None:
    cases = {
        "echo nothing": "does not run",
        "echo broken >&2; exit 3": "(?s)does not run: broken",
        """echo '["cpython", [2, 7, 18], "2.7.18", []]'""": "is cpython 2.7.18, and the program was built with cpython 3",
    }
    for script, message in cases.items():
        (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "python").chmod(0o755)
        with pytest.raises(PythonEnvironmentError, match=message):
            make_environment(PythonNeeds(executable=str(tmp_path / "python")), tmp_path / "cache")
    with pytest.raises(
        PythonEnvironmentError, match="There is no Python executable 'python-that-is-not-there': neither in an archive"
    ):
        make_environment(PythonNeeds(executable="python-that-is-not-there"), tmp_path / "cache")
