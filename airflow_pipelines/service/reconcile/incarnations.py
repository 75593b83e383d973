"""The start, suspension and take-down of pipelines' incarnations on hosts, and the clearing of storages."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.enums import BootstrapPolicy
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import SHARED, HostRecord
from airflow_pipelines.contract.statuses import ResourcesStatus, RuntimeStatus
from airflow_pipelines.engine.storage.errors import storage_error
from airflow_pipelines.engine.storage.problems import storage_problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.deployers.base import Deployers, SubmitError
from airflow_pipelines.service.hosts import Hosts, HostUnreachable
from airflow_pipelines.service.lifecycle import incarnation
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.reconcile.commits import Commits, deployment_error
from airflow_pipelines.service.reconcile.observation import HostObserver
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.store import Store

TAKE_DOWN_LIMIT_S = 30.0
"""The number of seconds after which a dedicated host that does not release an incarnation is ended. A shared one never is."""

logger = logging.getLogger(__name__)


class Incarnations:
    """The next steps of the incarnations of one store, as requests to hosts.

    :param commits: the writer of changes of pipelines
    :param observation: the reader of new reports of hosts
    :param store: the store, in which ended transitions are deleted
    :param hosts: the hosts of the store
    :param deployers: the deployers, by name
    :param files: the storages and logs of pipelines
    """

    def __init__(
        self,
        commits: Commits,
        observation: HostObserver,
        store: Store,
        hosts: Hosts,
        deployers: Deployers,
        files: PipelineFiles,
    ) -> None:
        self._commits = commits
        self._observation = observation
        self._store = store
        self._hosts = hosts
        self._registry = hosts.registry
        self._deployers = deployers
        self._files = files
        self._asked: set[tuple[str, UUID, UUID | None]] = set()
        """The requests that this process has already made to hosts, by incarnation and host; they are repeated after a crash."""

    def provision(self, record: PipelineRecord) -> PipelineRecord:
        """Give the desired incarnation an id, and a host if there is one."""
        deployer = self._deployers.get(record.deployer)
        if deployer is None:
            return record
        deployment = self._deployment(record, uuid7())
        config = deployment.model_dump(mode="json", exclude={"source"})
        used = incarnation.use_storage(record)
        try:
            host_id = deployer.place()
        except SubmitError as error:
            return self._commits.commit(record, _fail_start(record, str(error)))
        provisioning = incarnation.provision(used, deployment.deployment_id, host_id, config, datetime.now(UTC))
        return self._commits.commit(record, [used, provisioning])

    def deploy(self, record: PipelineRecord) -> PipelineRecord:
        """Hand the incarnation to its host."""
        deployer = self._deployers.get(record.deployer)
        deployment_id = record.deployment_id
        asked = ("deploy", deployment_id or record.id, record.host_id)
        if deployer is None or deployment_id is None or asked in self._asked:
            return record
        try:
            if record.host_id is None:
                host_id = deployer.place()
                return record if host_id is None else self._commits.commit(record, [replace(record, host_id=host_id)])
            self._files.create(record)
            deployer.deploy(record.host_id, self._deployment(record, deployment_id))
        except SubmitError as error:
            return self._commits.fail(
                record, deployment_error(ErrorCode.RUNNER_INTERACTION_UNREACHABLE, f"The host could not be started: {error}")
            )
        except OSError as error:
            problem = storage_problem(storage_error(self._files.storage(record), error), record.name)
            return self._commits.fail(record, problem.body())
        except Problem as error:
            return self._commits.fail(record, error.body())
        except HostUnreachable as error:
            logger.warning("Pipeline %s could not be handed to its host yet: %s", record.name, error)
            return record
        self._asked.add(asked)
        return record

    def suspend(self, record: PipelineRecord) -> PipelineRecord:
        """Request a graceful stop from the host."""
        deployment_id = record.deployment_id
        host = None if record.host_id is None else self._registry.get(record.host_id)
        if deployment_id is None or host is None:
            return record
        asked = ("suspend", deployment_id, host.host_id)
        if asked in self._asked:
            return record
        try:
            response = self._hosts.call(host, "POST", f"/deployments/{deployment_id}/suspend")
        except HostUnreachable as error:
            logger.warning("Pipeline %s could not be suspended yet: %s", record.name, error)
            return record
        if not response.is_success:
            problem = errors.of_host(response.status_code, response.text)
            # It may have ended by itself in the meantime, which its transitions then show.
            seen = self._observation.observe(record)
            return (
                seen if seen.deployment_resources_status is ResourcesStatus.STOPPING else self._commits.fail(seen, problem.body())
            )
        self._asked.add(asked)
        return record

    def take_down(self, record: PipelineRecord) -> PipelineRecord:
        """Release the resources of an incarnation that ends."""
        host = None if record.host_id is None else self._registry.get(record.host_id)
        deployment_id = record.deployment_id
        if host is not None and deployment_id is not None:
            try:
                if not self._release_or_take_down(record, host, deployment_id):
                    return record
            except Problem as error:
                # A refusal does not cancel the stop: the host is asked again.
                logger.warning("The host of pipeline %s did not take it down: %s", record.name, error)
                return record
            record = self._observation.observe(record)
            self._asked -= {asked for asked in self._asked if asked[1] == deployment_id}
        stopped = self._commits.commit(record, [incarnation.complete_stop(record, datetime.now(UTC))])
        self._store.forget_ended_transitions()
        return stopped

    def _release_or_take_down(self, record: PipelineRecord, host: HostRecord, deployment_id: UUID) -> bool:
        deployer = self._deployers.get(record.deployer) or self._deployers.of_kind(host.kind)
        last = self._registry.transitions(deployment_id, record.consumed_sequence - 1)
        suspended = bool(last) and last[-1].status is RuntimeStatus.SUSPENDED
        age = (datetime.now(UTC) - record.deployment_resources_status_since).total_seconds()
        if age > TAKE_DOWN_LIMIT_S and host.ended_at is None:
            self._insist(record, host, deployment_id)
        if suspended and age <= TAKE_DOWN_LIMIT_S:
            return deployer.release(host, deployment_id)
        return deployer.take_down(host, deployment_id)

    def _insist(self, record: PipelineRecord, host: HostRecord, deployment_id: UUID) -> None:
        """End a host that has nothing else to do; a shared one is waited for, which is noted once in the pipeline's log."""
        if host.kind != SHARED:
            logger.warning("Host %s does not let go of pipeline %s and is ended", host.host_id, record.name)
            self._hosts.end(host)
            return
        told = ("told", deployment_id, host.host_id)
        if told not in self._asked:
            self._asked.add(told)
            self._commits.note(
                record,
                f"The step in progress has not ended within {TAKE_DOWN_LIMIT_S:g} s of being cancelled. It is waited for: other "
                "pipelines run on the same host, which therefore is not ended",
                "WARNING",
            )

    def clear(self, record: PipelineRecord) -> PipelineRecord:
        """Remove the storage."""
        try:
            self._files.clear(record)
        except OSError as error:
            where = error.filename or self._files.storage(record)
            message = f"The storage {where} cannot be cleared ({error.strerror or error}); it is tried again"
            if record.deployment_error is None:
                return self._commits.commit(record, [incarnation.clear_failed(record, message)])
            time.sleep(0.5)
            return record
        return self._commits.commit(record, [incarnation.complete_clear(record)])

    def _deployment(self, record: PipelineRecord, deployment_id: UUID) -> Deployment:
        return Deployment(
            deployment_id=deployment_id,
            pipeline_id=record.id,
            pipeline_name=record.name,
            source=record.source,
            program_version=record.program_version,
            runtime_config=record.runtime_config,
            storage=str(self._files.storage(record)),
            log_path=str(self._files.log(record)),
            initial=record.deployment_initial or "running",
            bootstrap_policy=record.bootstrap_policy or BootstrapPolicy.AWAIT_APPROVAL.value,
            silent_bootstrap=bool(record.silent_bootstrap),
            concurrent_bootstrap=bool(record.concurrent_bootstrap),
            from_checkpoint=record.from_checkpoint,
            newest_checkpoint=record.newest_checkpoint,
        )


def _fail_start(record: PipelineRecord, message: str) -> list[PipelineRecord]:
    now = datetime.now(UTC)
    return [
        incarnation.start_failed(
            record, deployment_error(ErrorCode.RUNNER_INTERACTION_UNREACHABLE, f"The host could not be started: {message}"), now
        )
    ]
