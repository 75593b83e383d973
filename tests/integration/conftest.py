"""One Airflow for all tests of a file that need a real one: its scheduler takes a sixth of a processor even when nothing runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.airflow_live import LiveAirflow
from tools.postgres_server import PostgresServer, find_programs


@pytest.fixture(scope="module")
def airflow_database() -> Iterator[str]:
    """The database of Airflow's own: its services write at the same time, and SQLite gives up when it has waited too long."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    server = PostgresServer(programs)
    server.start()
    try:
        yield server.url().replace("postgresql://", "postgresql+psycopg://")
    finally:
        server.close()


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory, repository: Path, airflow_database: str) -> Iterator[LiveAirflow]:
    """API server, scheduler and triggerer over the example DAGs and those of the tests."""
    folder = tmp_path_factory.mktemp("airflow")
    home, dags, pipelines = folder / "home", folder / "dags", folder / "pipelines"
    home.mkdir()
    shutil.copytree(repository / "dags_examples", dags, ignore=shutil.ignore_patterns("__*__*", "demo*"))
    shutil.copytree(repository / "examples", dags / "examples")
    with (dags / ".airflowignore").open("a") as ignored:
        ignored.write("\nexamples/\n")
    for dag in (repository / "tests" / "integration" / "dags").glob("*.py"):
        shutil.copy(dag, dags)
    extra = {"home": str(pipelines), "deployer": "dedicated", "spark_conn_id": "spark_here"}
    environment = {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": airflow_database,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": airflow_database,
        "AIRFLOW_PIPELINES_HOME": str(pipelines),
        "AIRFLOW_PIPELINES_DRIVER_MEMORY": "1g",
        "AIRFLOW_CONN_DEDICATED": json.dumps({"conn_type": "airflow_pipelines", "extra": extra}),
        "AIRFLOW_CONN_SPARK_HERE": json.dumps({"conn_type": "spark", "host": "local[1]"}),
    }
    airflow = LiveAirflow(home, dags, repository, environment)
    try:
        with airflow:
            yield airflow
    finally:
        command = [sys.executable, "-m", "airflow_pipelines.cli", "hosts", "stop", "--home", str(pipelines)]
        subprocess.run(command, env=airflow.environment, check=False, capture_output=True)
