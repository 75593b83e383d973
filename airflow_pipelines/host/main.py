"""The host process: it registers, serves the data plane, runs its pipelines, and ends when it should."""

from __future__ import annotations

import argparse
import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn
from uuid import UUID

from pyspark.sql import SparkSession
from sqlalchemy.exc import SQLAlchemyError

from airflow_pipelines.common.connection_references import AirflowConnections
from airflow_pipelines.common.database import DatabaseFile, open_database
from airflow_pipelines.common.pins import SetupError, check_spark_packages
from airflow_pipelines.common.private_files import PRIVATE_UMASK
from airflow_pipelines.common.references import References
from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.log_files import limit_by_copying
from airflow_pipelines.contract.registry import SHARED, HostRecord, Registry
from airflow_pipelines.contract.store_address import database_url
from airflow_pipelines.engine.spark.application import log_no_java_calls
from airflow_pipelines.engine.spark.sessions import build_spark
from airflow_pipelines.host.api.app import create_app
from airflow_pipelines.host.process.heartbeat import Heartbeat
from airflow_pipelines.host.process.server import CannotListenError, DataPlane
from airflow_pipelines.host.queries.queries import QueryLimits
from airflow_pipelines.host.runs.fleet import Fleet
from airflow_pipelines.host.runs.runner import PipelineRunner
from airflow_pipelines.host.runs.spark_health import SparkHealth

HEARTBEAT_S = 1.0
STORE_GRACE_S = 90.0
"""The time that a host goes on without its store; meanwhile, the lock on each storage folder keeps a second host out."""

LAST_RESORT_S = 20.0
"""The time that a host may take to shut down in order once nobody wants it."""
TELL_S = 5.0
"""The time for which a host that exits at once tries to record this in the store."""
STUCK_S = 120
"""The limit after which a host ends itself if its Python stands still or its data plane does not answer.

It applies when no service has ended the host before.
"""

log = logging.getLogger("airflow_pipelines.host")


def main(arguments: Sequence[str]) -> int:
    """Run a host until it ends.

    :returns: the exit code
    """
    # For a host that a cluster has started. A host that was started here has a JVM with the same umask.
    os.umask(PRIVATE_UMASK)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log_no_java_calls()
    parser = argparse.ArgumentParser(prog="airflow_pipelines.host", description=__doc__)
    parser.add_argument("--host-id", type=UUID, required=True, help="the host's row in the store")
    host_id = parser.parse_args(arguments).host_id
    try:
        check_spark_packages()
        settings = Settings.load()
        engine = open_database(database_url(settings, host_id))
        registry = Registry(engine)
        record = registry.get(host_id)
        if record is None or record.ended_at is not None:
            log.error("the host %s is not wanted: its row is %s", host_id, "missing" if record is None else "ended")
            return 3
        return Host(record, registry, settings, DatabaseFile(engine)).run()
    except (SetupError, CannotListenError) as error:
        log.error("%s", error)  # noqa: TRY400  the message says it all
        return 2


