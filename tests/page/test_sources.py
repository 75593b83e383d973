"""The files of the page themselves: what they load, and what they never do."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from airflow_pipelines.serving.page_files import FOLDER, page_files

VENDOR = FOLDER / "vendor"
OURS = sorted((FOLDER / "js").glob("*.js"))
PUBLISHED = {
    "dagre/dagre.esm.js": "b0ddaf4af1417bec9bd89373a3a3987f081727d6cc6d95fc40dbf85a19bdf3b0",
    "diff/diff.min.js": "b51a9d2885f2c090dc97b981027395f7e7e6558a46c75ae3747db267913a89ab",
    "diff2html/diff2html.min.js": "a2110a09cee157bd5466da77be02107ac81a0baa2bc1f3fe81aac8183314598e",
    "htm/standalone.module.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
    "uplot/uPlot.esm.js": "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
    "uplot/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""The SHA-256 of each library's files, as they were published in the version that the README beside them names."""
HTML_FROM_TEXT = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|createContextualFragment|\beval\(|new Function|srcdoc"
)


def test_libraries_are_as_they_were_published() -> None:
    found = {
        file.relative_to(VENDOR).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in VENDOR.rglob("*")
        if file.suffix in {".js", ".css"}
    }
    assert found == PUBLISHED


def test_each_library_has_its_licence_and_its_version() -> None:
    readme = (VENDOR / "README.md").read_text()
    for folder in (each for each in VENDOR.iterdir() if each.is_dir()):
        assert list(folder.glob("LICENSE*")), folder
        assert re.search(rf"^\| `{folder.name}/` \| .* \| \d+\.\d+\.\d+ \|", readme, re.MULTILINE), folder


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_no_text_becomes_html_or_code(file: Path) -> None:
    text = file.read_text()
    assert HTML_FROM_TEXT.findall(text) == []
    assert len(text.splitlines()) < 400


def test_nothing_is_loaded_from_elsewhere() -> None:
    for file in (*OURS, FOLDER / "index.html", FOLDER / "page.css"):
        assert re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", file.read_text()) == [], file
    served = set(page_files())
    for file in OURS:
        for path in re.findall(r'\bfrom "(\.[^"]+)";', file.read_text(), re.MULTILINE):
            assert (file.parent / path).resolve().relative_to(FOLDER.resolve()).as_posix() in served, (file, path)


def test_the_page_has_no_code_of_its_own() -> None:
    text = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:", text) == []
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert named
    assert set(named) <= set(page_files())
