"""The host process: registers, serves the data plane, runs its pipelines, and ends when it should."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn
from uuid import UUID

from pyspark.sql import SparkSession
from sqlalchemy.exc import SQLAlchemyError

from airflow_pipelines.database import DatabaseFile, open_database
from airflow_pipelines.engine.sessions import build_spark
from airflow_pipelines.host.app import create_app
from airflow_pipelines.host.connector_env import connector_environment
from airflow_pipelines.host.deployment import Deployment
from airflow_pipelines.host.fleet import Fleet
from airflow_pipelines.host.log_files import limit_by_copying
from airflow_pipelines.host.queries import QueryLimits
from airflow_pipelines.host.registry import SHARED, HostRecord, Registry
from airflow_pipelines.host.runner import PipelineRunner
from airflow_pipelines.host.server import DataPlane, PortInUseError
from airflow_pipelines.host.spark_health import SparkHealth
from airflow_pipelines.pins import SetupError, check_spark_packages
from airflow_pipelines.private_files import PRIVATE_UMASK
from airflow_pipelines.settings import Settings

HEARTBEAT_S = 1.0
STORE_GRACE_S = 90.0
"""How long a host goes on without reaching the store; the lock on each storage folder keeps a second host out meanwhile."""

LAST_RESORT_S = 20.0
"""How long a host that nobody wants may take to end in order."""

log = logging.getLogger("airflow_pipelines.host")


def main(arguments: Sequence[str]) -> int:
    """Run a host until it ends. Returns the exit code."""
    # For a host that a cluster started. Where it was started here, its JVM has this umask as well.
    os.umask(PRIVATE_UMASK)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Every failed analysis would be logged with its Java stack; callers get it as an error of theirs.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(prog="airflow_pipelines.host", description=__doc__)
    parser.add_argument("--host-id", type=UUID, required=True, help="the host's row in the store")
    host_id = parser.parse_args(arguments).host_id
    try:
        check_spark_packages()
        settings = Settings.load()
        engine = open_database(settings.database_url)
        registry = Registry(engine)
        record = registry.get(host_id)
        if record is None or record.ended_at is not None:
            log.error("the host %s is not wanted: its row is %s", host_id, "missing" if record is None else "ended")
            return 3
        return Host(record, registry, settings, DatabaseFile(engine)).run()
    except (SetupError, PortInUseError) as error:
        log.error("%s", error)  # noqa: TRY400  the message says it all
        return 2


class Host:
    """One host process."""

    def __init__(self, record: HostRecord, registry: Registry, settings: Settings, store: DatabaseFile) -> None:
        self._record = record
        self._store = store
        self._registry = registry
        self._settings = settings
        self._parent = os.getppid()
        self._ended = threading.Event()
        self._last_contact = time.monotonic()

    def run(self) -> int:
        """Serve until the row is ended, a shutdown is asked for, or the one deployment of a dedicated host is over."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ended.set())
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        # Nothing is kept there, but Spark makes the folder, by default in whatever the working folder is.
        conf = {"spark.sql.warehouse.dir": str(self._settings.home / "spark-warehouse")}
        spark = build_spark(None if submitted else self._settings.master, f"airflow-pipelines {self._record.kind}", conf)
        settings = self._settings
        limits = QueryLimits(
            time_s=settings.query_timeout_s, result_bytes=settings.query_result_bytes, at_once=settings.query_concurrency
        )
        fleet = Fleet(spark, self._registry, limits, connector_environment(settings.connector_env))
        app = create_app(fleet, self._record.token, self._ended.set, lambda: self._record.kind == "dedicated" or fleet.idle)
        health = SparkHealth(spark).start()
        plane = DataPlane(app, self._settings.host_address)
        plane.start()
        if not self._register(plane.url):
            log.error("the host was ended before it came up")
            return 3
        log.info("serving at %s", plane.url)
        threading.Thread(target=self._watch, args=(submitted, fleet, health), name="watchdog", daemon=True).start()
        runner = self._own_deployment(fleet)
        if runner is None:
            self._ended.wait()
        else:
            while not self._ended.wait(0.1) and not runner.ended:
                pass
        health.close()
        self._end(fleet, plane, spark)
        return 0

    def _own_deployment(self, fleet: Fleet) -> PipelineRunner | None:
        if self._record.deployment is None:
            return None
        return fleet.deploy(Deployment.model_validate(self._record.deployment))

    def _register(self, url: str) -> bool:
        return self._registry.update(
            self._record.host_id, url=url, pid=os.getpid(), machine=socket.gethostname(), heartbeat=time.time()
        )

    def _watch(self, submitted: bool, fleet: Fleet, health: SparkHealth) -> None:
        """Send heartbeats; end the process when nobody should use it any more."""
        while not self._ended.wait(HEARTBEAT_S):
            gone = submitted and os.getppid() != self._parent
            problem = "its JVM is gone" if gone else health.problem
            if problem is not None:
                self._exit_without_spark(problem, self._parent if submitted and not gone else None)
            idle_s = self._settings.host_idle_s
            if self._record.kind == SHARED and idle_s and fleet.retire(idle_s):
                log.info("nobody used the host for %g s; exiting", idle_s)
                self._registry.end(self._record.host_id, f"nobody used it for {idle_s:g} s")
                self._ended.set()
                return
            limit_by_copying(Path(self._record.log_path))
            reason = self._unwanted()
            if reason is not None:
                log.info("%s; exiting", reason)
                self._ended.set()
                # Taking pipelines down in order is a courtesy: committed steps are on disk.
                last_resort = threading.Timer(LAST_RESORT_S, os._exit, (5,))
                last_resort.daemon = True
                last_resort.start()
                return

    def _unwanted(self) -> str | None:
        """Send a heartbeat; why the host should end, or None."""
        try:
            wanted = self._registry.update(self._record.host_id, heartbeat=time.time())
            gone = self._store.gone
        except (SQLAlchemyError, OSError) as error:
            wanted, gone = True, f"the store cannot be reached: {error}"
        if gone is None:
            self._last_contact = time.monotonic()
            return None if wanted else "the host's row was ended"
        silent = time.monotonic() - self._last_contact
        if silent < STORE_GRACE_S:
            self._warn(gone, silent)
            return None
        return f"{gone}, for {silent:.0f} s by now"

    def _warn(self, gone: str, silent: float) -> None:
        """Say what is wrong with the store, at first and then every ten seconds."""
        if int(silent) % 10 <= HEARTBEAT_S:
            log.warning("%s; the host ends after %g s without its store", gone, STORE_GRACE_S)

    def _exit_without_spark(self, problem: str, jvm: int | None) -> NoReturn:
        """Leave at once: without Spark no pipeline here can take another step, and nothing can be closed in order either."""
        log.error("the host cannot go on: %s; exiting", problem)
        try:
            self._registry.end(self._record.host_id, problem)
        except SQLAlchemyError as error:
            log.warning("the store cannot be reached to say so: %s", error)
        if jvm is not None:
            # It would wait for this process and then, being in trouble, perhaps not end.
            os.kill(jvm, signal.SIGKILL)
        os._exit(4)

    def _end(self, fleet: Fleet, plane: DataPlane, spark: SparkSession) -> None:
        self._ended.set()
        fleet.close()
        plane.stop()
        try:
            self._registry.end(self._record.host_id)
        except SQLAlchemyError as error:
            log.warning("the store cannot be reached to say that the host ended: %s", error)
        spark.stop()
        log.info("ended")