class Host:
    """A host process."""

    def __init__(self, record: HostRecord, registry: Registry, settings: Settings, store: DatabaseFile) -> None:
        self._record = record
        self._store = store
        self._registry = registry
        self._settings = settings
        self._parent = os.getppid()
        self._ended = threading.Event()
        self._heartbeat = Heartbeat(record.host_id, registry, store, every_s=HEARTBEAT_S, grace_s=STORE_GRACE_S)
        self._last_answer = time.monotonic()

    def run(self) -> int:
        """Serve until the host's row is ended, a shutdown is requested, or the one deployment of a dedicated host is over."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ended.set())
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        # Nothing is stored there, but Spark creates the folder, by default in the current working folder.
        conf = {"spark.sql.warehouse.dir": str(self._settings.home / "spark-warehouse")}
        if self._settings.spark_ui_port:
            conf |= {"spark.ui.enabled": "true", "spark.ui.port": str(self._settings.spark_ui_port)}
        spark = build_spark(None if submitted else self._settings.master, self._record.application_name, conf)
        settings = self._settings
        limits = QueryLimits(
            time_s=settings.query_timeout_s, result_bytes=settings.query_result_bytes, at_once=settings.query_concurrency
        )
        secrets = SecretFiles(settings.secrets)
        connections = AirflowConnections(settings.connector_connections, secrets)
        references = References(connector_environment(settings.connector_env), secrets, connections)
        fleet = Fleet(spark, self._registry, limits, references)
        app = create_app(fleet, self._record.token, self._ended.set, lambda: self._record.kind == "dedicated" or fleet.idle)
        health = SparkHealth(spark, self._parent if submitted else None).start()
        plane = DataPlane(app, self._settings.host_address)
        plane.start()
        # The objects that exist by now stay. A garbage collection that skips them takes a hundredth of the time. So it runs before
        # the JVM keeps hundreds of megabytes for Python objects that are no longer used.
        gc.collect()
        gc.freeze()
        gc.enable()  # see submit.py
        if not self._register(plane.url):
            log.error("the host was ended before it came up")
            return 3
        log.info("serving at %s", plane.url)
        self._heartbeat.start(lambda: self._answers(plane))
        watchdog = threading.Thread(target=self._watch, args=(submitted, fleet, health), name="watchdog", daemon=True)
        watchdog.start()
        self._wait(self._start_own_deployment(fleet), watchdog)
        health.close()
        self._end(fleet, plane, spark)
        return 0

    def _wait(self, runner: PipelineRunner | None, watchdog: threading.Thread) -> None:
        """Wait until the host has to end.

        If Python is kept from this loop for too long, the process ends, and the traceback is in its log.
        """
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        looked = time.monotonic()
        while not self._ended.wait(1.0 if runner is None else 0.1) and not (runner is not None and runner.ended):
            if time.monotonic() - looked < HEARTBEAT_S:
                continue
            looked = time.monotonic()
            faulthandler.dump_traceback_later(STUCK_S, exit=True)
            if not watchdog.is_alive() and not self._ended.is_set():
                self._exit_at_once("its watchdog has ended", None)
        faulthandler.cancel_dump_traceback_later()

    def _answers(self, plane: DataPlane) -> bool:
        """Return True if the data plane answers, and note the time. The heartbeat calls it."""
        if plane.answers():
            self._last_answer = time.monotonic()
            return True
        return False

    def _start_own_deployment(self, fleet: Fleet) -> PipelineRunner | None:
        if self._record.deployment is None:
            return None
        return fleet.deploy(Deployment.model_validate(self._record.deployment))

    def _register(self, url: str) -> bool:
        return self._registry.update(
            self._record.host_id, url=url, pid=os.getpid(), machine=socket.gethostname(), heartbeat=time.time()
        )

    def _watch(self, submitted: bool, fleet: Fleet, health: SparkHealth) -> None:
        """End the process when it cannot go on, or when nobody should use it any more."""
        while not self._ended.wait(HEARTBEAT_S):
            gone = submitted and os.getppid() != self._parent
            problem = "its JVM is gone" if gone else health.problem or self._describe_silence()
            if problem is not None:
                self._exit_at_once(problem, self._parent if submitted and not gone else None)
            idle_s = self._settings.host_idle_s
            if self._record.kind == SHARED and idle_s and fleet.retire(idle_s):
                log.info("nobody used the host for %g s; exiting", idle_s)
                self._tell_the_end(f"nobody used it for {idle_s:g} s")
                self._ended.set()
                return
            limit_by_copying(Path(self._record.log_path))
            reason = self._heartbeat.reason_to_end
            if reason is not None:
                log.info("%s; exiting", reason)
                self._ended.set()
                # Taking pipelines down in order is a courtesy: committed steps are on disk.
                last_resort = threading.Timer(LAST_RESORT_S, os._exit, (5,))
                last_resort.daemon = True
                last_resort.start()
                return

    def _describe_silence(self) -> str | None:
        silent = time.monotonic() - self._last_answer
        return f"its data plane did not answer for {silent:.0f} s" if silent > STUCK_S else None

    def _exit_at_once(self, problem: str, jvm: int | None) -> NoReturn:
        """Exit at once: no pipeline here can take another step, and nothing can be closed in order."""
        log.error("the host cannot go on: %s; exiting", problem)
        telling = threading.Thread(target=self._tell_the_end, args=(problem,), daemon=True)
        telling.start()
        telling.join(TELL_S)
        if jvm is not None:
            # The JVM would wait for this process and then, being in trouble, perhaps not end.
            os.kill(jvm, signal.SIGKILL)
        os._exit(4)

    def _tell_the_end(self, reason: str | None = None) -> None:
        try:
            self._registry.end(self._record.host_id, reason)
        except SQLAlchemyError as error:
            log.warning("the store cannot be reached to say that the host ended: %s", error)

    def _end(self, fleet: Fleet, plane: DataPlane, spark: SparkSession) -> None:
        self._ended.set()
        fleet.close()
        self._heartbeat.stop()
        plane.stop()
        self._tell_the_end()
        spark.stop()
        log.info("ended")


def connector_environment(allowed: Sequence[str]) -> dict[str, str]:
    """Return the variables of this process's environment that connectors may name as ``${env:NAME}``.

    :param allowed: patterns of names, in which ``*`` stands for any characters
    """
    return {name: value for name, value in os.environ.items() if any(fnmatchcase(name, pattern) for pattern in allowed)}
