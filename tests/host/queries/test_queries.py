"""Ad-hoc requests that take too much, or that nobody waits for: each ends alone."""

from __future__ import annotations

import io
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.engine.spark.application import collect_garbage
from airflow_pipelines.host.queries import body_queue, queries
from airflow_pipelines.host.queries.queries import QueryLimits
from tests.fixtures.sdk import eventually
from tests.host.driver import Pipeline
from tests.inprocess_host import InProcessHost

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


def places(pipeline: Pipeline) -> int:
    """How many requests count towards the limit: one that was answered goes on to, until its thread has ended."""
    return len(pipeline.host.fleet.get(pipeline.deployment_id).queries._queries)  # type: ignore[arg-type]


def refusal(answer: httpx.Response) -> str:
    assert (answer.status_code, answer.json()["error_code"]) == (400, "AdHocQueryError")
    message: str = answer.json()["message"]
    return message


def failure(answer: httpx.Response) -> str:
    """What the last line of a text says that broke off."""
    assert answer.status_code == 200
    _, failed, message = f"\n{answer.text}".partition("\nERROR: ")
    assert failed
    return message


@pytest.mark.core
def test_a_request_whose_client_has_gone_is_cancelled(running: Pipeline) -> None:
    with pytest.raises(httpx.ReadTimeout):
        running.http.get(f"/deployments/{running.deployment_id}/query", params={"sql": ENDLESS}, timeout=2)
    eventually(lambda: not jobs(running.host))


@pytest.mark.core
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
        eventually(lambda: not places(pipeline))
        eventually(lambda: not jobs(warm_host))
        assert "more than 100000 bytes" in refusal(pipeline.get("query", sql="INSERT INTO t (id) SELECT id FROM range(50000)"))
        # What is only sent has no limit.
        assert "49999" in pipeline.get("query", sql="SELECT id FROM range(50000)").text
        assert len(pipeline.query("SELECT id FROM range(1000)")) == 1000


@pytest.mark.core
def test_results_of_any_size_stream(make: Make, warm_host: InProcessHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_queue, "QUEUED_BYTES", 20_000)
    monkeypatch.setattr(queries, "HELD_BYTES", 10_000)
    with limited(warm_host, result_bytes=100_000):
        pipeline = make()
        pipeline.start()
    rows = pipeline.query("SELECT id FROM range(0, 50000, 1, 8)")
    assert [row["id"] for row in rows] == list(range(50000))
    answer = pipeline.get("query", sql="SELECT id FROM range(0, 50000, 1, 8)", format="parquet")
    assert pq.read_table(io.BytesIO(answer.content))["id"].to_pylist() == list(range(50000))
    # What fails after the first byte ends JSON with a line that says so, and breaks anything else off.
    fails = "SELECT id, 1 / (id - 49999) AS x FROM range(0, 50000, 1, 50)"
    last = pipeline.query(fails)[-1]
    assert "Division by zero" in last["error"]
    with pytest.raises(httpx.RemoteProtocolError):
        pipeline.get("query", sql=fails, format="arrow_ipc")
    text = pipeline.get("query", sql=fails)
    assert text.text.startswith("+-")
    assert "Division by zero" in failure(text)
    # So does what fails before it; with the header nobody takes that line for a row.
    at_once = "SELECT 1 / id AS error FROM range(5)"
    answer = pipeline.get("query", sql=at_once, format="json")
    assert (answer.status_code, answer.headers["airflow-pipelines-query-failed"]) == (200, "AdHocQueryError")
    assert "Division by zero" in answer.json()["error"]
    assert "Division by zero" in failure(pipeline.get("query", sql=at_once))
    for other in ("parquet", "arrow_ipc", "hash"):
        assert "Division by zero" in refusal(pipeline.get("query", sql=at_once, format=other))
    assert "keys" in pipeline.get("query", sql="SELECT map(1, 2) AS m", format="json").json()["error"]
    assert "nowhere" in refusal(pipeline.get("query", sql="SELECT * FROM nowhere", format="json"))


