"""A host inside the current process, over a Spark session that is there already."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from secrets import token_urlsafe
from uuid import UUID

from pyspark.sql import SparkSession
from sqlalchemy import Engine
from uuid6 import uuid7

from airflow_pipelines.common.database import DatabaseFile
from airflow_pipelines.common.references import References
from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.contract.registry import Base, HostRecord, Registry
from airflow_pipelines.host.api.app import create_app
from airflow_pipelines.host.process.heartbeat import Heartbeat
from airflow_pipelines.host.process.server import DataPlane
from airflow_pipelines.host.queries.queries import DEFAULT_QUERY_LIMITS
from airflow_pipelines.host.runs.fleet import Fleet
from airflow_pipelines.host.runs.spark_health import SparkHealth

HEARTBEAT_S = 1.0


class InProcessHost:
    """Serves the data plane from a thread of this process and registers as the store's shared host.

    :param spark: the session beside which pipelines get sessions of their own
    :param engine: the store's database
    :param secrets: the folder of secrets, None without any
    """

    def __init__(self, spark: SparkSession, engine: Engine, secrets: Path | None = None) -> None:
        Base.metadata.create_all(engine)
        self.host_id = UUID(int=uuid7().int)
        self.token = token_urlsafe(32)
        self.registry = Registry(engine)
        self.fleet = Fleet(
            spark, self.registry, DEFAULT_QUERY_LIMITS, References(secrets=None if secrets is None else SecretFiles(secrets))
        )
        self._health = SparkHealth(spark)
        self._stopped = threading.Event()
        self._plane = DataPlane(create_app(self.fleet, self.token, self.stop, lambda: self.fleet.idle))
        self.url = self._plane.url
        # It ends with its process, whatever becomes of its store.
        self._heartbeat = Heartbeat(self.host_id, self.registry, DatabaseFile(engine), every_s=HEARTBEAT_S, grace_s=inf)
        self._watch = threading.Thread(target=self._look, name="watchdog", daemon=True)

    def start(self) -> InProcessHost:
        """Serve and register."""
        self._plane.start()
        self.registry.submit(
            HostRecord(
                host_id=self.host_id,
                kind="shared",
                deployment_id=None,
                deployment=None,
                url=self.url,
                token=self.token,
                pid=os.getpid(),
                machine=socket.gethostname(),
                log_path=str(Path(tempfile.gettempdir()) / f"host-{self.host_id}.log"),
                submitted_at=datetime.now(UTC),
                heartbeat=time.time(),
                ended_at=None,
            )
        )
        self._health.start()
        self._heartbeat.start(self._plane.answers)
        self._watch.start()
        return self

    def stop(self) -> None:
        """Take all deployments down, declare the host ended and stop serving."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._health.close()
        self.fleet.close()
        self._heartbeat.stop()
        self.registry.end(self.host_id)
        self._plane.stop()

    def __enter__(self) -> InProcessHost:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _look(self) -> None:
        while not self._stopped.wait(HEARTBEAT_S):
            problem = self._health.problem
            if problem is not None:
                self._heartbeat.stop()
                self.registry.end(self.host_id, problem)
                return
