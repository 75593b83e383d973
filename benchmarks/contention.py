"""How long control, ingress and statistics take to answer while sixty heavy ad-hoc queries run, over REST."""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from benchmarks.measure import Measurement, timed
from benchmarks.options import Options
from tools.served import served, stop_hosts

TARGET_S = 0.1
PATIENCE_S = 300.0
QUERIES = 60
ROUNDS = 30
PROGRAM = """
create table t (id bigint not null primary key, v int) with ('materialized' = 'true');
create materialized view totals as select v % 10 as k, count(*) as n, sum(v) as total from t group by v % 10;
"""
HEAVY = "SELECT COUNT(*) FROM range(100000000000000) WHERE id % 7 = 3"


def measure(_options: Options) -> list[Measurement]:
    """Ask two pipelines, one of which is busy with queries, again and again."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
        home = Path(folder)
        try:
            with served(home, home / "serve.log") as service:
                return _measure(service.url)
        finally:
            stop_hosts(home)


def _measure(url: str) -> list[Measurement]:
    client = PipelineClient(url)
    for name in ("busy", "other"):
        PipelineBuilder(client, name, sql=PROGRAM).create_or_replace().start(timeout_s=PATIENCE_S)
    calm = _answer_times(url)
    with _heavy_queries(url):
        loaded = _answer_times(url)
    found = []
    for what, times in loaded.items():
        found += [
            Measurement(f"contention.{what}.calm_s_median", statistics.median(calm[what]), "s"),
            Measurement(f"contention.{what}.s_median", statistics.median(times), "s"),
            Measurement(f"contention.{what}.s_p95", sorted(times)[int(len(times) * 0.95)], "s"),
        ]
    answers = [statistics.median(times) for what, times in loaded.items() if what != "step"]
    return [Measurement("contention_answer_s_median", max(answers), "s", TARGET_S), *found]


def _answer_times(url: str) -> dict[str, list[float]]:
    """Seconds until an answer, by what was asked; ``step``: until rows that were pushed are in the views."""
    times: dict[str, list[float]] = {"stats": [], "list": [], "ingress": [], "pause": [], "resume": [], "step": []}
    with httpx.Client(base_url=f"{url}/v0/pipelines", timeout=PATIENCE_S, trust_env=False) as http:

        def ask(what: str, call: Callable[[], httpx.Response]) -> httpx.Response:
            with timed() as watch:
                answer = call()
            answer.raise_for_status()
            times[what].append(watch.seconds)
            return answer

        for number in range(ROUNDS):
            for name in ("busy", "other"):
                ask("stats", lambda name=name: http.get(f"/{name}/stats"))
                ask("list", lambda: http.get(f"{url}/v0/pipelines"))
                row = f'{{"insert": {{"id": {number}, "v": {number}}}}}'
                with timed() as watch:
                    pushed = ask("ingress", lambda name=name, row=row: http.post(f"/{name}/ingress/t?format=json", content=row))
                    _until_done(http, name, pushed.json()["token"])
                times["step"].append(watch.seconds)
                ask("pause", lambda name=name: http.post(f"/{name}/pause"))
                ask("resume", lambda name=name: http.post(f"/{name}/resume"))
    return times


def _until_done(http: httpx.Client, name: str, token: str) -> None:
    while http.get(f"/{name}/completion_status", params={"token": token}).json()["status"] != "complete":
        time.sleep(0.01)


@contextmanager
def _heavy_queries(url: str) -> Iterator[None]:
    """Sixty clients that ask one pipeline for something endless, and ask again when that is cancelled."""
    ended = threading.Event()

    def ask() -> None:
        dice = random.Random()
        with httpx.Client(trust_env=False) as http:
            while not ended.is_set():
                try:
                    patience = httpx.Timeout(30.0, read=dice.uniform(2.0, 10.0))
                    http.get(f"{url}/v0/pipelines/busy/query", params={"sql": HEAVY}, timeout=patience)
                except httpx.TimeoutException:
                    # So that clients leave and come all the time, too.
                    continue

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(QUERIES)]
    for thread in threads:
        thread.start()
    time.sleep(2.0)
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
