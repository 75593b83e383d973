from __future__ import annotations

import pytest
from airflow.sdk import DAG, TriggerRule

from airflow_pipelines.operators import IngestOperator
from airflow_pipelines.task_groups import pipeline_transaction


def load(task_id: str) -> IngestOperator:
    return IngestOperator(task_id=task_id, pipeline_name="orders", table="t", rows=[{"id": 1}])


def test_the_tasks_are_between_start_and_commit() -> None:
    with DAG("load_orders", schedule=None) as dag:
        before, after = load("before"), load("after")
        with pipeline_transaction("load", pipeline_name="orders", pipeline_conn_id="team", timeout=60) as group:
            one, two, three = load("one"), load("two"), load("three")
            one >> two
        before >> group >> after
    start, commit = dag.get_task("load.start"), dag.get_task("load.commit")
    assert start.upstream_task_ids == {"before"}
    assert start.downstream_task_ids == {"load.one", "load.three", "load.commit"}
    assert two.downstream_task_ids == three.downstream_task_ids == {"load.commit"}
    assert commit.downstream_task_ids == {"after"}
    # A task that is skipped is no failure, but a transaction that was not started is none to commit.
    assert commit.trigger_rule == TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    assert (start.pipeline_conn_id, commit.timeout, start.checkpoint) == ("team", 60, False)
    assert not any(task.is_setup or task.is_teardown for task in dag.tasks), "a cleared task goes on in the same transaction"


def test_undoing_is_a_tear_down_of_the_start() -> None:
    with DAG("load_orders", schedule=None) as dag:
        with pipeline_transaction("load", pipeline_name="orders", on_failure="undo") as group:
            load("one")
        group >> load("after")
    start, undo = dag.get_task("load.start"), dag.get_task("load.undo")
    assert start.is_setup
    assert start.checkpoint, "what came before the transaction is safe"
    assert undo.is_teardown
    assert undo.upstream_task_ids == {"load.commit", "load.start"}
    dag.validate_setup_teardown()
    assert not undo.on_failure_fail_dagrun, "the failed task of the load fails the DAG run"
    assert dag.get_task("load.outcome").upstream_task_ids == {"load.undo", "load.start"}
    assert dag.get_task("after").upstream_task_ids == {"load.commit"}, "what comes after waits for the commit only"


def test_nonsense_is_refused_when_the_file_is_parsed() -> None:
    with DAG("load_orders", schedule=None):
        with (
            pytest.raises(ValueError, match="on_failure is 'ignore'; known: leave, undo"),
            pipeline_transaction(pipeline_name="orders", on_failure="ignore"),
        ):
            load("one")
        with (
            pytest.raises(ValueError, match="the transaction 'empty' has no task"),
            pipeline_transaction("empty", pipeline_name="o"),
        ):
            pass
