from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_pipelines.datastream.python_dependencies import PythonDependencies, Requirements, RequirementsError


@pytest.fixture(autouse=True)
def _imports() -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith("dependency_of_a_test_")]:
        del sys.modules[name]


def _wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"VERSION = '{version}'\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_files_folders_and_archives_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "dependency_of_a_test_1.py").write_text("X = 1\n")
    (tmp_path / "b" / "dependency_of_a_test_2").mkdir(parents=True)
    (tmp_path / "b" / "dependency_of_a_test_2" / "__init__.py").write_text("X = 2\n")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("dependency_of_a_test_3.py", "X = 3\n")
    files = [tmp_path / "a" / "dependency_of_a_test_1.py", tmp_path / "b", tmp_path / "c.zip"]
    PythonDependencies(files).make_importable()
    PythonDependencies(files).make_importable()
    assert [importlib.import_module(f"dependency_of_a_test_{number}").X for number in (1, 2, 3)] == [1, 2, 3]
    assert sys.path.count(str(tmp_path / "b")) == 1


@pytest.mark.processes
def test_requirements_are_installed_once(tmp_path: Path) -> None:
    packages, cache = tmp_path / "packages", tmp_path / "cache"
    packages.mkdir()
    _wheel(packages, "dependency_of_a_test_4", "1.0")
    file = tmp_path / "requirements.txt"
    file.write_text("dependency_of_a_test_4==1.0\n")
    PythonDependencies(requirements=Requirements(file, packages)).make_importable(cache)
    assert importlib.import_module("dependency_of_a_test_4").VERSION == "1.0"
    (packages / "dependency_of_a_test_4-1.0-py3-none-any.whl").write_bytes(b"")
    assert [Requirements(file, packages).install(cache)] == list(cache.iterdir())
    file.write_text("dependency_of_a_test_4==2.0\n")
    with pytest.raises(RequirementsError, match=r"(?s)requirements.txt' cannot be installed; pip said:\n.*_4==2.0"):
        Requirements(file, packages).install(cache)
    assert len(list(cache.iterdir())) == 1
