"""A script, a deployed program and a task of Airflow do the same: examples print the same lines, whoever runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airflow_pipelines import Pipeline, PipelineClient
from airflow_pipelines.cli import cli
from airflow_pipelines.operators.change import DeployPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.sensors.pipeline import PipelineCompletionSensor
from tests.datastream.test_examples import FOLDER, PRINTED

pytestmark = [pytest.mark.integration, pytest.mark.timeout(200)]

DEPLOYABLE = sorted(PRINTED.keys() - {"watched_folder"})
"""That one executes two programs, one after the other, and writes the files that the first one reads."""

TWO_SOURCES = frozenset({"enrichment", "join"})
"""Which of two sources gives its elements first is not said: lines may come in another order."""


@pytest.mark.parametrize("name", DEPLOYABLE)
def test_run_as_a_pipeline_it_prints_what_the_script_prints(
    embedded_client: PipelineClient, warm_home: Path, pipeline_name: str, name: str
) -> None:
    done = CliRunner().invoke(cli, ["run", str(FOLDER / f"{name}.py"), "--name", pipeline_name, "--home", str(warm_home)])
    assert done.exit_code == 0, done.output
    _check(name, done.stdout.splitlines())


@pytest.mark.parametrize("name", DEPLOYABLE)
def test_deployed_by_tasks_it_prints_what_the_script_prints(
    embedded_client: PipelineClient, warm_home: Path, pipeline_name: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "airflow_pipelines", "extra": {"home": str(warm_home)}}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_PIPELINES_DEFAULT", json.dumps(connection))
    DeployPipelineOperator(
        task_id="deploy", pipeline_name=pipeline_name, stream_program=str(FOLDER / f"{name}.py"), if_exists="replace"
    ).execute({})
    StartPipelineOperator(task_id="start", pipeline_name=pipeline_name, timeout=120).execute({})
    PipelineCompletionSensor(task_id="processed", pipeline_name=pipeline_name, poke_interval=0.1, timeout=60).execute({})
    StopPipelineOperator(task_id="stop", pipeline_name=pipeline_name).execute({})
    _check(name, _printed(Pipeline.get(pipeline_name, embedded_client)))


def _check(name: str, lines: list[str]) -> None:
    if name in TWO_SOURCES:
        assert sorted(lines) == sorted(PRINTED[name])
    else:
        assert lines == PRINTED[name]


def _printed(pipeline: Pipeline) -> list[str]:
    """What the program has printed, from the log of its only run."""
    lines = []
    for line in pipeline.logs():
        _, found, text = line.partition("stdout: ")
        if found:
            lines.append(text)
        elif "now Suspended" in line:
            break
    return lines
