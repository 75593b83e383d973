"""The README's examples: the DAGs build, and the SDK's lines run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration
README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_examples_run(warm_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(warm_home))
    monkeypatch.delenv("AIRFLOW_PIPELINES_URL", raising=False)
    in_dag, stream_in_dag, in_python, stream_in_python = re.findall(
        r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL
    )
    namespace: dict[str, Any] = {}
    for code in (in_dag, stream_in_dag):
        exec(compile(code, str(README), "exec"), namespace)
    # Airflow logs to the standard output as well.
    for code, printed in (
        (in_python, "[{'shop': 'north', 'total': Decimal('10.50')}]"),
        (stream_in_python, "[{'account': 'b'}]"),
    ):
        exec(compile(code, str(README), "exec"), namespace)
        assert printed in capsys.readouterr().out.splitlines()
        namespace["pipeline"].delete(clear_storage=True)
