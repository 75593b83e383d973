"""The deployer of one warm local host per store, for many small pipelines and for all compiling."""

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
"""The number of seconds after which a host that is not up counts as hanging; it is ended, and its waiters get an error."""


class SharedDeployer:
    """A deployer that finds the store's shared host, or starts one."""

    def __init__(self, settings: Settings, hosts: Hosts, launcher: Launcher) -> None:
        self._settings = settings
        self._hosts = hosts
        self._launcher = launcher

    def host(self) -> HostRecord | None:
        """Return the shared host if it is up. If there is none, one is started, and the result is None until it is up.

        :raises SubmitError: when the host cannot be started or died while it started
        """
        host, starting = self._find()
        if host is None and not starting:
            conf = {"spark.driver.memory": self._settings.driver_memory}
            # Of concurrent callers only one launches the host, since the store has room for one.
            self._launcher.launch(SHARED, master=self._settings.master, conf=conf)
        return host

    def place(self) -> UUID | None:
        """Return the shared host, once it is up."""
        host = self.host()
        return None if host is None else host.host_id

    def deploy(self, host_id: UUID, deployment: Deployment) -> None:
        """Hand the incarnation to the host; doing so again does no harm."""
        host = self._hosts.registry.get(host_id)
        if host is None:
            raise HostUnreachable("its row is gone from the store")
        raise_for_problem(self._hosts.call(host, "POST", "/deployments", json=deployment.model_dump(mode="json")))

    def take_down(self, host: HostRecord, deployment_id: UUID) -> bool:
        """Let the host drop the incarnation; return True if the host confirms it or is gone itself."""
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
        """Let the host forget an incarnation that ended."""
        return self.take_down(host, deployment_id)

    def _find(self) -> tuple[HostRecord | None, bool]:
        """Return the host that is up, and True if one is starting. Lost hosts are ended on the way."""
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
            # Killed even if it merely hangs: it must not continue work that others take over.
            self._hosts.end(host, reason)
            if host.heartbeat is None and host.machine is not None:
                # It has run nothing yet, so its log is about no pipeline.
                lines = "\n".join(processes.last_lines(Path(host.log_path)))
                failure = SubmitError(
                    f"The shared host ended while it was starting ({reason}). The last lines of its log:\n{lines}"
                )
        if failure is not None and not starting:
            raise failure
        return None, starting
