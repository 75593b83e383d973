"""A store behind a network that is slow, silent or gone for a while: pipelines go on, and nobody waits without end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from airflow_pipelines.common import postgresql
from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostState
from tests.fixtures.serving import serving
from tests.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration
GONE_S = 2.0


@dataclass
class System:
    """A service and a host whose store is behind a proxy."""

    network: TcpProxy
    control_plane: ControlPlane
    rest: httpx.Client
    host: httpx.Client
    """The host itself, which does not need the store to answer."""

    def wait(self, condition: Callable[[], Any], limit_s: float = 60.0) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"it did not come to pass within {limit_s} s"
            time.sleep(0.05)

    def answer(self, limit_s: float) -> dict[str, Any]:
        """What the service says about the pipeline, or what keeps it from that, within a limit."""
        began = time.monotonic()
        answer = self.rest.get("/v0/pipelines/p?selector=status", timeout=limit_s + 30)
        assert time.monotonic() - began < limit_s
        return {"http": answer.status_code, **answer.json()}


@pytest.fixture
def system(spark: SparkSession, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    from tests.inprocess_host import InProcessHost

    url = make_url(database_url)
    with TcpProxy("127.0.0.1", url.port or 5432) as network:
        behind = url.set(port=network.port).render_as_string(hide_password=False)
        settings = Settings(home=tmp_path, database_url=behind, storage=tmp_path / "storage", api_keys=("key",))
        with InProcessHost(spark, open_database(behind)) as host:
            app = create_app(settings)
            control_plane: ControlPlane = app.state.control_plane
            control_plane.background.sweep_forever()
            with (
                serving(app) as address,
                httpx.Client(base_url=address, headers={"Authorization": "Bearer key"}, timeout=60) as rest,
                httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {host.token}"}, timeout=60) as there,
            ):
                yield System(network, control_plane, rest, there)
            network.restore()
            control_plane.close()


@pytest.mark.timeout(300)
def test_a_store_that_is_slow_or_gone_costs_neither_rows_nor_hosts(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    network, rest = system.network, system.rest
    program = "create table t (id bigint not null primary key) with ('materialized' = 'true');"
    config = {"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": None}}
    assert rest.post("/v0/pipelines", json={"name": "p", "program_code": program, "runtime_config": config}).status_code == 201
    assert rest.post("/v0/pipelines/p/start").status_code == 202
    system.wait(lambda: system.answer(30)["deployment_status"] == "Running")
    [host] = system.control_plane.registry.live_hosts()
    path = f"/deployments/{rest.get('/v0/pipelines/p').json()['deployment_id']}"
    inserted = 0

    def insert() -> float:
        nonlocal inserted
        began = time.monotonic()
        answer = system.host.get(f"{path}/query", params={"sql": f"insert into t values ({inserted})"})
        assert answer.status_code == 200, answer.text
        inserted += 1
        return time.monotonic() - began

    insert()
    network.delay_s = 0.2
    assert system.answer(30)["deployment_status"] == "Running"
    insert()
    network.delay_s = 0.0

    network.cut()
    gone = time.monotonic()
    answer = system.answer(10)
    assert (answer["http"], answer["error_code"]) == (503, "StoreUnavailable")
    assert "check that the database runs" in answer["message"]
    unknown = rest.get("/v0/pipelines", headers={"Authorization": "Bearer whose key is this"})
    assert (unknown.status_code, unknown.json()["error_code"]) == (503, "StoreUnavailable")
    # What the store has to be told waits; the pipeline does not, for longer than one attempt to tell takes.
    assert system.host.post(f"{path}/checkpoint").status_code in {200, 202}
    while time.monotonic() - gone < GONE_S:
        assert insert() < 5
        time.sleep(0.2)
    status = system.host.get(f"{path}/checkpoint_status").json()
    assert (status["success"], status["failure"]) == (0, None)

    network.restore()
    system.wait(lambda: system.answer(60)["http"] == 200)
    system.wait(lambda: len((system.answer(30)["storage_status_details"] or {}).get("checkpoints", [])) == 1)
    insert()
    assert system.answer(30)["deployment_status"] == "Running"
    assert rest.get("/v0/pipelines/p/query", params={"sql": "select count(*) as n from t", "format": "json"}).json() == {
        "n": inserted
    }
    assert [each.host_id for each in system.control_plane.registry.live_hosts()] == [host.host_id]
    [now] = system.control_plane.registry.live_hosts()
    system.wait(lambda: system.control_plane.hosts.health(system.control_plane.registry.live_hosts()[0]).reason == "", 20)
    assert system.control_plane.hosts.health(now).state is HostState.UP

    # Told while the store is gone, the end of the pipeline is known when it is back.
    answered, gone_again = threading.Event(), threading.Event()
    call = system.control_plane.hosts.call

    def without_store(host: HostRecord, method: str, path: str, **options: Any) -> httpx.Response:
        if path.endswith("/suspend") and not gone_again.is_set():
            assert answered.wait(30)
            network.cut()
            gone_again.set()
        return call(host, method, path, **options)

    monkeypatch.setattr(system.control_plane.hosts, "call", without_store)
    assert rest.post("/v0/pipelines/p/stop?force=false").status_code == 202
    answered.set()
    assert gone_again.wait(30)
    # The store is told of the end before the pipeline stops to answer.
    system.wait(lambda: system.host.get(f"{path}/query", params={"sql": "select 1"}).status_code != 200)
    network.restore()
    system.wait(lambda: system.answer(60).get("deployment_status") == "Stopped")
    assert system.answer(30)["deployment_error"] is None


def test_a_store_that_holds_its_connections_and_says_nothing_is_not_waited_for_without_end(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "ANSWER_S", 0.5)
    url = make_url(database_url)
    with TcpProxy("127.0.0.1", url.port or 5432) as network:
        engine = open_database(url.set(port=network.port).render_as_string(hide_password=False))
        with engine.connect() as connection:
            assert connection.scalar(text("select 1")) == 1
            network.hold()
            with pytest.raises(OperationalError, match=r"the server has not answered for 0\.5 s"):
                connection.scalar(text("select 2"))
        network.restore()
        with engine.connect() as connection:
            assert connection.scalar(text("select 3")) == 3
        engine.dispose()
