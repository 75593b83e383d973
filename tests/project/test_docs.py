"""The documentation names what exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_pipelines"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_FILE = re.compile(r"`([\w./-]+\.(?:py|xml|toml|sh))(?:::\w+)?`")
_FOLDER = re.compile(r"`((?:[\w-]+/)+)`")


def _exists(name: str) -> bool:
    if (ROOT / name).exists() or (PACKAGE / name).exists():
        return True
    return "/" not in name and any(any(folder.rglob(name)) for folder in (PACKAGE, ROOT / "tests", ROOT / "dags_examples"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_on_a_page_exist(page: Path) -> None:
    names = sorted({*_FILE.findall(page.read_text()), *(name for name in _FOLDER.findall(page.read_text()) if "/" in name[:-1])})
    assert [name for name in names if not _exists(name)] == []


def test_each_walk_names_a_file_once_and_few_of_them() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    walks = re.findall(r"^## Walk \d.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    counts = [Counter(_FILE.findall(walk)) for walk in walks]
    assert [[name for name, count in counted.items() if count > 1] for counted in counts] == [[], [], []]
    row, _, record = counts
    # Whoever follows a row or a record should not have to open more files.
    assert 15 < len(row) <= 25
    assert 15 < len(record) <= 25
