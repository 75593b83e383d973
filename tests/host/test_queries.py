"""Ad-hoc requests that take too much, or that nobody waits for: each ends alone."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from airflow_pipelines.engine.spark.application import collect_garbage
from airflow_pipelines.host.inprocess import InProcessHost
from airflow_pipelines.host.queries import QueryLimits
from tests.fixtures.sdk import eventually
from tests.host.driver import Pipeline

Make = Callable[..., Pipeline]
ENDLESS = "SELECT COUNT(*) AS n FROM range(100000000000000) WHERE id % 7 = 3"


@contextmanager
def limited(host: InProcessHost, **limits: Any) -> Iterator[None]:
    """Other limits for the pipelines that are started within the block."""
    before = host.fleet._limits
    host.fleet._limits = replace(before, **limits)
    try:
        yield
    finally:
        host.fleet._limits = before


def jobs(host: InProcessHost) -> list[int]:
    return list(host.fleet._spark.sparkContext.statusTracker().getActiveJobsIds())


def refusal(answer: httpx.Response) -> str:
    assert (answer.status_code, answer.json()["error_code"]) == (400, "AdHocQueryError")
    message: str = answer.json()["message"]
    return message


def test_a_request_whose_client_has_gone_is_cancelled(running: Pipeline) -> None:
    with pytest.raises(httpx.ReadTimeout):
        running.http.get(f"/deployments/{running.deployment_id}/query", params={"sql": ENDLESS}, timeout=2)
    eventually(lambda: not jobs(running.host))


def test_limits_of_time_and_size(make: Make, warm_host: InProcessHost) -> None:
    with limited(warm_host, time_s=1.0, result_bytes=100_000, at_once=1, waiting=1):
        pipeline = make()
        pipeline.start()
        began = time.monotonic()
        with ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(pipeline.get, "query", sql=ENDLESS) for _ in range(3)]
            answers = [answer.result() for answer in asked]
        assert sorted(answer.status_code for answer in answers) == [400, 400, 429]
        assert any("not done within 1 s" in answer.text for answer in answers)
        assert time.monotonic() - began < 20
        eventually(lambda: not jobs(warm_host))
        assert "more than 100000 bytes" in refusal(pipeline.get("query", sql="SELECT id FROM range(50000)"))
        assert len(pipeline.query("SELECT id FROM range(1000)")) == 1000


def test_a_request_ends_with_its_pipeline(running: Pipeline) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(running.get, "query", sql=ENDLESS)
        eventually(lambda: bool(jobs(running.host)))
        running.kill()
        assert (asked.result().status_code, asked.result().json()["error_code"]) == (410, "Terminating")
    eventually(lambda: not jobs(running.host))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('a', 1500000000) AS x",
        "SELECT sequence(1, 400000000) AS x",
        "SELECT length(x) FROM (VALUES (repeat('a', 1500000000))) t(x)",
        "SELECT repeat('a', CAST(id AS INT) + 1500000000) AS x FROM range(2)",
        "INSERT INTO t VALUES (1, 1, repeat('a', 1500000000))",
    ],
)
def test_a_request_over_the_memory_fails_alone(running: Pipeline, sql: str) -> None:
    assert "memory" in refusal(running.get("query", sql=sql)).lower()
    assert running.query("SELECT length(repeat('ab', 3)) AS n") == [{"n": 6}]


def test_requests_go_before_the_memory_does(running: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = running.host.fleet
    assert fleet._watch is not None
    collect_garbage(fleet._spark.sparkContext)
    monkeypatch.setattr(fleet._watch, "_heap_share", 0.000001)
    assert "memory is used up" in refusal(running.get("query", sql=ENDLESS))
    eventually(lambda: not jobs(running.host))


def test_a_step_over_the_memory_fails_its_pipeline_alone(make: Make, running: Pipeline) -> None:
    greedy = make("CREATE TABLE t (n INT); CREATE MATERIALIZED VIEW v AS SELECT length(repeat('a', n)) AS l FROM t;")
    greedy.start()
    greedy.post("ingress/t", '{"insert": {"n": 1500000000}}', format="json")
    failed = greedy.wait_for("Stopped")
    assert "memory" in (failed.error or {})["message"].lower()
    running.insert("t", {"id": 1, "v": 11, "name": "a"})
    assert running.query("SELECT id FROM t") == [{"id": 1}]


def test_steps_and_statistics_go_before_heavy_requests(running: Pipeline, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "airflow_pipelines.host.query_watch")
    host = running.host
    stop = threading.Event()
    with httpx.Client(base_url=host.url, headers=running.http.headers, timeout=120, trust_env=False) as clients:

        def ask() -> None:
            while not stop.is_set():
                clients.get(f"/deployments/{running.deployment_id}/query", params={"sql": ENDLESS})

        with ThreadPoolExecutor(60) as pool:
            asked: list[Future[None]] = [pool.submit(ask) for _ in range(60)]
            # All cores are taken.
            eventually(lambda: len(jobs(host)) == QueryLimits().at_once)
            for number in range(3):
                running.insert("t", {"id": number, "v": number, "name": "a"})
            assert running.stats()["global_metrics"]["total_completed_records"] == 3
            stop.set()
            running.kill()
        assert all(one.exception() is None for one in asked)
    # Spark itself would have let the steps wait for a core until the end of the queries' time.
    assert "makes way for a step" in caplog.text
