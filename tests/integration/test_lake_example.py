"""The example DAG between Kafka and a Delta table, run twice by Airflow's own ``dag.test()`` while records come."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.fixtures.kafka import Kafka

pytestmark = pytest.mark.integration


@pytest.fixture
def environment(tmp_path: Path, kafka: Kafka, repository: Path) -> Iterator[dict[str, str]]:
    """Of an Airflow with a database of its own and the connections of the example."""
    host, _, port = kafka.address.rpartition(":")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTEST"))}
    made = clean | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        # One process runs everything here, so no worker can still be leaving a task when its trigger fires.
        "AIRFLOW__AIRFLOW_PIPELINES__DEFERRAL_FIRST_DELAY": "0",
        "AIRFLOW_PIPELINES_HOME": str(tmp_path / "pipelines"),
        "AIRFLOW_PIPELINES_DRIVER_MEMORY": "1g",
        "AIRFLOW_CONN_ORDERS_KAFKA": json.dumps({"conn_type": "kafka", "host": host, "port": int(port)}),
        "AIRFLOW_CONN_ORDERS_LAKE": json.dumps({"conn_type": "generic", "extra": {"folder": str(tmp_path / "lake")}}),
        "PYTHONPATH": str(repository),
    }
    (tmp_path / "dags").mkdir()
    shutil.copy(repository / "dags_examples" / "orders_to_lake.py", tmp_path / "dags")
    run(made, "-m", "airflow", "db", "migrate")
    yield made
    run(made, "-m", "airflow_pipelines.cli", "hosts", "stop", "--home", str(tmp_path / "pipelines"))


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout + done.stderr


def orders(*given: tuple[int, str, float]) -> list[str]:
    return [json.dumps({"id": number, "customer": customer, "amount": amount}) for number, customer, amount in given]


@pytest.mark.timeout(900)
def test_the_table_is_equal_to_the_view_after_each_run(environment: dict[str, str], kafka: Kafka, tmp_path: Path) -> None:
    kafka.create("orders", 2)
    kafka.send("orders", *orders((1, "anna", 10), (2, "bob", 5)))
    kafka.send("orders", *orders((3, "anna", 2.5)), partition=1)
    dag = str(tmp_path / "dags" / "orders_to_lake.py")
    run(environment, dag)

    def table() -> list[tuple[str, int, Decimal]]:
        rows = DeltaTable(str(tmp_path / "lake" / "totals")).to_pyarrow_table().to_pylist()
        return sorted((row["customer"], row["orders"], row["amount"]) for row in rows)

    assert table() == [("anna", 2, Decimal("12.50")), ("bob", 1, Decimal("5.00"))]
    # The pipeline has lived on, and the second run finds it.
    kafka.send("orders", *orders((4, "carl", 1), (5, "bob", 5)))
    output = run(environment, dag)
    assert "is as it should be" in output
    assert table() == [("anna", 2, Decimal("12.50")), ("bob", 2, Decimal("10.00")), ("carl", 1, Decimal("1.00"))]
    history = [entry["operation"] for entry in DeltaTable(str(tmp_path / "lake" / "totals")).history()]
    assert "MERGE" in history
