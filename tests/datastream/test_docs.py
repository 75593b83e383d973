"""The examples of docs/datastream.md run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "datastream.md"
_EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def test_examples_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = _EXAMPLE.findall(PAGE.read_text())
    assert len(examples) == PAGE.read_text().count("```python") == 12
    names: dict[str, object] = {"__name__": "example"}
    for code, printed in examples:
        exec(compile(code, str(PAGE), "exec"), names)
        assert capsys.readouterr().out == printed
