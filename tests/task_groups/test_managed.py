from __future__ import annotations

import pytest
from airflow.sdk import DAG

from airflow_pipelines.operators import QueryPipelineOperator
from airflow_pipelines.task_groups import managed_pipeline

SQL = "create table t (a int);"


def ask(task_id: str = "ask") -> QueryPipelineOperator:
    return QueryPipelineOperator(task_id=task_id, pipeline_name="p", query="select 1")


def test_the_tasks_are_between_set_up_and_tear_down() -> None:
    with DAG("batch", schedule=None) as dag:
        with managed_pipeline("batch", pipeline_name="p", sql=SQL, task_arguments={"retries": 2}) as group:
            ask("one") >> ask("two")
        group >> ask("after")
    start, stop, outcome = (dag.get_task(f"batch.{name}") for name in ("start", "stop", "outcome"))
    dag.validate_setup_teardown()
    assert start.upstream_task_ids == {"batch.deploy"}
    assert start.is_setup
    assert start.downstream_task_ids == {"batch.one", "batch.stop", "batch.outcome"}
    assert dag.get_task("batch.two").downstream_task_ids == {"batch.stop", "after"}
    assert stop.upstream_task_ids == {"batch.two", "batch.deploy", "batch.start"}
    assert stop.is_teardown
    assert not stop.on_failure_fail_dagrun, "or the state of the block would not count"
    assert outcome.upstream_task_ids == {"batch.stop", "batch.deploy", "batch.start"}
    assert outcome.on_failure_fail_dagrun
    assert outcome.tear_downs == ["batch.stop"], "a pipeline that runs on is not what was asked for"
    assert dag.get_task("after").upstream_task_ids == {"batch.two"}
    assert (start.bootstrap_policy, start.retries, dag.get_task("batch.deploy").sql) == ("reject", 2, SQL)


def test_inputs_may_be_awaited_and_the_pipeline_deleted() -> None:
    with (
        DAG("batch", schedule=None) as dag,
        managed_pipeline(pipeline_name="p", sql=SQL, until_completion=True, afterwards="delete"),
    ):
        ask()
    assert dag.get_task("pipeline.completed").upstream_task_ids == {"pipeline.ask"}
    assert dag.get_task("pipeline.stop").upstream_task_ids == {"pipeline.completed", "pipeline.deploy", "pipeline.start"}
    delete = dag.get_task("pipeline.delete")
    assert delete.is_teardown
    assert delete.upstream_task_ids == {"pipeline.stop", "pipeline.deploy", "pipeline.start"}
    assert dag.get_task("pipeline.outcome").upstream_task_ids == {"pipeline.delete", "pipeline.deploy", "pipeline.start"}
    assert dag.get_task("pipeline.outcome").tear_downs == ["pipeline.stop", "pipeline.delete"]
    with DAG("nothing_else", schedule=None) as dag, managed_pipeline(pipeline_name="p", sql=SQL, until_completion=True):
        pass
    assert dag.get_task("pipeline.completed").upstream_task_ids == {"pipeline.start"}


def test_nonsense_is_refused_when_the_file_is_parsed() -> None:
    with DAG("batch", schedule=None):
        with (
            pytest.raises(ValueError, match="known: stop, delete"),
            managed_pipeline(pipeline_name="p", sql=SQL, afterwards="keep"),
        ):
            ask()
        with pytest.raises(ValueError, match="does nothing: put tasks"), managed_pipeline("empty", pipeline_name="p", sql=SQL):
            pass
