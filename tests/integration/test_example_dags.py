"""The example DAGs, each carried out by a real Airflow: API server, scheduler and triggerer."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyspark
import pytest

from airflow_pipelines import Pipeline, PipelineClient
from tests.integration.airflow_live import DagRun, LiveAirflow, free_ports

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

# Airflow fails a task whose answer comes while its worker is still leaving; people are slower than that.
A_PERSONS_TIME_S = 6.0
ORDERS = [{"customer": "anna", "orders": 1, "amount": "12.50"}, {"customer": "bob", "orders": 1, "amount": "5.00"}]


@pytest.fixture(scope="module")
def quick_start(airflow: LiveAirflow) -> DagRun:
    """The run of the example that others go on from."""
    run = airflow.trigger("quick_start")
    run.wait_for_success(timeout_s=300)
    return run


def test_the_quick_start_answers_and_its_program_changes_after_approval(airflow: LiveAirflow, quick_start: DagRun) -> None:
    assert quick_start.xcom("ask")["rows"] == ORDERS
    change = airflow.trigger("gated_modification")
    assert "max(amount) as largest" in change.request("change")["body"]
    time.sleep(A_PERSONS_TIME_S)
    change.answer("change", "Approve")
    change.wait_for_success(timeout_s=180)
    assert change.xcom("tell").startswith("quick_start: approved by ")
    # The next run leaves the changed program as it is, and counts on.
    again = airflow.trigger("quick_start")
    again.wait_for_success(timeout_s=120)
    assert again.xcom("deploy")["action"] == "kept"
    assert again.xcom("start")["attached"] is True
    assert [row["orders"] for row in again.xcom("ask")["rows"]] == [2, 2]


def test_a_checkpoint_makes_its_consumer_run(airflow: LiveAirflow, quick_start: DagRun) -> None:
    runs = "/dags/event_driven_consumer/dagRuns"
    before = airflow.get(runs)["total_entries"]
    # What the watcher finds when it looks first is no event.
    time.sleep(8)
    with PipelineClient(home=airflow.environment["AIRFLOW_PIPELINES_HOME"]) as client:
        Pipeline.get("quick_start", client).checkpoint(wait=True)
    airflow.until("the consumer runs", lambda: airflow.get(runs)["total_entries"] > before, 60)
    run = DagRun(airflow, f"{runs}/{airflow.get(runs)['dag_runs'][-1]['dag_run_id']}")
    run.wait_for_success(timeout_s=120)
    (event,) = run.xcom("what_happened")
    assert (event["event"], event["pipeline"]) == ("checkpoint", "quick_start")


def test_loads_batches_gates_and_many_pipelines(airflow: LiveAirflow, tmp_path: Path) -> None:
    batch, many, good = (airflow.trigger(dag) for dag in ("batch_load", "many_pipelines", "data_quality_gate"))
    load = airflow.trigger("transactional_load")
    for run in (batch, many, good, load):
        run.wait_for_success(timeout_s=400)
    assert batch.xcom("batch.report")["rows"] == [
        {"shop": "lund", "days": 2, "amount": "219.50"},
        {"shop": "malmo", "days": 2, "amount": "100.00"},
        {"shop": "ystad", "days": 1, "amount": "7.25"},
    ]
    assert batch.xcom("batch.stop")["status"] == "STOPPED"
    assert many.xcom("total") == {"north": "10.00", "south": "20.00"}
    assert good.xcom("publish")["rows"] == [{"account": "anna", "balance": "10.00"}, {"account": "bob", "balance": "25.00"}]
    assert load.xcom("ask")["rows"] == [{"country": "SE", "amount": "99.90"}]

    closed = {"amount": "-1.00", "bundles": str(tmp_path)}
    bad, undone = airflow.trigger("data_quality_gate", closed), airflow.trigger("transactional_load", {"country": ""})
    assert (bad.wait_for_end(120), undone.wait_for_end(180)) == ("failed", "failed")
    assert bad.xcom("no_debts", "offending_rows") == [{"account": "bob", "balance": "-1.00"}]
    assert bad.tasks()["publish"] == "upstream_failed"
    assert [path.name for path in tmp_path.rglob("*.zip")] == ["no_debts-1.zip"]
    assert undone.xcom("load.undo")["undone"] is True
    with PipelineClient(home=airflow.environment["AIRFLOW_PIPELINES_HOME"]) as client:
        pipeline = Pipeline.get("transactional_load", client)
        assert list(pipeline.query("select country, cast(amount as varchar) as amount from revenue")) == [
            {"country": "SE", "amount": "99.90"}
        ]


def test_a_standby_takes_over_from_the_copy_of_a_checkpoint(airflow: LiveAirflow, tmp_path: Path) -> None:
    prepare = airflow.trigger("standby_prepare", {"bucket": str(tmp_path)})
    prepare.wait_for_success(timeout_s=300)
    assert prepare.xcom("start_second")["status"] == "STANDBY"
    copies = airflow.trigger("scheduled_checkpoint_sync", {"pipeline": "standby_first"})
    copies.wait_for_success(timeout_s=180)
    assert list((tmp_path / "first").rglob(f"*{copies.xcom('sync')['checkpoint']}*"))
    failover = airflow.trigger("standby_failover")
    failover.wait_for_success(timeout_s=180)
    assert failover.xcom("ask")["rows"] == [{"page": "help", "visits": 1}, {"page": "home", "visits": 2}]
    statuses = _statuses(airflow, "standby_first", "standby_second")
    assert statuses == ["STOPPED", "RUNNING"]


def _statuses(airflow: LiveAirflow, *names: str) -> list[Any]:
    with PipelineClient(home=airflow.environment["AIRFLOW_PIPELINES_HOME"]) as client:
        return [Pipeline.get(name, client).status().name for name in names]


@pytest.fixture
def spark_master(airflow: LiveAirflow, tmp_path: Path) -> Iterator[str]:
    """A Spark cluster of one machine: its address for the example's connection."""
    port, page, worker_page = free_ports(3)
    address = f"spark://127.0.0.1:{port}"
    class_runner = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    worker = [f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", str(worker_page), "--cores", "2", "--memory", "2g"]
    environment = os.environ | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(tmp_path / "worker")}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in (master, [*worker, address]):
            with (tmp_path / f"{len(running)}.log").open("wb") as log:
                running.append(subprocess.Popen([class_runner, *command], env=environment, stdout=log, stderr=log))
        url = f"http://127.0.0.1:{page}/json/"
        airflow.until("the cluster has a worker", lambda: _answer(url).get("aliveworkers") == 1, 60)
        yield url
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _answer(url: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = httpx.get(url, trust_env=False).json()
    except httpx.TransportError:
        return {}
    return answer


def test_a_pipeline_is_an_application_of_a_spark_cluster(airflow: LiveAirflow, spark_master: str) -> None:
    cluster = _answer(spark_master)["url"]
    host, _, port = cluster.rpartition(":")
    extra = {"home": airflow.environment["AIRFLOW_PIPELINES_HOME"], "deployer": "dedicated", "spark_conn_id": "spark_cluster"}
    for connection in (
        {"connection_id": "spark_cluster", "conn_type": "spark", "host": host, "port": int(port)},
        {"connection_id": "pipelines_on_cluster", "conn_type": "airflow_pipelines", "extra": json.dumps(extra)},
    ):
        airflow.send("POST", "/connections", connection)
    run = airflow.trigger("spark_cluster")
    applications: set[str] = set()

    def look() -> bool:
        applications.update(each["name"] for each in _answer(spark_master).get("activeapps", []))
        return bool(applications)

    airflow.until("the cluster runs an application", look, 240)
    run.wait_for_success(timeout_s=240)
    assert any("spark_cluster" in name for name in applications)
    assert run.xcom("ask")["rows"] == [{"sensor": 1, "celsius": "22.0"}, {"sensor": 2, "celsius": "18.0"}]
