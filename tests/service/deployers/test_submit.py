"""What is submitted: commands without secrets, the right Python, the right resources."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from airflow_pipelines.common import class_archive
from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import Base, Registry
from airflow_pipelines.contract.runtime_config import RuntimeConfig
from airflow_pipelines.contract.store_address import database_url
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.deployers.base import SubmitError, SubmitRequest, SubmittedProcess, merged_conf
from airflow_pipelines.service.deployers.dedicated import SparkProperties, spark_properties
from airflow_pipelines.service.deployers.launch import HOST_SCRIPT, Launcher
from airflow_pipelines.service.deployers.submit import LocalSubmitter, spark_home, submit_command, submit_environment
from airflow_pipelines.service.housekeeping import Housekeeping

HOST = UUID(int=5)
PARTITIONS = {"spark.sql.shuffle.partitions": "8"}
MEMORY = {"spark.driver.memory": "4g"}


class Recorder:
    """A submitter that only remembers."""

    def __init__(self, error: str | None = None) -> None:
        self.requests: list[SubmitRequest] = []
        self.error = error

    def submit(self, request: SubmitRequest) -> SubmittedProcess:
        self.requests.append(request)
        if self.error:
            raise SubmitError(self.error)
        return SubmittedProcess(pid=123456789, machine="m")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")
    Base.metadata.create_all(engine)
    return engine


def settings(tmp_path: Path) -> Settings:
    return Settings.load(tmp_path, database_url="postgresql://me:s3cret@db/x")


def deployment() -> Deployment:
    return Deployment(
        deployment_id=UUID(int=1),
        pipeline_id=UUID(int=2),
        pipeline_name="p",
        source=ProgramSource(""),
        runtime_config={},
        storage="s",
        log_path="l",
    )


def test_a_host_has_its_row_before_it_starts_and_is_submitted_once(tmp_path: Path, engine: Engine) -> None:
    submitter = Recorder()
    launcher = Launcher(settings(tmp_path), engine, submitter)
    for _ in range(2):
        launcher.launch("dedicated", host_id=HOST, deployment=deployment(), master="local[1]", conf={})
    assert len(submitter.requests) == 1
    row = Registry(engine).get(HOST)
    assert row is not None
    assert (row.pid, row.machine, row.kind, row.deployment_id) == (123456789, "m", "dedicated", UUID(int=1))
    assert (row.deployment or {})["pipeline_name"] == "p"
    assert len(row.token) > 30


def test_a_host_that_cannot_be_submitted_is_ended(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(SubmitError, match="no such queue"):
        Launcher(settings(tmp_path), engine, Recorder("no such queue")).launch("shared", host_id=HOST, master=None, conf={})
    assert Registry(engine).live_hosts() == []


def test_hosts_do_not_inherit_what_is_the_services_or_airflows(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW_PIPELINES_API_KEYS", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW_CONN_DB", "_AIRFLOW__X"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("AWS_REGION", "eu")
    submitter = Recorder()
    one = replace(settings(tmp_path), connector_env=("AWS_*", "HOME"))
    Launcher(one, engine, submitter).launch("shared", host_id=HOST, master="local[2]", conf={})
    environment = submit_environment(submitter.requests[0], spark_home())
    assert "hunter2" not in environment.values()
    assert environment["AWS_REGION"] == "eu"
    assert environment["AIRFLOW_PIPELINES_CONNECTOR_ENV"] == "AWS_*,HOME"


def test_the_address_of_the_store_goes_by_a_private_file_only(tmp_path: Path, engine: Engine) -> None:
    submitter = Recorder()
    Launcher(settings(tmp_path), engine, submitter).launch("shared", host_id=HOST, master="local[2]", conf={"spark.x": "y"})
    request = submitter.requests[0]
    command = submit_command(request, spark_home())
    spark_folder = tmp_path / "spark" / str(HOST)
    assert spark_folder.is_dir()
    assert command[1:] == [
        "--name", "airflow-pipelines shared host", "--master", "local[2]",
        "--conf", "spark.driver.bindAddress=127.0.0.1",
        "--conf", f'spark.driver.extraJavaOptions=-Xss4m "-Djava.io.tmpdir={spark_folder}"',
        "--conf", "spark.driver.host=127.0.0.1",
        "--conf", f"spark.local.dir={spark_folder}", "--conf", "spark.x=y", str(HOST_SCRIPT), "--host-id", str(HOST),
    ]  # fmt: skip
    assert Path(command[0]).is_file()
    assert HOST_SCRIPT.is_file()
    assert "s3cret" not in " ".join(command) + repr(request)
    environment = submit_environment(request, spark_home())
    assert not any("s3cret" in value for value in environment.values())
    (handed,) = (tmp_path / "hosts").iterdir()
    assert stat.S_IMODE(handed.stat().st_mode) == 0o600
    seen = Settings(home=tmp_path, database_url="sqlite:///elsewhere")
    assert database_url(seen, HOST) == "postgresql://me:s3cret@db/x"
    Registry(engine).end(HOST)
    Housekeeping(settings(tmp_path), engine).tidy()
    assert database_url(seen, HOST) == "sqlite:///elsewhere"
    assert environment["PYSPARK_PYTHON"] == environment["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert environment["PATH"].startswith(str(Path(sys.executable).parent))
    assert (Path(environment["PYTHONPATH"].split(":")[0]) / "airflow_pipelines").is_dir()


CORES = os.cpu_count() or 1


@pytest.mark.parametrize(
    ("config", "master", "expected"),
    [
        # Nothing said: as many cores as there are workers, and not all of the machine or the cluster.
        ({}, "local[*]", SparkProperties(f"local[{min(8, CORES)}]", PARTITIONS, MEMORY)),
        ({}, "local[2]", SparkProperties("local[2]", PARTITIONS, MEMORY)),
        ({}, "spark://h:7077", SparkProperties("spark://h:7077", PARTITIONS, MEMORY | {"spark.cores.max": "8"})),
        ({}, None, SparkProperties(None, PARTITIONS, MEMORY | {"spark.cores.max": "8"})),
        (
            {"workers": 2, "resources": {"cpu_cores_max": 3, "memory_mb_max": 900}},
            "local[*]",
            SparkProperties("local[3]", {"spark.driver.memory": "900m", "spark.sql.shuffle.partitions": "2"}, MEMORY),
        ),
        (
            {"resources": {"cpu_cores_max": 0.5}},
            "spark://h:7077",
            SparkProperties("spark://h:7077", PARTITIONS | {"spark.cores.max": "1"}, MEMORY),
        ),
        (
            {
                "spark": {
                    "conf": {"spark.executor.cores": "2", "spark.driver.memory": "1g"},
                    "packages": ["g:a:1", "g:b:2"],
                    "image": "spark:4.2",
                    "driver_memory": "3g",
                    "executor_memory": "5g",
                }
            },
            None,
            SparkProperties(
                None,
                PARTITIONS
                | {
                    "spark.executor.cores": "2",
                    "spark.driver.memory": "3g",
                    "spark.executor.memory": "5g",
                    "spark.jars.packages": "g:a:1,g:b:2",
                    "spark.kubernetes.container.image": "spark:4.2",
                },
                MEMORY | {"spark.cores.max": "8"},
            ),
        ),
    ],
)
def test_a_configuration_becomes_spark_properties(config: Any, master: str | None, expected: SparkProperties) -> None:
    assert spark_properties(RuntimeConfig.model_validate(config), master, "4g") == expected


def test_later_layers_win_but_options_of_the_jvm_add_up() -> None:
    java = "spark.driver.extraJavaOptions"
    assert merged_conf({"a": "1", java: "-Xss1m"}, {"a": "2", java: "-Da=b"}) == {"a": "2", java: "-Xss1m -Da=b"}


def test_no_java_is_said_before_anything_is_started(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SubmitError, match="JAVA_HOME"):
        Launcher(settings(tmp_path), engine, LocalSubmitter()).launch("shared", host_id=HOST, master="local[1]", conf={})


def test_hosts_read_the_archive_of_classes_where_there_is_one(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.setattr(class_archive, "ARCHIVE", tmp_path / "spark classes.jsa")
    submitter = Recorder()
    Launcher(settings(tmp_path), engine, submitter).launch("shared", host_id=HOST, master="local[2]", conf={})
    (asked,) = submitter.requests
    assert submit_environment(asked, tmp_path)["SPARK_SUBMIT_OPTS"] == "-Dmine=1"
    class_archive.ARCHIVE.touch()
    options = shlex.split(submit_environment(asked, tmp_path)["SPARK_SUBMIT_OPTS"])
    assert options[:2] == ["-Dmine=1", f"-XX:SharedArchiveFile={tmp_path}/spark classes.jsa"]
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    assert submit_environment(asked, tmp_path)["SPARK_SUBMIT_OPTS"].startswith('"-XX:SharedArchiveFile=')
