"""The main job, end to end: a SQL pipeline on Spark that a DAG deploys, loads, checkpoints, changes with approval, and stops.

A school keeps averages of its students' grades. The pipeline is a long-lived job that holds all grades and keeps every average
up to date; the DAG does not compute, it conducts. It may be run as often as you like: a second run finds the pipeline stopped,
resumes it from its checkpoint and reads no file again.

What you can set: the folder of store, state and logs with the environment variable ``AIRFLOW_PIPELINES_HOME`` or the connection
``airflow_pipelines_default`` (no connection is needed), and where checkpoints are copied to with the parameter ``object_store``.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, chain, task

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.operators.approval import ApprovePipelineOperator
from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.operators.checkpoint import CheckpointPipelineOperator, SyncCheckpointOperator
from airflow_pipelines.operators.data import CompletionTokenOperator, IngestOperator, QueryPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.sensors import (
    PipelineCompletionSensor,
    PipelineCompletionTokenSensor,
    PipelineIdleSensor,
    PipelineStatusSensor,
)

PIPELINE = "student_grades"
DATA = Path(__file__).parent / "student_grades_data"
HOME = Path(os.environ.get("AIRFLOW_PIPELINES_HOME", "~/.airflow_pipelines")).expanduser()


# [START program]
def connector(file: str) -> str:
    """Return a table's connector as the program declares it: JSON within a SQL string.

    A name of our own keeps it recognisable later.
    """
    return json.dumps(
        [
            {
                "name": "csv",
                "transport": {"name": "file_input", "config": {"path": str(DATA / file)}},
                "format": {"name": "csv", "config": {"headers": True}},
            }
        ]
    ).replace("'", "''")


def program(first_day: str, last_day: str) -> str:
    """Return the pipeline's program: averages per student and class between two days.

    Both tables are materialized: their rows are kept, so that views added or changed later can be computed from them.
    """
    return f"""
create table students (
    id bigint,
    name varchar
) with ('materialized' = 'true', 'connectors' = '{connector("students.csv")}');

create table grades (
    student_id bigint,
    class string,
    grade decimal(5, 2),
    class_date date
) with ('materialized' = 'true', 'connectors' = '{connector("grades.csv")}');

create view avg_grade as
select student_id, class, avg(grade) as class_avg
from grades
where class_date >= date '{first_day}' and class_date <= date '{last_day}'
group by student_id, class;

create materialized view avg_grade_enriched as
select name as student_name, class, class_avg
from avg_grade join students on avg_grade.student_id = students.id;
"""


AUTUMN = program("2025-09-01", "2025-12-15")
WHOLE_YEAR = (
    program("2025-09-01", "2026-06-10")
    + """
create materialized view avg_grade_all_courses as
select student_id, avg(class_avg) as avg
from avg_grade
group by student_id;
"""
)
# [END program]

AVERAGES = "select student_name, class, class_avg from avg_grade_enriched order by student_name, class"
ALL_COURSES = "select student_id, avg from avg_grade_all_courses order by student_id"

# A grade that is entered for the wrong student in the third part, and taken back.
MISTAKE = {"student_id": 2, "class": "algebra", "grade": "95.00", "class_date": "2025-11-20"}


@task(multiple_outputs=False)
def figures() -> dict[str, Any]:
    """Return the pipeline's counters and the figures of its latest step with input. The hook serves whatever no operator does."""
    hook = PipelineHook()
    stats = hook.stats(PIPELINE)
    metrics = stats["global_metrics"]
    with_input = [step for step in hook.steps(PIPELINE) if step["input_rows"]]
    return {
        "total_input_records": metrics["total_input_records"],
        "total_processed_records": metrics["total_processed_records"],
        "total_completed_steps": metrics["total_completed_steps"],
        "connectors": {
            status["endpoint_name"]: status["metrics"]["total_records"]
            for status in stats["inputs"]
            if "api-ingress" not in status["endpoint_name"]
        },
        "latest_step": max(with_input, key=lambda step: step["step"], default=None),
    }


