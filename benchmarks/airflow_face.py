"""What the package costs Airflow: the import of its operators and sensors, and deferred waits on one event loop, as in a triggerer.

Each wait is a real trigger that asks a real service over HTTP, about a pipeline of its own that somebody is to start. What there is
around triggers in Airflow (its logs, its database) is not here: only what this package adds. Beside the waits, as many tasks ask
for the same with nothing but the HTTP library, so that the ratio says what a look costs more than its request.

Imports are timed without Python's garbage collector. With it, one full collection of what Airflow itself has loaded may fall into
them, which takes longer than they do.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service.edits import new_record, parse_full
from airflow_pipelines.service.store import Store
from airflow_pipelines.service.version import platform_version
from benchmarks.measure import Measurement, percentile
from benchmarks.options import Options
from tools.served import served

WAITS = 200
INTERVAL_S = 5.0
SECONDS = 15.0
RUNS = 3
PROBE_S = 0.02
CONN_ID = "waits_benchmark"


@dataclass
class Run:
    """What one run of many waits cost. ``lags``: how much later than asked for the loop went on, in seconds."""

    looks: int = 0
    cpu_s: float = 0.0
    lags: list[float] = field(default_factory=list)

    @property
    def cpu_ms_per_look(self) -> float:
        """Milliseconds of processor time for each look, those of the probe included."""
        return 1000 * self.cpu_s / self.looks


def measure(options: Options) -> list[Measurement]:
    """Import everything; then wait for the start of pipelines that nobody starts."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
        home = Path(folder)
        os.environ["AIRFLOW_HOME"] = str(home / "airflow")
        names = _stopped_pipelines(home, WAITS)
        with served(home, home / "serve.log") as service:
            plain, waits = _middle_runs(service.url, names)
    return [
        Measurement("import_operators_and_sensors_cpu_ms_median", _import_ms(options.repeats), "ms", 100.0),
        Measurement("waits_200_loop_lag_ms_max", 1000 * max(waits.lags), "ms", 200.0),
        Measurement("waits_200_cpu_ms_per_look", waits.cpu_ms_per_look, "ms", 2.0),
        Measurement("waits_200_cpu_vs_plain_requests", waits.cpu_ms_per_look / plain.cpu_ms_per_look, "x"),
        Measurement("waits.loop_lag_ms_p99", 1000 * percentile(waits.lags, 0.99), "ms"),
        Measurement("waits.loop_lag_ms_median", 1000 * statistics.median(waits.lags), "ms"),
        Measurement("waits.looks", waits.looks, "looks"),
        Measurement("waits.plain_requests_loop_lag_ms_max", 1000 * max(plain.lags), "ms"),
        Measurement("waits.plain_requests_cpu_ms_per_look", plain.cpu_ms_per_look, "ms"),
    ]


_IMPORTS = """
import gc, time
import httpx, airflow.sdk, airflow.dag_processing.dagbag, airflow.triggers.base, airflow.providers.standard.operators.hitl
from airflow.sdk import DAG, Asset, BaseOperator, BaseSensorOperator
gc.disable()
begun = time.process_time()
import airflow_pipelines.operators, airflow_pipelines.sensors
for room in (airflow_pipelines.operators, airflow_pipelines.sensors):
    for name in room.__all__:
        getattr(room, name)
print(1000 * (time.process_time() - begun))
"""


def _import_ms(repeats: int) -> float:
    """Milliseconds of processor time that all operators and sensors add to a process that has imported what DAGs need."""
    times = []
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as compiled:
        # Installed packages are compiled already, whatever the environment says of this one.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(repeats + 1):
            done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True, env=environment)
            times.append(float(done.stdout.splitlines()[-1]))
    return statistics.median(times[1:])