@pytest.mark.core
def test_results_have_types_that_their_readers_know(running: Pipeline) -> None:
    sql = """SELECT v, [v] AS l, CAST(NULL AS VARIANT) AS n, TIMESTAMP '2026-01-02 03:04:05.5' AS t, TIME '01:02:03.250' AS c
             FROM (SELECT PARSE_JSON(j) AS v FROM VALUES ('{"a": [1]}'), ('null') AS x(j)) ORDER BY TO_JSON(v)""".replace(
        "[v]", "ARRAY(v)"
    )
    moment, time_of_day = "2026-01-02T03:04:05.500", "01:02:03.25"
    whole, null = '{"a":[1]}', "null"
    assert running.query(sql) == [{"v": text, "l": [text], "n": None, "t": moment, "c": time_of_day} for text in (null, whole)]
    parquet = pq.read_table(io.BytesIO(running.get("query", sql=sql, format="parquet").content))
    arrow = pa.ipc.open_stream(running.get("query", sql=sql, format="arrow_ipc").content).read_all()
    for table in (parquet, arrow):
        assert table.select(["v", "l", "n"]).to_pylist() == [{"v": text, "l": [text], "n": None} for text in (null, whole)]
        assert table["t"][0].as_py().isoformat() == "2026-01-02T03:04:05.500000"
    assert f"| {whole} " in running.get("query", sql=sql).text


@pytest.mark.core
def test_unsigned_integers_and_names_that_repeat_reach_arrow(make: Make) -> None:
    pipeline = make("CREATE TABLE t (a TINYINT UNSIGNED, b BIGINT UNSIGNED, c INT) WITH ('materialized' = 'true');")
    pipeline.start()
    pipeline.insert("t", {"a": 255, "b": 2**64 - 1, "c": 1})
    sql = "PREPARE p(INT) AS SELECT a, b, a, a + 1 AS d, TIME '01:02:03' AS m FROM t WHERE c = $1; EXECUTE p(1)"
    table = pa.ipc.open_stream(pipeline.get("query", sql=sql, format="arrow_ipc").content).read_all()
    assert table.column_names == ["a", "b", "a", "d", "m"]
    assert [str(kind) for kind in table.schema.types] == ["uint8", "uint64", "uint8", "int32", "time64[ns]"]
    assert table.column(1).to_pylist() == [2**64 - 1]


@pytest.mark.core
def test_a_result_that_nobody_reads_to_its_end_is_cancelled(running: Pipeline) -> None:
    url = f"/deployments/{running.deployment_id}/query"
    params = {"sql": "SELECT id, repeat('a', 100) AS x FROM range(0, 1000000, 1, 20)", "format": "json"}
    with running.http.stream("GET", url, params=params) as answer:
        assert next(answer.iter_lines())
    eventually(lambda: not places(running))
    eventually(lambda: not jobs(running.host))


@pytest.mark.core
def test_a_request_ends_with_its_pipeline(running: Pipeline) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(running.get, "query", sql=ENDLESS)
        eventually(lambda: bool(jobs(running.host)))
        running.kill()
        assert (asked.result().status_code, asked.result().json()["error_code"]) == (410, "Terminating")
    eventually(lambda: not jobs(running.host))


@pytest.mark.core("SELECT sequence(1, 400000000) AS x")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('a', 1500000000) AS x",
        "SELECT sequence(1, 400000000) AS x",
        "SELECT length(x) FROM (VALUES (repeat('a', 1500000000))) t(x)",
        "SELECT repeat('a', CAST(id AS INT) + 1500000000) AS x FROM range(2)",
        "INSERT INTO t VALUES (1, 1, repeat('a', 1500000000))",
        "SELECT lpad('a', 2000000000, 'b') AS x",
        "SELECT space(2000000000) AS x",
        "SELECT array_repeat('a', 2000000000) AS x",
        "SELECT sequence(1, 4000000000) AS x",
        "SELECT collect_list(repeat('a', 100000000)) AS x FROM range(100)",
        "SELECT concat_ws(',', collect_list(repeat('a', 1000000))) AS x FROM range(3000)",
    ],
)
def test_a_request_over_the_memory_fails_alone(running: Pipeline, sql: str) -> None:
    answer = running.get("query", sql=sql)
    # The watch over the memory may be quicker than Java.
    assert re.search("for which the host has no memory|memory is used up", refusal(answer))
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


@pytest.mark.core("steps in the driver")
@pytest.mark.parametrize("in_driver", [True, False], ids=["steps in the driver", "steps that are jobs"])
def test_steps_and_statistics_go_before_heavy_requests(make: Make, caplog: pytest.LogCaptureFixture, in_driver: bool) -> None:
    caplog.set_level(logging.INFO, "airflow_pipelines.host.queries.query_watch")
    running = make(
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT, name VARCHAR);"
        "CREATE MATERIALIZED VIEW v AS SELECT id, ROW_NUMBER() OVER (PARTITION BY v ORDER BY name) AS place FROM t;",
        dev_tweaks={"prepared_queries": in_driver},
    )
    running.start()
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
    # Spark itself would have let these steps wait for a core until the end of the queries' time.
    assert in_driver or "makes way for a step" in caplog.text
