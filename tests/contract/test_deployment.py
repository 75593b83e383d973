"""What a host reads of the incarnation that it is given."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.stream_files import stream_files


def deployment(runtime_config: dict[str, Any]) -> Deployment:
    return Deployment.model_validate(
        {
            "deployment_id": UUID(int=1),
            "pipeline_id": UUID(int=2),
            "pipeline_name": "orders",
            "program_code": "",
            "runtime_config": runtime_config,
            "storage": "/s",
            "log_path": "/l",
        }
    )


def test_the_configuration_has_defaults_for_what_an_earlier_release_did_not_know() -> None:
    config = deployment({"workers": 3}).config()
    assert (config.workers, config.clock_resolution_usecs) == (3, 1_000_000)


def test_a_configuration_that_an_earlier_release_stored_unchecked_says_what_to_correct() -> None:
    with pytest.raises(Problem) as refused:
        deployment({"workers": 0, "env": {"A": ["hush"]}}).config()
    assert refused.value.code is ErrorCode.INVALID_RUNTIME_CONFIG
    assert "of the pipeline orders makes no sense" in refused.value.message
    assert "workers: " in refused.value.message
    assert "env.A: " in refused.value.message
    assert "hush" not in str(refused.value.body())


def test_the_source_travels_among_the_other_fields_in_its_order() -> None:
    source = ProgramSource("", "", stream_files({"z.py": "import a", "a.py": ""}), ("--day", "1"))
    made = deployment({}).model_copy(update={"source": source})
    wire = json.loads(made.model_dump_json())
    assert (wire["stream_files"], wire["stream_arguments"]) == ({"z.py": "import a", "a.py": ""}, ["--day", "1"])
    assert Deployment.model_validate(wire).source == source
    assert "stream_files" not in deployment({}).model_dump()