def _middle_runs(url: str, names: list[str]) -> tuple[Run, Run]:
    """Plain requests and waits, each the run with the middle one of three greatest lags: the machine may do other things meanwhile.

    The process has waited before, as a triggerer has.
    """
    importlib.import_module("airflow.jobs.triggerer_job_runner")
    asyncio.run(_run(lambda run: _waits(run, url, names, 1), seconds=3.0))
    plain, waits = [], []
    for _ in range(RUNS):
        plain.append(asyncio.run(_run(lambda run: _plain_looks(run, url, names))))
        waits.append(asyncio.run(_run(lambda run: _waits(run, url, names, WAITS))))
    return _middle(plain), _middle(waits)


def _middle(runs: list[Run]) -> Run:
    return sorted(runs, key=lambda run: max(run.lags))[len(runs) // 2]


def _stopped_pipelines(home: Path, number: int) -> list[str]:
    """Pipelines whose programs are compiled, written into the store: compiling them would start a host."""
    settings = Settings.load(home)
    store = Store(open_database(settings.database_url))
    store.create_tables()
    edit = parse_full({"name": "p", "program_code": "create table t (a int);"}, platform_version())
    names = [f"pipeline-{at}" for at in range(number)]
    for name in names:
        record = new_record(replace(edit, name=name), uuid4(), platform_version(), datetime.now(UTC))
        store.create(replace(record, program_status=CompilationStatus.SUCCESS, program_info={}))
    store.engine.dispose()
    return names


async def _run(begin: Callable[[Run], list[Awaitable[Any]]], seconds: float | None = None) -> Run:
    run = Run()
    probe = asyncio.ensure_future(_probe(run))
    begun = time.process_time()
    tasks = [asyncio.ensure_future(each) for each in begin(run)]
    await asyncio.sleep(SECONDS if seconds is None else seconds)
    run.cpu_s = time.process_time() - begun
    for task in (*tasks, probe):
        task.cancel()
    for ended in await asyncio.gather(*tasks, probe, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
    return run


async def _probe(run: Run) -> None:
    """How late the loop is: what another trigger would notice."""
    while True:
        asked = time.perf_counter()
        await asyncio.sleep(PROBE_S)
        run.lags.append(time.perf_counter() - asked - PROBE_S)


def _waits(run: Run, url: str, names: list[str], waits: int) -> list[Awaitable[Any]]:
    """Triggers, as Airflow makes them of what the tasks have deferred with."""
    from airflow_pipelines.hooks import observing
    from airflow_pipelines.hooks.conditions import StatusCondition
    from airflow_pipelines.triggers import pipeline as triggers

    os.environ[f"AIRFLOW_CONN_{CONN_ID.upper()}"] = json.dumps({"conn_type": "airflow_pipelines", "host": url})
    look = observing.observe_async

    async def counted(*arguments: Any) -> Any:
        run.looks += 1
        return await look(*arguments)

    triggers.observe_async = counted  # type: ignore[assignment]

    async def ended(trigger: triggers.PipelineTrigger) -> None:
        async for event in trigger.run():
            raise RuntimeError(f"a wait that should go on has ended: {event.payload}")

    return [
        ended(
            triggers.PipelineTrigger(
                pipeline_name=names[at % len(names)],
                condition=StatusCondition(("RUNNING",)).to_wire(),
                pipeline_conn_id=CONN_ID,
                poll_interval_s=INTERVAL_S,
                first_delay_s=1.0,
                deadline=time.time() + 3600,
                outage_budget_s=10.0,
            )
        )
        for at in range(waits)
    ]


def _plain_looks(run: Run, url: str, names: list[str]) -> list[Awaitable[Any]]:
    """Return coroutines that make the same requests at the same times, with one client of the HTTP library."""
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=8, keepalive_expiry=30.0)
    client = httpx.AsyncClient(base_url=url, verify=False, limits=limits)

    async def look(at: int, name: str) -> None:
        await asyncio.sleep(1.0 + INTERVAL_S * at / WAITS)
        while True:
            run.looks += 1
            (await client.get(f"/v0/pipelines/{name}", params={"selector": "status"})).json()
            await asyncio.sleep(1.1 * INTERVAL_S)

    async def close() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await client.aclose()

    return [*(look(at, names[at % len(names)]) for at in range(WAITS)), close()]
