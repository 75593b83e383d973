"""The deployer that starts one host per incarnation, with the resources its pipeline asks for, on any Spark master."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.runtime_config import RuntimeConfig, SparkSettings
from airflow_pipelines.service import processes
from airflow_pipelines.service.deployers.launch import Launcher
from airflow_pipelines.service.hosts import Hosts, HostUnreachable

KIND = "dedicated"
EXIT_GRACE_S = 10.0
"""The number of seconds that a host may take to exit by itself after it has suspended its incarnation."""


class DedicatedDeployer:
    """A deployer that submits a host for every incarnation. ``master`` None leaves the master to the submitter."""

    def __init__(self, settings: Settings, hosts: Hosts, launcher: Launcher, master: str | None) -> None:
        self._settings = settings
        self._hosts = hosts
        self._launcher = launcher
        self._master = master
        self._release_since: dict[UUID, float] = {}

    def place(self) -> UUID | None:
        """Return the id of a new host, which is not submitted yet."""
        return uuid7()

    def deploy(self, host_id: UUID, deployment: Deployment) -> None:
        """Submit the host, which reads its deployment from its row."""
        spark = spark_properties(deployment.config(), self._master, self._settings.driver_memory)
        self._launcher.launch(
            KIND, host_id=host_id, deployment=deployment, master=spark.master, conf=spark.conf, defaults=spark.defaults
        )

    def take_down(self, host: HostRecord, deployment_id: UUID) -> bool:  # noqa: ARG002 - the host runs nothing else
        """End the host's row, so that it ends itself wherever it is, and kill it if it is on this machine."""
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
        """Wait for the host to exit by itself, and end it after a grace period."""
        since = self._release_since.setdefault(host.host_id, time.monotonic())
        if not self._hosts.is_gone(host) and time.monotonic() - since < EXIT_GRACE_S:
            return False
        gone = self.take_down(host, deployment_id)
        if gone:
            self._release_since.pop(host.host_id, None)
        return gone


@dataclass(frozen=True, slots=True)
class SparkProperties:
    """The Spark properties of a pipeline's configuration.

    :param master: the Spark master, None if the submitter knows it
    :param conf: the properties that the configuration requires
    :param defaults: properties that those of a connection take precedence over
    """

    master: str | None
    conf: Mapping[str, str]
    defaults: Mapping[str, str]


def spark_properties(config: RuntimeConfig, master: str | None, driver_memory: str) -> SparkProperties:
    """Return the Spark master and properties for ``workers``, ``resources`` and ``spark``.

    Cores limit the threads of a local master and the cores of any other; without a limit a pipeline takes as many as it has
    workers, and not all that there are. Memory is that of the driver, whose process holds a pipeline's small state.

    :param config: the pipeline's runtime configuration
    :param master: the configured Spark master, None if the submitter knows it
    :param driver_memory: the driver's memory if ``config`` does not set it, such as ``2g``
    """
    most = config.resources.cpu_cores_max
    cores = config.workers if most is None else max(1, int(most))
    conf = {"spark.sql.shuffle.partitions": str(config.workers), **_application(config.spark or SparkSettings())}
    if config.resources.memory_mb_max is not None:
        conf["spark.driver.memory"] = f"{config.resources.memory_mb_max}m"
    defaults = {"spark.driver.memory": driver_memory}
    if master is not None and master.startswith("local"):
        if most is None:
            cores = min(cores, os.cpu_count() or 1)
        return SparkProperties(master if most is None and master != "local[*]" else f"local[{cores}]", conf, defaults)
    (defaults if most is None else conf)["spark.cores.max"] = str(cores)
    return SparkProperties(master, conf, defaults)


def _application(settings: SparkSettings) -> dict[str, str]:
    """Return the properties of a pipeline's own Spark settings."""
    named = {
        "spark.jars.packages": ",".join(settings.packages) or None,
        "spark.kubernetes.container.image": settings.image,
        "spark.driver.memory": settings.driver_memory,
        "spark.executor.memory": settings.executor_memory,
    }
    return {**settings.conf, **{name: value for name, value in named.items() if value is not None}}
