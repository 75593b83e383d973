"""From a declaration to an input or output: what references stand for is read, checked, and never shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_pipelines.common.references import NO_REFERENCES, References
from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input, open_output
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.connectors.transports.null_output import NullOutput
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from tests.connectors.relations import GRADES

PIPELINE = PipelineReference("0190-1", "p")
INPUT = Connector("grades", "c", ConnectorDirection.INPUT, "file_input", {"path": "/data/g.csv"}, "csv")
OUTPUT = Connector("v", "o", ConnectorDirection.OUTPUT, "file_output", {"path": "/data/out"}, "json")


def test_an_output_is_of_its_transport() -> None:
    assert isinstance(open_output(OUTPUT, GRADES, NO_REFERENCES, PIPELINE), FileOutput)
    assert isinstance(
        open_output(replace(OUTPUT, transport="null_output", transport_config={}, format=None), GRADES, NO_REFERENCES, PIPELINE),
        NullOutput,
    )


def test_environment_references(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("1,a,1,\n")
    declared = replace(INPUT, transport_config={"path": "${env:FOLDER}/g.csv"})
    source = open_input(declared, GRADES, References({"FOLDER": str(tmp_path)}), PIPELINE)
    source.open(None)
    chunk = source.read(10, 1)
    assert chunk is not None
    assert chunk.records == 1
    with pytest.raises(
        ConnectorFailure, match=r"\$\{env:FOLDER\} has no value: give the pipeline.*AIRFLOW_PIPELINES_CONNECTOR_ENV"
    ):
        open_input(declared, GRADES, NO_REFERENCES, PIPELINE)
    with pytest.raises(ConnectorFailure, match="references of kind 'vault' are not supported"):
        open_input(replace(INPUT, transport_config={"path": "${vault:a/b}"}), GRADES, NO_REFERENCES, PIPELINE)


def test_references_to_secrets(tmp_path: Path) -> None:
    secrets = SecretFiles(tmp_path / "secrets")
    secrets.write("kubernetes/store/folder", str(tmp_path))
    declared = replace(INPUT, transport_config={"path": "${secret:kubernetes:store/folder}/g.csv"})
    (tmp_path / "g.csv").write_text("1,a,1,\n")
    source = open_input(declared, GRADES, References(secrets=secrets), PIPELINE)
    source.open(None)
    chunk = source.read(10, 1)
    assert chunk is not None
    assert chunk.records == 1
    for references in (NO_REFERENCES, References(secrets=SecretFiles(tmp_path / "none"))):
        with pytest.raises(ConnectorFailure, match=r"\$\{secret:kubernetes:store/folder\} has no value"):
            open_input(declared, GRADES, references, PIPELINE)
    output = replace(OUTPUT, transport_config={"path": "${secret:kubernetes:store/folder}/o.csv"})
    made = open_output(output, GRADES, References(secrets=secrets), PIPELINE)
    made.open(resumed=False)
    made.close()
    assert (tmp_path / "o.csv").exists()


def test_what_references_stand_for_is_checked_when_the_connector_is_opened(tmp_path: Path) -> None:
    declared = replace(OUTPUT, transport_config={"path": "${env:WHERE}"}, format="parquet")
    validate(declared, GRADES)
    open_output(declared, GRADES, References({"WHERE": f"{tmp_path}/out/"}), PIPELINE)
    with pytest.raises(ConnectorFailure, match="file_output writes Parquet as a folder of files"):
        open_output(declared, GRADES, References({"WHERE": f"{tmp_path}/out"}), PIPELINE)
    follow = replace(INPUT, transport_config={"path": "x", "buffer_size_bytes": "${env:SIZE}"})
    validate(follow, GRADES)
    with pytest.raises(ConnectorFailure, match="option 'buffer_size_bytes' of transport 'file_input'") as error:
        open_input(follow, GRADES, References({"SIZE": "hunter2"}), PIPELINE)
    assert "hunter2" not in str(error.value)
    open_input(follow, GRADES, References({"SIZE": "100"}), PIPELINE)
