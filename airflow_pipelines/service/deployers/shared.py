"""One warm local host per store, for many small pipelines and for all compiling."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import SHARED, HostRecord
from airflow_pipelines.service import processes
from airflow_pipelines.service.deployers.base import SubmitError
from airflow_pipelines.service.deployers.launch import Launcher
from airflow_pipelines.service.hosts import Hosts, HostState, HostUnreachable, problem_of, raise_for_problem

START_LIMIT_S = 300.0
"""A host that is not up after this long hangs; it is ended, and whoever waits for it is told."""


class SharedDeployer:
    """Finds the store's shared host, or has one started."""

    def __init__(self, settings: Settings, hosts: Hosts, launcher: Launcher) -> None:
        self._settings = settings
        self._hosts = hosts
        self._launcher = launcher

    def host(self) -> HostRecord | None:
        """The shared host when it is up. When there is none, one is started, and None is the answer until it is up.

        :raises SubmitError: when the host cannot be started or died while it started
        """
        found, starting = self._find()
        if found is None and not starting:
            conf = {"spark.driver.memory": self._settings.driver_memory}
            # Of those who come here at the same time one launches the host: the store has room for one.
            self._launcher.launch(SHARED, master=self._settings.master, conf=conf)
        return found

    def place(self) -> UUID | None:
        """The shared host, once it is up."""
        host = self.host()
        return None if host is None else host.host_id

    def deploy(self, host_id: UUID, deployment: Deployment) -> None:
        """Hand the incarnation to the host; handing it over again does no harm."""
        host = self._hosts.registry.get(host_id)
        if host is None:
            raise HostUnreachable("its row is gone from the store")
        raise_for_problem(self._hosts.call(host, "POST", "/deployments", json=deployment.model_dump(mode="json")))

    def take_down(self, host: HostRecord, deployment_id: UUID) -> bool:
        """Have the host drop the incarnation. It is gone when the host says so or is gone itself."""
        if self._hosts.is_gone(host):
            return True
        try:
            response = self._hosts.call(host, "DELETE", f"/deployments/{deployment_id}")
        except HostUnreachable:
            return False
        if response.is_success or response.status_code == 404:
            return True
        raise problem_of(response)

    def release(self, host: HostRecord, deployment_id: UUID) -> bool:
        """Have the host forget an incarnation that ended."""
        return self.take_down(host, deployment_id)

    def _find(self) -> tuple[HostRecord | None, bool]:
        """The host that is up, and whether one is starting. Lost ones are ended on the way."""
        starting = False
        failure: SubmitError | None = None
        for host in self._hosts.registry.live_hosts(SHARED):
            health = self._hosts.health(host)
            if health.state is HostState.UP:
                return host, False
            reason = health.reason
            if health.state is HostState.STARTING:
                if self._hosts.age_s(host) <= START_LIMIT_S:
                    starting = True
                    continue
                reason = f"it was not up after {START_LIMIT_S:g} s"
            # Killed too, if it merely hangs: it must not go on with what others will take over.
            self._hosts.end(host, reason)
            if host.heartbeat is None and host.machine is not None:
                # It has run nothing yet, so that what it said is about nobody's pipeline.
                lines = "\n".join(processes.last_lines(Path(host.log_path)))
                failure = SubmitError(
                    f"The shared host ended while it was starting ({reason}). The last lines of its log:\n{lines}"
                )
        if failure is not None and not starting:
            raise failure
        return None, starting
