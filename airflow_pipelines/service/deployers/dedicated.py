"""One host per incarnation, with the resources its pipeline asks for, on any Spark master."""

from __future__ import annotations

import time
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.runtime_config import RuntimeConfig
from airflow_pipelines.service import processes
from airflow_pipelines.service.deployers.launch import Launcher
from airflow_pipelines.service.hosts import Hosts, HostUnreachable
from airflow_pipelines.settings import Settings

KIND = "dedicated"
EXIT_GRACE_S = 10.0
"""How long a host that suspended its incarnation may take to exit by itself."""


class DedicatedDeployer:
    """Submits a host for every incarnation. ``master`` None leaves the master to the submitter."""

    def __init__(self, settings: Settings, hosts: Hosts, launcher: Launcher, master: str | None) -> None:
        self._settings = settings
        self._hosts = hosts
        self._launcher = launcher
        self._master = master
        self._release_since: dict[UUID, float] = {}

    def place(self) -> UUID | None:
        """A host of its own, not submitted yet."""
        return uuid7()

    def deploy(self, host_id: UUID, deployment: Deployment) -> None:
        """Submit the host, which takes its deployment from its row."""
        master, conf = spark_conf(deployment.config(), self._master, self._settings.driver_memory)
        self._launcher.launch(KIND, host_id=host_id, deployment=deployment, master=master, conf=conf)

    def take_down(self, host: HostRecord, deployment_id: UUID) -> bool:  # noqa: ARG002 - the host runs nothing else
        """End the host's row, so that it ends itself wherever it is, and kill it when it is on this machine."""
        self._hosts.end(host)
        if host.pid is None:
            # Never seen alive; should it still come up, it finds its row ended and exits.
            return True
        if host.machine == processes.this_machine():
            return not processes.is_alive(host.pid)
        try:
            self._hosts.call(host, "POST", "/shutdown", timeout_s=2.0)
        except HostUnreachable:
            # It cannot be asked. It stops by itself once it finds its row ended; silence for that long means it did.
            return self._hosts.is_gone(host)
        return False

    def release(self, host: HostRecord, deployment_id: UUID) -> bool:
        """Let the host exit by itself, then make sure."""
        since = self._release_since.setdefault(host.host_id, time.monotonic())
        if not self._hosts.is_gone(host) and time.monotonic() - since < EXIT_GRACE_S:
            return False
        gone = self.take_down(host, deployment_id)
        if gone:
            self._release_since.pop(host.host_id, None)
        return gone


def spark_conf(config: RuntimeConfig, master: str | None, driver_memory: str) -> tuple[str | None, dict[str, str]]:
    """The Spark master and properties that ``workers`` and ``resources`` mean.

    Cores limit the threads of a local master and the cores of any other; memory is the driver's, in whose process a pipeline's
    small state lives.

    :param config: the pipeline's runtime configuration
    :param master: the Spark master as configured, None when the submitter knows it
    :param driver_memory: the driver's memory where ``config`` does not say, such as ``2g``
    """
    conf = {"spark.driver.memory": driver_memory, "spark.sql.shuffle.partitions": str(config.workers)}
    if config.resources.memory_mb_max is not None:
        conf["spark.driver.memory"] = f"{config.resources.memory_mb_max}m"
    if config.resources.cpu_cores_max is not None:
        count = max(1, int(config.resources.cpu_cores_max))
        if master is not None and master.startswith("local"):
            return f"local[{count}]", conf
        conf["spark.cores.max"] = str(count)
    return master, conf
