"""Clients that only read, and pipelines that are created and deleted."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from airflow_pipelines import Pipeline
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelinesError, PipelineTimeoutError, ProgramCompilationError
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.wire import path_of
from tools.model import require
from tools.soak.record import Record
from tools.soak.workloads import Workload, difference

PATIENCE_S = 300.0
PAUSE_S = 2.0
LEAVES_AFTER_S = 1.0
ENDLESS = "SELECT COUNT(*) FROM range(100000000000000) WHERE id % 7 = 3"
NOT_NOW = frozenset(
    {
        "PipelineInteractionNotDeployed", "PipelineUnavailable", "PipelineInteractionUnreachable", "Terminating", "Initializing",
        "AwaitingApproval", "RestoreInProgress", "BootstrapInProgress", "Suspended", "UnknownDeployment",
    }
)  # fmt: skip
"""The errors that a pipeline may answer while it is being stopped or started."""
GUEST = (
    "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v BIGINT) WITH ('materialized' = 'true');"
    "CREATE MATERIALIZED VIEW doubled AS SELECT id, 2 * v AS v FROM t;"
    "CREATE MATERIALIZED VIEW last AS SELECT v % 3 AS k, MAX(id) AS id FROM t GROUP BY v % 3;"
)


class Reader:
    """A client that sends any read request while others drive the pipelines."""

    def __init__(self, client: PipelineClient, workloads: list[Workload], dice: random.Random, record: Record) -> None:
        self._client = client
        self._workloads = workloads
        self._dice = dice
        self._record = record

    def run(self, ended: threading.Event) -> None:
        """Send requests until the event is set."""
        while not ended.is_set() and not self._record.hopeless:
            self.one()
            time.sleep(self._dice.random() * PAUSE_S)

    def one(self) -> None:
        """Send one request. Faults are recorded; a pipeline that is not up at the moment is no fault."""
        ask = self._dice.choice(
            [self._compare, self._compare, self._stats, self._list, self._descriptor, self._events, self._leave]
        )
        workload = self._dice.choice(self._workloads)
        try:
            ask(workload)
        except PipelineAPIError as error:
            if error.error_code in NOT_NOW:
                self._record.count("asked too early or too late")
            else:
                self._record.fault(f"reader of {workload.name}", error)
        except Exception as error:  # noqa: BLE001  whatever is wrong is what the run is there to find
            self._record.fault(f"reader of {workload.name}", error)

    def _compare(self, workload: Workload) -> None:
        """Check that a view equals its query in each step, also while rows come in."""
        view, query = self._dice.choice(list(workload.views.items()))
        with self._record.timed("query"):
            different = list(self._pipeline(workload).query(difference(view, query)))
        require(not different, f"view {view}: {len(different)} rows differ, as {different[:3]}")

    def _stats(self, workload: Workload) -> None:
        with self._record.timed("stats"):
            self._pipeline(workload).stats()

    def _list(self, _workload: Workload) -> None:
        with self._record.timed("list"):
            found = {pipeline.name for pipeline in Pipeline.all(self._client)}
        require(found >= {workload.name for workload in self._workloads}, f"the list has only {found}")

    def _descriptor(self, workload: Workload) -> None:
        with self._record.timed("descriptor"):
            self._client.get(path_of("pipelines", workload.name))

    def _events(self, workload: Workload) -> None:
        with self._record.timed("events"):
            self._pipeline(workload).events()

    def _leave(self, workload: Workload) -> None:
        """Start an endless query, and leave."""
        path = path_of("pipelines", workload.name, "query")
        try:
            self._client.request("GET", path, params={"sql": ENDLESS}, timeout_s=LEAVES_AFTER_S, idempotent=False)
        except PipelineTimeoutError:
            self._record.count("left a query")
            return
        raise AssertionError("an endless query was answered")

    def _pipeline(self, workload: Workload) -> Pipeline:
        return Pipeline.get(workload.name, self._client)


class Guests:
    """Pipelines that are created, used and deleted, one after the other."""

    def __init__(self, client: PipelineClient, dice: random.Random, record: Record) -> None:
        self._client = client
        self._dice = dice
        self._record = record
        self._number = 0

    def run(self, ended: threading.Event) -> None:
        """Create and delete pipelines until the event is set."""
        while not ended.is_set() and not self._record.hopeless:
            try:
                self.one()
            except Exception as error:  # noqa: BLE001  whatever is wrong is what the run is there to find
                self._record.fault(f"guest {self._number}", error)
            ended.wait(self._dice.random() * 10)

    def one(self) -> None:
        """Create, use and delete one pipeline."""
        self._number += 1
        with self._record.timed("guest"):
            pipeline = PipelineBuilder(self._client, f"guest-{self._number}", GUEST).create_or_replace()
            self._refused(lambda: pipeline.modify(sql="CREATE TABLE t (a INT); CREATE VIEW v AS SELECT nothing FROM t;"))
            pipeline.start(timeout_s=PATIENCE_S)
            pipeline.input_json("t", [{"id": number, "v": self._number} for number in range(50)])
            answer = list(pipeline.query("SELECT COUNT(*) AS n, SUM(v) AS total FROM doubled"))
            require(answer == [{"n": 50, "total": 100 * self._number}], f"a guest's view: {answer}")
            pipeline.stop(force=self._dice.random() < 0.5, timeout_s=PATIENCE_S)
            pipeline.delete(clear_storage=True)
        self._record.count("guests")

    def _refused(self, change: Callable[[], None]) -> None:
        try:
            change()
        except ProgramCompilationError:
            return
        raise PipelinesError("a program that does not compile was taken")
