"""The examples of the hook's table in docs/airflow.md run as they are printed, one after the other."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from airflow_pipelines.hooks.pipeline import PipelineHook

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "airflow.md"
BEFORE: Final = """
import asyncio
from airflow_pipelines.hooks.conditions import CompletionCondition, StartedCondition, StoppedCondition, StorageClearedCondition
from airflow_pipelines.hooks.pipeline import PipelineHook

GENERATED = '[{"name": "generated", "transport": {"name": "datagen", "config": {"plan": [{"limit": 10}]}}}]'
SQL = f'''
create table orders (id int not null primary key) with ('materialized' = 'true');
create table visits (id int) with ('materialized' = 'true', 'connectors' = '{GENERATED}');
create materialized view numbers as select count(*) as n from orders;
'''
NEW = SQL + "create materialized view large as select * from orders where id > 1;"
CONFIG = {"storage": {"backend": {"name": "file", "config": {"sync": {"bucket": BUCKET}}}}}
hook = PipelineHook()
"""


def test_the_examples_of_the_hook_run(warm_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"conn_type": "airflow_pipelines", "extra": {"home": str(warm_home)}}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_PIPELINES_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({"conn_type": "postgres", "host": "db", "password": "secret"}))
    namespace: dict[str, Any] = {"BUCKET": f"file://{tmp_path / 'copies'}"}
    exec(BEFORE, namespace)
    values = {example: run(example, namespace) for example in examples()}
    assert values['hook.query("shop", "select * from orders", 100)'] == [{"id": 1}, {"id": 2}]
    assert "numbers" in values['[view.name for view in hook.pipeline("shop").views()]']
    assert values['hook.plan("shop", {"program_code": NEW}).diff']["program_diff"]["added_views"] == ["large"]
    assert values['hook.checkpoint("shop", timeout_s=60)["uuid"]'] == values['hook.sync_checkpoint("shop", timeout_s=60)']
    assert values['hook.descriptor("shop")["storage_status"]'] == "InUse"
    assert PipelineHook().descriptor("shop") is None


def examples() -> list[str]:
    table = PAGE.read_text().partition("## The hook")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `.*\| `([^`]+)` \|$", table, re.MULTILINE)
    assert len(rows) > 20
    return rows


def run(example: str, namespace: dict[str, Any]) -> Any:
    """Execute the statements of an example, and return the value of the last one."""
    *statements, last = ast.parse(example).body
    exec(compile(ast.Module(statements, []), str(PAGE), "exec"), namespace)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), str(PAGE), "eval"), namespace)
