from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.program.sources import ProgramSource, SourceFile

FIELDS: dict[str, Any] = {
    "deployment_id": str(UUID(int=1)),
    "pipeline_id": str(UUID(int=2)),
    "pipeline_name": "p",
    "program_code": "select 1",
    "runtime_config": {},
    "storage": "/s",
    "log_path": "/l",
}


def test_what_a_service_of_an_earlier_release_sends() -> None:
    assert Deployment.model_validate(FIELDS).source == ProgramSource("select 1")


@pytest.mark.parametrize("files", [(), (SourceFile("streams/a.py", "x = 1"),)])
def test_the_fields_of_the_source_are_among_the_others_on_the_wire(files: tuple[SourceFile, ...]) -> None:
    source = ProgramSource("select 1", "import os", files)
    deployment = Deployment.model_validate({**FIELDS, **source.to_wire()})
    assert deployment.source == source
    wire = deployment.model_dump(mode="json")
    assert (wire["program_code"], wire["udf_python"], "source" in wire) == ("select 1", "import os", False)
    assert ("stream_files" in wire) == bool(files)
    assert Deployment.model_validate(json.loads(json.dumps(wire))) == deployment


def test_what_is_kept_about_a_deployment_is_without_its_source() -> None:
    kept = Deployment.model_validate(FIELDS).model_dump(mode="json", exclude={"source"})
    assert not kept.keys() & {"source", "program_code", "udf_python"}
    assert kept["storage"] == "/s"


@pytest.mark.parametrize("fields", [{"program_code": 1}, {"udf_python": None}, {"stream_files": {"a": 1}}, {"stream_files": ["a"]}])
def test_a_source_of_other_types_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="source"):
        Deployment.model_validate({**FIELDS, **fields})
