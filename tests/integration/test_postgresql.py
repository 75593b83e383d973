"""The store in a real PostgreSQL server: the same life cycle, and two services that act at once."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.client import PipelineClient
from airflow_pipelines.database import open_database
from airflow_pipelines.enums import PipelineStatus
from airflow_pipelines.errors import PipelineAPIError
from airflow_pipelines.pipeline import Pipeline
from airflow_pipelines.pipeline_builder import PipelineBuilder
from airflow_pipelines.service.app import create_app
from airflow_pipelines.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration
PROGRAM = """
create table sales (shop string, amount decimal(8,2)) with ('materialized' = 'true');
create materialized view takings as select shop, sum(amount) as total from sales group by shop;
"""


@pytest.fixture(scope="module")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A throw-away server on loopback."""
    found = sorted(str(path) for path in Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = shutil.which("initdb")
    if not found and initdb:
        found = [str(Path(initdb).parent)]
    if not found:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    folder = tmp_path_factory.mktemp("postgresql")
    # A server refuses to run as root, so it runs as the user that its package made.
    as_user: list[str] = []
    if getpass.getuser() == "root":
        as_user = ["runuser", "-u", "postgres", "--"]
        for parent in [folder, *folder.parents]:
            if parent.owner() == "root" and parent.is_relative_to("/tmp") and parent != Path("/tmp"):
                parent.chmod(0o755)
        shutil.chown(folder, "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    command = [*as_user, f"{found[-1]}/initdb", "-D", str(data), "-U", "pipelines", "--auth=trust", "--no-sync"]
    subprocess.run(command, check=True, capture_output=True, cwd="/")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    control = [*as_user, f"{found[-1]}/pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log")]
    # Its own environment: what a server inherits from a developer's shell must not change what is tested.
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    subprocess.run([*control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/", env=env)
    try:
        yield f"postgresql://pipelines@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/", env=env)


@pytest.fixture
def clients(spark: SparkSession, database_url: str, tmp_path: Path) -> Iterator[tuple[PipelineClient, PipelineClient]]:
    """Two services over one store, each with a client."""
    from airflow_pipelines.host.inprocess import InProcessHost

    settings = Settings(home=tmp_path, database_url=database_url, storage=tmp_path / "storage")
    with InProcessHost(spark, open_database(database_url)):
        apps = [create_app(settings), create_app(settings)]
        made = [PipelineClient(app=app) for app in apps]
        yield made[0], made[1]
        for app, client in zip(apps, made, strict=True):
            client.close()
            app.state.control.close()


def test_a_pipeline_lives_in_a_postgresql_store(clients: tuple[PipelineClient, PipelineClient]) -> None:
    one, other = clients
    pipeline = PipelineBuilder(one, "shops", sql=PROGRAM).create()
    pipeline.start(timeout_s=60)
    pipeline.execute("insert into sales values ('north', 10.50), ('south', 1), ('north', 2)")
    # What one service did, the other one knows: truth is in the store only.
    seen = Pipeline.get("shops", other)
    assert seen.status() == PipelineStatus.RUNNING
    assert list(seen.query("select * from takings order by shop")) == [
        {"shop": "north", "total": Decimal("12.50")},
        {"shop": "south", "total": Decimal("1.00")},
    ]
    seen.stop(force=False, timeout_s=60)
    assert pipeline.status() == PipelineStatus.STOPPED
    pipeline.start(timeout_s=60)
    assert list(pipeline.query("select total from takings where shop = 'south'")) == [{"total": Decimal("1.00")}]
    pipeline.stop(force=True, timeout_s=60)
    pipeline.delete(clear_storage=True)


def test_two_services_that_create_one_name_at_once_make_one_pipeline(clients: tuple[PipelineClient, PipelineClient]) -> None:
    def create(client: PipelineClient) -> str:
        try:
            client.post("/v0/pipelines", json={"name": "contested", "program_code": PROGRAM})
        except PipelineAPIError as error:
            return str(error.error_code)
        return "created"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(create, clients)) == ["DuplicateName", "created"]
