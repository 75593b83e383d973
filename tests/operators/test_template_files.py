from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import fsspec
import pytest
from airflow.sdk import DAG, ObjectStoragePath
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.operators import DeployPipelineOperator, GatedModifyOperator, QueryPipelineOperator, template_files

CONTEXT: Any = {"ds": "2026-01-02", "params": {"conn": "store"}}


@pytest.fixture(autouse=True)
def stored() -> None:
    """A program in a store of objects, whose text is a template."""
    fsspec.filesystem("memory").pipe_file("/programs/2026-01-02.sql", b"create table t (a int); -- {{ ds }} ends with .sql")


@pytest.mark.parametrize(
    ("operator", "field"), [(DeployPipelineOperator, "sql"), (GatedModifyOperator, "sql"), (QueryPipelineOperator, "query")]
)
def test_a_file_by_its_url_is_the_template(operator: Any, field: str, caplog: pytest.LogCaptureFixture) -> None:
    with DAG("files", schedule=None) as dag, caplog.at_level(logging.ERROR):
        task = operator(task_id="x", pipeline_name="p", **{field: "memory://programs/{{ ds }}.sql"})
        dag.resolve_template_files()
    assert not caplog.records, "nothing is read, and nothing missed, when a DAG is parsed"
    assert getattr(task, field) == "memory://programs/{{ ds }}.sql"
    task.render_template_fields(CONTEXT)
    assert getattr(task, field) == "create table t (a int); -- 2026-01-02 ends with .sql"


def test_files_beside_the_dag_are_read_as_ever(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("select '{{ ds }}'")
    with DAG("files", schedule=None, template_searchpath=str(tmp_path)) as dag:
        task = QueryPipelineOperator(task_id="x", pipeline_name="p", query="orders.sql")
        dag.resolve_template_files()
    task.render_template_fields(CONTEXT)
    assert task.query == "select '2026-01-02'"


def test_an_object_storage_path_is_read(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("select '{{ ds }}'")
    path = ObjectStoragePath(f"file://{tmp_path}/orders.sql")
    task = QueryPipelineOperator(task_id="x", pipeline_name="p", query=path)  # type: ignore[arg-type]
    task.render_template_fields(CONTEXT)
    assert task.query == "select '2026-01-02'"


@pytest.mark.parametrize("text", ["select 's3://a/b.sql'\nfrom t", "see s3://a.sql", "memory://programs/x.csv"])
def test_other_texts_are_texts(text: str) -> None:
    task = QueryPipelineOperator(task_id="x", pipeline_name="p", query=f"{text} ")
    task.render_template_fields(CONTEXT)
    assert task.query == f"{text} "


def test_the_connection_is_used_and_a_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def read_file(name: str, path: str, conn_id: str | None) -> bytes:
        asked.append((path, conn_id))
        return b"create table t (a int);"

    with pytest.raises(AirflowFailException, match=r"there is no such file: memory://programs/none\.sql"):
        DeployPipelineOperator(task_id="x", pipeline_name="p", sql="memory://programs/none.sql").render_template_fields(CONTEXT)
    monkeypatch.setattr(template_files, "read_file", read_file)
    task = DeployPipelineOperator(task_id="x", pipeline_name="p", sql="s3://b/{{ ds }}.sql", file_conn_id="{{ params.conn }}")
    task.render_template_fields(CONTEXT)
    assert (task.sql, asked) == ("create table t (a int);", [("s3://b/2026-01-02.sql", "store")])