# [START dag]
with DAG(
    dag_id=PIPELINE,
    description="Deploy, load, checkpoint, change with approval and stop a stateful SQL pipeline on Spark",
    schedule=None,
    catchup=False,
    # One pipeline, one state: two runs at once would stop each other's.
    max_active_runs=1,
    params={
        "object_store": Param(
            str(HOME / "object_store"), type="string", description="Where checkpoints are copied to: a URL, or a folder"
        )
    },
    default_args={
        "pipeline_name": PIPELINE,
        # Deferred tasks are the ones that profit: see "deferrable" in docs/airflow.md.
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    # 1. Deploy. "keep" makes a second run of this DAG go on with the pipeline as the first run left it; for a DAG that holds one
    #    program only, the default "modify" is what you want.
    # [START deploy]
    deploy = DeployPipelineOperator(
        task_id="deploy",
        sql=AUTUMN,
        if_exists="keep",
        runtime_config={"storage": {"backend": {"name": "file", "config": {"sync": {"bucket": "{{ params.object_store }}"}}}}},
    )
    # [END deploy]

    # 2. Start, and wait until the files are processed. The token covers what its connector has received when the token is made;
    #    since a connector may not have opened its file by then, the end of all inputs is waited for as well. Both sensors defer:
    #    they occupy no worker while they wait.
    # [START start]
    start = StartPipelineOperator(task_id="start", timeout=300)
    files_token = CompletionTokenOperator(task_id="files_token", table="grades", connector="csv")
    token_processed = PipelineCompletionTokenSensor(
        task_id="token_processed",
        token="{{ ti.xcom_pull('files_token')['token'] }}",
        deferrable=True,
        poke_interval=1,
        timeout=120,
    )
    files_processed = PipelineCompletionSensor(task_id="files_processed", deferrable=True, poke_interval=1, timeout=120)
    first_answer = QueryPipelineOperator(task_id="first_answer", query=AVERAGES)
    # [END start]
    figures_after_files = figures.override(task_id="figures_after_files")()

    # 3. Push a row over HTTP and wait until nothing is left to do: only the averages that the row touches are computed.
    # [START push]
    # Its rows are added once for each DAG run, also when the task is retried or cleared.
    push = IngestOperator(task_id="push", table="grades", rows=[MISTAKE])
    idle = PipelineIdleSensor(task_id="idle", idle_interval_s=2, deferrable=True, poke_interval=1, timeout=120)
    second_answer = QueryPipelineOperator(task_id="second_answer", query=AVERAGES)
    # [END push]
    figures_after_push = figures.override(task_id="figures_after_push")()
    # The grade was meant for somebody else. A pipeline takes deletions as well as insertions, and views follow both.
    # [START take_back]
    take_back = IngestOperator(task_id="take_back", table="grades", rows=[{"delete": MISTAKE}], update_format="insert_delete")
    taken_back = PipelineCompletionTokenSensor(
        task_id="taken_back", token="{{ ti.xcom_pull('take_back')['token'] }}", poke_interval=1, timeout=120
    )
    # [END take_back]

    # 4. Make the state safe: a checkpoint, and its copy in an object store (here a folder, in earnest s3://...).
    # [START checkpoint]
    checkpoint = CheckpointPipelineOperator(task_id="checkpoint")
    sync = SyncCheckpointOperator(task_id="sync")
    # [END checkpoint]

    # 5. Change the program without losing the state: extend the period to the whole year and add a view. The pipeline compares
    #    its checkpoint's program with the new one and waits; the task below approves exactly the change that the start has shown.
    #    To have a person decide, put a ReviewPipelineChangeOperator in its place.
    # [START change]
    stop_to_modify = StopPipelineOperator(task_id="stop_to_modify")
    modify = ModifyPipelineOperator(task_id="modify", sql=WHOLE_YEAR)
    start_changed = StartPipelineOperator(task_id="start_changed", bootstrap_policy="await_approval", timeout=300)
    approve = ApprovePipelineOperator(
        task_id="approve", expected_programs="{{ ti.xcom_pull('start_changed')['programs'] | tojson }}", timeout=300
    )
    running = PipelineStatusSensor(task_id="running", status="RUNNING", deferrable=True, poke_interval=1, timeout=120)
    third_answer = QueryPipelineOperator(task_id="third_answer", query=AVERAGES)
    all_courses = QueryPipelineOperator(task_id="all_courses", query=ALL_COURSES)
    # [END change]
    figures_at_the_end = figures.override(task_id="figures_at_the_end")()

    # 6. Stop with a checkpoint. The next run of this DAG resumes from it.
    # [START stop]
    stop = StopPipelineOperator(task_id="stop")
    # [END stop]

    chain(deploy, start, files_token, token_processed, files_processed, [first_answer, figures_after_files], push)
    chain(push, idle, [second_answer, figures_after_push], take_back, taken_back, checkpoint, sync)
    chain(sync, stop_to_modify, modify, start_changed, approve, running)
    chain(running, [third_answer, all_courses, figures_at_the_end], stop)
# [END dag]

if __name__ == "__main__":
    dag.test()
