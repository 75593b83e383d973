"""What a template or another task's result came to is never taken for something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.approval import ApprovePipelineOperator, ReviewPipelineChangeOperator
from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.operators.checkpoint import CheckpointPipelineOperator, SyncCheckpointOperator
from airflow_pipelines.operators.data import (
    CompletionTokenOperator,
    IngestFileOperator,
    IngestOperator,
    QueryPipelineOperator,
)
from airflow_pipelines.operators.lifecycle import (
    DeletePipelineOperator,
    PausePipelineOperator,
    ResumePipelineOperator,
    StartPipelineOperator,
    StopPipelineOperator,
)
from airflow_pipelines.sensors.pipeline import (
    PipelineCompletionSensor,
    PipelineCompletionTokenSensor,
    PipelineIdleSensor,
    PipelineStatusSensor,
)
from tests.fixtures.airflow import ScriptedService

LOST: list[Any] = [None, "", " ", "None"]
SQL = "create table t (a int);"

TASKS: list[tuple[Any, dict[str, Any], dict[str, list[Any]]]] = [
    # The class, its other arguments, and for each argument that must be there what it may not come to.
    (ApprovePipelineOperator, {}, {}),
    (CheckpointPipelineOperator, {}, {}),
    (CompletionTokenOperator, {"table": "t", "connector": "c"}, {"table": LOST, "connector": LOST}),
    (DeletePipelineOperator, {}, {}),
    (
        DeployPipelineOperator,
        {"sql": SQL, "object_store_conn_id": "s"},
        {"sql": LOST, "if_exists": [*LOST, "forget"], "secret_conn_ids": [["None"], "", None], "object_store_conn_id": LOST},
    ),
    (IngestFileOperator, {"table": "t", "path": "rows.csv"}, {"table": LOST, "path": LOST}),
    (
        IngestOperator,
        {"table": "t", "rows": [{"a": 1}]},
        {"table": LOST, "rows": [*LOST, [], {}, "[]", "null", "rows"], "update_format": [*LOST, "add"]},
    ),
    (
        ModifyPipelineOperator,
        {"sql": SQL, "udf_python": "x", "stream_program": "a.py", "stream_arguments": ["x"], "runtime_config": {}},
        {
            "sql": LOST,
            "udf_python": LOST,
            "stream_program": [None, "None"],
            "stream_arguments": [None, "None"],
            "runtime_config": [*LOST, "[]", "{"],
        },
    ),
    (PausePipelineOperator, {}, {}),
    (QueryPipelineOperator, {"query": "select 1"}, {"query": LOST, "limit": [*LOST, 0, -1, "x", 1.5, True, float("inf")]}),
    (ResumePipelineOperator, {}, {}),
    (ReviewPipelineChangeOperator, {}, {"on_reject": [*LOST, "delete"]}),
    (StartPipelineOperator, {}, {"initial": [*LOST, "stopped"], "bootstrap_policy": [*LOST, "maybe"]}),
    (StopPipelineOperator, {}, {"mode": [*LOST, "now"]}),
    (SyncCheckpointOperator, {}, {}),
    (PipelineCompletionSensor, {}, {}),
    (PipelineCompletionTokenSensor, {"token": "x"}, {"token": LOST}),
    (PipelineIdleSensor, {}, {"idle_interval_s": [*LOST, -1, "soon", float("nan")]}),
    (PipelineStatusSensor, {"status": "RUNNING"}, {"status": [*LOST, [], ["RUNNING", "None"], "UPWARDS"]}),
]
CASES = [
    pytest.param(task, others, name, value, id=f"{task.__name__}-{name}-{value!r}")
    for task, others, wrong in TASKS
    for name, values in {"pipeline_name": LOST, "pipeline_conn_id": LOST, **wrong}.items()
    for value in values
]


@pytest.mark.parametrize(("task", "others", "name", "value"), CASES)
def test_what_came_to_nothing_is_refused_by_name_before_anything_is_asked(
    scripted: ScriptedService, task: Any, others: dict[str, Any], name: str, value: Any
) -> None:
    scripted.up()
    made = task(task_id="x", pipeline_name="p", **others)
    assert name in made.template_fields
    setattr(made, name, value)  # as rendering does
    with pytest.raises(AirflowFailException, match=rf"^{name}\b"):
        made.execute({})
    assert scripted.calls == []


def test_words_may_come_from_templates(scripted: ScriptedService) -> None:
    scripted.pipeline()
    start = StartPipelineOperator(
        task_id="x", pipeline_name="{{ n }}", initial="{{ initial }}", bootstrap_policy="{{ policy }}", deferrable=False
    )
    start.render_template_fields({"n": "p", "initial": "paused", "policy": "ALLOW"})

    def begin() -> dict[str, Any]:
        return scripted.up("Paused")

    scripted.answers["POST", "start"] = begin
    assert start.execute({})["status"] == "PAUSED"
    ((_, _, params, _),) = [call for call in scripted.calls if call[0] == "POST"]
    assert params == {"initial": "paused", "bootstrap_policy": "allow"}


def test_functions_in_python_may_have_jinjas_braces_when_they_are_literal() -> None:
    from airflow.sdk import literal

    module = "def f(x: str) -> str:\n    return f'{{{x}}}'\n"
    made = ModifyPipelineOperator(task_id="x", pipeline_name="p", udf_python=literal(module))  # type: ignore[arg-type]
    made.render_template_fields({})
    assert made.udf_python == module


def test_a_wrong_word_in_a_dag_is_found_when_it_is_parsed() -> None:
    with pytest.raises(ValueError, match="mode is 'kill'; known: checkpoint, force"):
        StopPipelineOperator(task_id="x", pipeline_name="p", mode="kill")
    StopPipelineOperator(task_id="y", pipeline_name="p", mode="{{ params.mode }}")


def test_texts_that_templates_make_of_values_are_read() -> None:
    assert arguments.whole_number("limit", "10", least=1) == 10
    assert arguments.number("seconds", "2.5", least=0) == 2.5
    assert arguments.mapping("config", '{"workers": 2}') == {"workers": 2}
    assert arguments.text("path", Path("/a/b")) == "/a/b"
    assert arguments.bootstrap_policy("policy", "Await_Approval") is BootstrapPolicy.AWAIT_APPROVAL
    assert arguments.statuses("status", ["running", PipelineStatus.PAUSED]) == ("RUNNING", "PAUSED")


def test_long_values_are_not_shown_whole() -> None:
    with pytest.raises(AirflowFailException) as raised:
        arguments.choice("mode", "x" * 5000, ("a",))
    assert len(str(raised.value)) < 300


def test_a_connection_that_does_not_exist_is_not_worth_a_retry() -> None:
    for task in (PausePipelineOperator, PipelineCompletionSensor):
        made = task(task_id="x", pipeline_name="p", pipeline_conn_id="nowhere")
        with pytest.raises(AirflowFailException, match="no connection 'nowhere'"):
            made.execute({})
