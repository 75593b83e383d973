"""When a host ends because nobody uses it, or its store is gone. What it takes to know that is no Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import httpx
import pytest

from airflow_pipelines.common.database import DatabaseFile, open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Base, HostRecord, Registry
from airflow_pipelines.host import main
from airflow_pipelines.host.api.app import create_app
from airflow_pipelines.host.process.server import DataPlane
from airflow_pipelines.host.runs import fleet as fleet_module
from airflow_pipelines.host.runs.fleet import Fleet
from airflow_pipelines.host.runs.spark_health import SparkHealth
from airflow_pipelines.program.sources import ProgramSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    engine = open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")
    Base.metadata.create_all(engine)
    return Registry(engine)


@pytest.fixture
def host(registry: Registry) -> HostRecord:
    """The row of a host that is up."""
    record = HostRecord(
        host_id=uuid4(), kind="shared", deployment_id=None, deployment=None, url="http://127.0.0.1:9", token="t", pid=None,
        machine=None, log_path="host.log", submitted_at=datetime.now(UTC), heartbeat=time.time(), ended_at=None,
    )  # fmt: skip
    registry.submit(record)
    return record


def test_a_host_that_nobody_uses_takes_nothing_more_and_ends(
    registry: Registry, host: HostRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = None
    compiling, compiled = threading.Event(), threading.Event()

    class SlowFrontEnd:
        def compile(self, *_: object) -> None:
            compiling.set()
            assert compiled.wait(10)

    monkeypatch.setattr(fleet_module, "front_end_for", lambda *_: SlowFrontEnd())
    monkeypatch.setattr(fleet_module.SparkSessions, "of", lambda _: None)
    monkeypatch.setattr(main, "HEARTBEAT_S", 0.02)
    fleet = Fleet(spark, registry)
    work = threading.Thread(target=fleet.compile, args=(ProgramSource("create table t (x int);"),))
    work.start()
    assert compiling.wait(10)
    looks = threading.Semaphore(0)
    retire = fleet.retire

    def look(idle_s: float) -> bool:
        retired = retire(idle_s)
        looks.release()
        return retired

    monkeypatch.setattr(fleet, "retire", look)
    # So short that each look would find the host idle for long enough.
    one = main.Host(host, registry, Settings.load(tmp_path, host_idle_s=1e-6), DatabaseFile(registry._engine))
    watch = threading.Thread(target=one._watch, args=(False, fleet, SparkHealth(spark)))
    watch.start()
    for _ in range(3):
        assert looks.acquire(timeout=10), "it ended while it compiled"
    compiled.set()
    work.join(10)
    watch.join(10)
    assert one._ended.is_set()
    for call in (lambda: fleet.compile(ProgramSource("")), lambda: fleet.deploy(_deployment(tmp_path))):
        with pytest.raises(Problem) as refused:
            call()
        assert (http_status(refused.value.code), refused.value.code) == (410, "Terminating")


def test_nobody_waits_for_the_import_of_another_programs_module(registry: Registry, spark: SparkSession, tmp_path: Path) -> None:
    begun, end = tmp_path / "begun", tmp_path / "end"
    module = f"""
import pathlib, time
pathlib.Path({str(begun)!r}).touch()
while not pathlib.Path({str(end)!r}).exists():
    time.sleep(0.05)
def f(x): return x
"""
    program = "create function f(x int) returns int; create table t (x int); create view v as select f(x) as y from t;"
    fleet, found = Fleet(spark, registry), []
    slow = threading.Thread(target=lambda: found.append(fleet.compile(ProgramSource(program, module))))
    slow.start()
    try:
        assert eventually(begun.exists)
        other = ProgramSource("create table t (x int); create view v as select x + 1 as y from t;")
        assert fleet.compile(other).plans["v"].full
        assert not found
    finally:
        end.touch()
        slow.join(60)
    assert found[0].plans["v"]


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 30
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


@pytest.mark.rest("False")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_host_whose_store_is_deleted_ends(
    registry: Registry, host: HostRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    """The file stays readable and writable for who has it open, so that heartbeats say nothing about it."""
    spark: Any = None
    monkeypatch.setattr(main, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(main, "STORE_GRACE_S", 3600.0)
    monkeypatch.setattr(main, "LAST_RESORT_S", 3600.0)
    one = main.Host(host, registry, Settings.load(tmp_path), DatabaseFile(registry._engine))
    one._heartbeat.start(lambda: True)
    watch = threading.Thread(target=one._watch, args=(False, Fleet(spark, registry), SparkHealth(spark)))
    watch.start()
    beats: set[float | None] = set()
    while len(beats) < 25:
        found = registry.get(host.host_id)
        assert found is not None
        beats.add(found.heartbeat)
    assert watch.is_alive(), "it ended although its store is there"
    store = tmp_path / "store.sqlite"
    store.unlink()
    if replaced:
        store.write_bytes(b"another one")
    assert not one._ended.wait(0.2), "a moment without it is no reason"
    one._heartbeat._grace_s = 0.1
    watch.join(30)
    assert one._ended.is_set()
    one._heartbeat.stop()
    assert registry.get(host.host_id) is not None, "it is still readable"


def _deployment(folder: Path) -> Deployment:
    return Deployment(
        deployment_id=UUID(int=1), pipeline_id=UUID(int=2), pipeline_name="p", source=ProgramSource(""), runtime_config={},
        storage=str(folder / "storage"), log_path=str(folder / "p.log"),
    )  # fmt: skip


@pytest.mark.processes
def test_slow_requests_take_no_thread_from_quick_ones(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request to compile waits for the others; more of them than a server has threads must not hold up statistics."""
    spark: Any = None
    done = threading.Event()
    compiling = threading.Semaphore(0)
    fleet = Fleet(spark, registry)

    def compile_slowly(*_: object) -> None:
        compiling.release()
        assert done.wait(30)
        raise Problem(ErrorCode.COMPILER_FAILED, "It took long.")

    monkeypatch.setattr(fleet, "compile", compile_slowly)
    plane = DataPlane(create_app(fleet, "t", lambda: None, lambda: True))
    plane.start()
    with (
        httpx.Client(base_url=plane.url, headers={"Authorization": "Bearer t"}, timeout=30, trust_env=False) as http,
        ThreadPoolExecutor(60) as pool,
    ):
        asked = [pool.submit(http.post, "/compile", json={"program_code": ""}) for _ in range(60)]
        for _ in asked:
            assert compiling.acquire(timeout=30)
        assert http.get("/health").status_code == 200
        done.set()
        assert {one.result().status_code for one in asked} == {422}
    plane.stop()
