"""The snippets of docs/sdk.md run as they are printed, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

DOCS = Path(__file__).resolve().parents[2] / "docs" / "sdk.md"


def test_the_snippets_run(warm_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(warm_home))
    monkeypatch.delenv("AIRFLOW_PIPELINES_URL", raising=False)
    namespace: dict[str, Any] = {}
    text = DOCS.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        # Blank lines in front, so that an error shows the line of the page.
        padding = "\n" * text[: block.start(1)].count("\n")
        exec(compile(padding + block[1], str(DOCS), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "{'customer': 'Alice', 'total': Decimal('42.50'), 'orders': 2}" in printed
    assert "[{'customer': 'Carol', 'total': Decimal('1.00'), 'orders': 1, 'insert_delete': 1}]" in printed
    assert "[{'n': 2}]" in printed
    assert "400 AdHocQueryError" in printed
