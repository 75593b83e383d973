"""How soon the service answers about fifty pipelines of one host: their status in one call, the plan of a change of a busy one."""

from __future__ import annotations

import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from benchmarks.many import PATIENCE_S, PROGRAM, bring_up
from benchmarks.measure import Measurement, percentile, timed
from benchmarks.options import Options
from tools.served import served, stop_hosts

CALLS = 100
PLANS = 10
STATE_ROWS = 100_000
ADDED = "create materialized view large as select client, count(*) as n from t where v > 100 group by client;\n"


def measure(options: Options) -> list[Measurement]:
    """Bring the pipelines up in one host with the default settings, and ask about them."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
        home = Path(folder)
        try:
            with served(home, home / "serve.log") as service:
                client = PipelineClient(service.url, timeout_s=PATIENCE_S)
                names = bring_up(client, options.pipelines)
                return [*_statuses(client), *_overviews(client), *_plans(client, Pipeline.get(names[0], client), options.inserts)]
        finally:
            stop_hosts(home)


def _statuses(client: PipelineClient) -> list[Measurement]:
    """All pipelines in one call, as a list of them in a user interface asks for it."""
    times = []
    for _ in range(CALLS):
        with timed() as watch:
            client.get("/v0/pipelines", params={"selector": "status"})
        times.append(watch.seconds)
    return [
        Measurement("status_of_all_pipelines_s_median", statistics.median(times), "s", 0.1),
        Measurement("control.status_of_all_pipelines.s_p95", percentile(times, 0.95), "s"),
    ]


def _overviews(client: PipelineClient) -> list[Measurement]:
    """All pipelines with their figures in one call, as a page that shows them asks every few seconds."""
    times = []
    for _ in range(CALLS):
        with timed() as watch:
            client.get("/v0/overview")
        times.append(watch.seconds)
    return [
        Measurement("overview_of_all_pipelines_s_median", statistics.median(times), "s", 0.1),
        Measurement("control.overview_of_all_pipelines.s_p95", percentile(times, 0.95), "s"),
    ]


def _plans(client: PipelineClient, pipeline: Pipeline, inserts: int) -> list[Measurement]:
    """Plans of a new view, asked for while rows come in, and what they cost the steps of these rows."""
    pipeline.execute(f"insert into t select id, id % 50, id % 1000 from range(1000, {1000 + STATE_ROWS})")
    alone = _steps(pipeline, range(inserts))
    times: list[float] = []
    with _planning(client, pipeline.name, times):
        beside = _steps(pipeline, range(inserts, 2 * inserts))
    return [
        Measurement("plan_of_a_running_pipeline_s_median", statistics.median(times), "s", 1.0),
        Measurement("control.plan.s_max", max(times), "s"),
        Measurement("control.plan.calls", len(times), "calls"),
        Measurement("control.step_alone.s_median", statistics.median(alone), "s"),
        Measurement("control.step_beside_plans.s_median", statistics.median(beside), "s"),
        Measurement("control.step_beside_plans.s_p95", percentile(beside, 0.95), "s"),
    ]


def _steps(pipeline: Pipeline, numbers: range) -> list[float]:
    """How long each of some rows takes to be processed by all views, as steps say it themselves."""
    times = []
    for number in numbers:
        pipeline.input_json("t", {"id": number, "client": 1, "v": number})
        times.append((pipeline.steps()[-1].duration_ms or 0.0) / 1000)
    return times


@contextmanager
def _planning(client: PipelineClient, name: str, times: list[float]) -> Iterator[None]:
    """Ask for plans one after the other during the block; their seconds go to ``times``."""
    over = threading.Event()

    def ask() -> None:
        planner, number = Pipeline.get(name, client), 0
        while not over.is_set() or number < PLANS:
            # Another text each time: a host remembers what it has compiled.
            with timed() as watch:
                planner.plan(f"{PROGRAM}{ADDED}-- {number}\n")
            times.append(watch.seconds)
            number += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
