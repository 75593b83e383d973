"""The linters see every file: an exclusion by a bare name hides all folders of that name."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.core
@pytest.mark.processes
def test_ruff_sees_every_module_and_test() -> None:
    shown = subprocess.run([sys.executable, "-m", "ruff", "check", "--show-files", "."], cwd=ROOT, capture_output=True, check=True)
    seen = {Path(line) for line in shown.stdout.decode().splitlines()}
    folders = ("airflow_pipelines", "benchmarks", "dags_examples", "tests", "tools")
    assert {file for folder in folders for file in (ROOT / folder).rglob("*.py")} - seen == set()


def test_the_formatter_and_mypy_leave_out_no_module() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["ruff"]["format"]["exclude"] == ["*.md"]
    assert tools["mypy"]["packages"] == ["airflow_pipelines"]
    assert "exclude" not in tools["mypy"]
    assert not any(override.get("ignore_errors") for override in tools["mypy"]["overrides"])


def test_no_files_import_each_other() -> None:
    """The linter's contracts are about folders; a cycle of files is named by the error."""
    graph = grimp.build_graph("airflow_pipelines", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert "airflow_pipelines.engine.circuit" in TopologicalSorter(imports).static_order()
