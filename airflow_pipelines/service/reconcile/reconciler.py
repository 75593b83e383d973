"""The reconciler: decides the next step of a pipeline, and takes it."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_pipelines.contract.enums import StorageStatus
from airflow_pipelines.contract.statuses import CompilationStatus, ResourcesStatus, RuntimeStatus
from airflow_pipelines.service.deployers.base import Deployers
from airflow_pipelines.service.deployers.shared import SharedDeployer
from airflow_pipelines.service.hosts import Hosts
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.reconcile.commits import Commits
from airflow_pipelines.service.reconcile.compilations import Compilations
from airflow_pipelines.service.reconcile.incarnations import Incarnations
from airflow_pipelines.service.reconcile.observation import HostObserver
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.store import Store


class Reconciler:
    """The reconciler of the pipelines of one store.

    :param store: the store
    :param hosts: its hosts
    :param deployers: the deployers, by name
    :param shared: the deployer of the shared host, which also compiles
    :param files: the storages and logs of pipelines
    """

    def __init__(self, store: Store, hosts: Hosts, deployers: Deployers, shared: SharedDeployer, files: PipelineFiles) -> None:
        self._hosts = hosts
        self._deployers = deployers
        self.commits = Commits(store, files)
        self._observation = HostObserver(self.commits, hosts, deployers, shared, files)
        self._compilations = Compilations(self.commits, hosts, shared)
        self._incarnations = Incarnations(self.commits, self._observation, store, hosts, deployers, files)

    def observe(self, record: PipelineRecord) -> PipelineRecord:
        """Apply everything that happened to a pipeline since the last look. Quick; every read calls it."""
        return self._observation.observe(record)

    def look_after_hosts(self) -> None:
        """End hosts that are lost, also those that no pipeline would notice. Quick."""
        for host in self._hosts.registry.live_hosts():
            self._hosts.look_after(host)

    def is_for_others(self, record: PipelineRecord) -> bool:
        """Return True if the pipeline waits for a deployer that this process does not have and another one may have.

        :param record: the pipeline
        """
        resources, desired = record.deployment_resources_status, record.deployment_resources_desired_status
        starts = desired is ResourcesStatus.PROVISIONED and resources in {ResourcesStatus.STOPPED, ResourcesStatus.PROVISIONING}
        # Any process compiles and clears.
        is_ready = record.program_status is CompilationStatus.SUCCESS and record.storage_status is not StorageStatus.CLEARING
        return starts and is_ready and self._deployers.get(record.deployer) is None

    def drive(self, record: PipelineRecord) -> PipelineRecord:
        """Take the next step of the pipeline, if there is one, and return the pipeline after it.

        May take as long as a compilation.

        :param record: the pipeline
        :raises Conflict: when another process was quicker
        """
        now = datetime.now(UTC)
        # Clearing needs no program, and must not wait for a compiler that is only coming up.
        if record.storage_status is StorageStatus.CLEARING:
            return self._incarnations.clear(record)
        if self._compilations.wants(record, now):
            return self._compilations.compile(record)
        resources, desired = record.deployment_resources_status, record.deployment_resources_desired_status
        if resources is ResourcesStatus.STOPPING:
            return self._incarnations.take_down(record)
        if desired is ResourcesStatus.PROVISIONED:
            if resources is ResourcesStatus.STOPPED and record.program_status is CompilationStatus.SUCCESS:
                return self._incarnations.provision(record)
            if resources is ResourcesStatus.PROVISIONING:
                return self._incarnations.deploy(record)
            if resources is ResourcesStatus.PROVISIONED and record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED:
                return self._incarnations.suspend(record)
        return record
