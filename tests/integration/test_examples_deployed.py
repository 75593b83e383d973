"""A script and a pipeline do the same: examples print the same lines. ``test_airflow.py`` looks at those of a DAG."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from airflow_pipelines import PipelineClient
from airflow_pipelines.cli.commands import cli
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
    lines = done.stdout.splitlines()
    assert lines == PRINTED[name] or (name in TWO_SOURCES and sorted(lines) == sorted(PRINTED[name]))
