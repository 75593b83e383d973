from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

PAGE = Path(__file__).resolve().parents[2] / "docs" / "airflow.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[re.findall(r'DAG\(\s*"(\w+)"', block)[0] for block in BLOCKS])
def test_a_block_of_the_page_is_a_dag(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    made: list[DAG] = []
    enter = DAG.__enter__
    monkeypatch.setattr(DAG, "__enter__", lambda dag: made.append(dag) or enter(dag))
    exec(compile(block, str(PAGE), "exec"), names)
    (dag,) = made
    assert dag.tasks


def test_every_operator_and_sensor_is_on_the_page() -> None:
    from airflow_pipelines.sensors import pipeline
    from tests.operators.test_operators import OPERATORS

    sensors = [
        name for name in vars(pipeline) if name.startswith("Pipeline") and name.endswith("Sensor") and name != "PipelineSensor"
    ]
    text = "".join(BLOCKS)
    assert [name for name in [*sensors, *(operator.__name__ for operator, _ in OPERATORS)] if name not in text] == []
