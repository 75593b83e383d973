"""Many pipelines in one shared host, many clients: how long their calls take, over REST."""

from __future__ import annotations

import math
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelinesError
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from benchmarks.measure import Measurement, percentile, timed
from benchmarks.options import Options
from tools.model import LostError, require
from tools.served import served, stop_hosts

PATIENCE_S = 600.0
STARTERS = 4
ROWS = 10
PROGRAM = """
create table t (id bigint not null primary key, client bigint, v bigint) with ('materialized' = 'true');
create materialized view totals as select client, count(*) as n, sum(v) as total from t group by client;
create materialized view greatest as
  select client, id, v from (select *, row_number() over (partition by client order by v desc, id) as place from t)
  where place <= 3;
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """How calls of one kind went: how many were answered, how many were not, and the seconds of those that were."""

    kind: str
    calls: int
    errors: int
    median_s: float
    p99_s: float

    @classmethod
    def of(cls, kind: str, seconds: list[float], errors: int) -> Figures:
        """Return the figures of calls with these durations."""
        if not seconds:
            return cls(kind, 0, errors, math.nan, math.nan)
        return cls(kind, len(seconds), errors, statistics.median(seconds), percentile(seconds, 0.99))


@dataclass
class Calls:
    """What clients did: seconds by the kind of call, and what was wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Time a call; one that fails is an error of its kind, and the client goes on."""
        try:
            with timed() as watch:
                yield
        except (PipelinesError, LostError) as error:
            with self._lock:
                self.errors.setdefault(kind, []).append(str(error))
            return
        with self._lock:
            self.seconds.setdefault(kind, []).append(watch.seconds)

    def figures(self) -> list[Figures]:
        """Return the figures of each kind of call."""
        return [
            Figures.of(kind, self.seconds.get(kind, []), len(self.errors.get(kind, [])))
            for kind in sorted({*self.seconds, *self.errors})
        ]

    def measurements(self) -> list[Measurement]:
        """Return the figures of each kind of call, as they are stored."""
        found = []
        for figures in self.figures():
            name = f"many.{figures.kind}"
            found += [Measurement(f"{name}.calls", figures.calls, "calls"), Measurement(f"{name}.errors", figures.errors, "calls")]
            if figures.calls:
                found += [Measurement(f"{name}.s_median", figures.median_s, "s"), Measurement(f"{name}.s_p99", figures.p99_s, "s")]
        return found

    def table(self) -> Table:
        """Return the figures of each kind of call, as a table to show."""
        table = Table("call", "calls", "errors", "median s", "99 % s")
        for figures in self.figures():
            times = (f"{figures.median_s:.3f}", f"{figures.p99_s:.3f}")
            table.add_row(figures.kind, str(figures.calls), str(figures.errors), *times)
        return table


def measure(options: Options) -> list[Measurement]:
    """Bring the pipelines up in one host with the default settings, and let the clients work."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
        home = Path(folder)
        try:
            with served(home, home / "serve.log") as service:
                client = PipelineClient(service.url, timeout_s=PATIENCE_S)
                with timed() as watch:
                    names = bring_up(client, options.pipelines)
                calls = work(lambda: PipelineClient(service.url, timeout_s=PATIENCE_S), names, options.clients, options.seconds)
        finally:
            stop_hosts(home)
    print(f"{options.pipelines} pipelines were up after {watch.seconds:.0f} s")
    Console().print(calls.table())
    for kind, errors in calls.errors.items():
        print(f"{kind}: {len(errors)} errors, the first: {errors[0]}", file=sys.stderr)
    return [
        Measurement("many_errors", sum(len(errors) for errors in calls.errors.values()), "calls", 0.0),
        Measurement("many.start_s", watch.seconds, "s"),
        *calls.measurements(),
    ]


def bring_up(client: PipelineClient, count: int) -> list[str]:
    """Create and start so many pipelines, a few at a time; their names."""
    names = [f"many-{number}" for number in range(count)]

    def start(name: str) -> None:
        PipelineBuilder(client, name, sql=PROGRAM).create_or_replace().start(timeout_s=PATIENCE_S)

    with ThreadPoolExecutor(STARTERS) as pool:
        list(pool.map(start, names))
    return names


def work(connect: Callable[[], PipelineClient], names: Sequence[str], clients: int, seconds: float) -> Calls:
    """Let clients work at the same time, each with a connection of its own, and count what they see."""
    calls = Calls()
    until = time.monotonic() + seconds
    workers = [_Client(connect(), names, number, calls) for number in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(worker.run, until) for worker in workers]:
            done.result()
    return calls


class _Client:
    """One client: rows of its own in any pipeline, which must all be there when it asks."""

    def __init__(self, client: PipelineClient, names: Sequence[str], number: int, calls: Calls) -> None:
        self._client = client
        self._names = names
        self._number = number
        self._calls = calls
        self._dice = random.Random(number)
        self._pushed: dict[str, int] = dict.fromkeys(names, 0)

    def run(self, until: float) -> None:
        while time.monotonic() < until:
            self._round()

    def _round(self) -> None:
        name = self._dice.choice(self._names)
        pipeline = Pipeline.get(name, self._client)
        with self._calls.timed("step"):
            self._push(pipeline)
        with self._calls.timed("stats"):
            pipeline.stats()
        with self._calls.timed("query"):
            self._query(pipeline)
        with self._calls.timed("list"):
            found = len(Pipeline.all(self._client))
            require(found >= len(self._names), f"the list has {found} pipelines")
        match self._dice.random():
            case dice if dice < 0.05:
                with self._calls.timed("checkpoint"):
                    pipeline.checkpoint(wait=True, timeout_s=PATIENCE_S)
            case dice if dice < 0.1:
                with self._calls.timed("pause and resume"):
                    # Without waiting: another client may resume it before this one has seen the pause.
                    pipeline.pause(wait=False)
                    pipeline.resume(wait=False)

    def _push(self, pipeline: Pipeline) -> None:
        first = self._pushed[pipeline.name]
        rows = [
            {"id": self._number * 1_000_000_000 + at, "client": self._number, "v": self._dice.randrange(10_000)}
            for at in range(first, first + ROWS)
        ]
        # A pipeline that another client has just paused takes the rows and gives them to the next step after that.
        pipeline.input_json("t", rows, force=True, timeout_s=PATIENCE_S)
        self._pushed[pipeline.name] = first + ROWS

    def _query(self, pipeline: Pipeline) -> None:
        found = list(pipeline.query(f"SELECT n FROM totals WHERE client = {self._number}"))
        wanted = self._pushed[pipeline.name]
        require(found == [{"n": wanted}], f"{found} instead of {wanted} rows of client {self._number}")
