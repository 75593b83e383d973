"""The observation of hosts: reads their reports about incarnations, and detects lost hosts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.statuses import ResourcesStatus
from airflow_pipelines.service.deployers.base import Deployers
from airflow_pipelines.service.deployers.shared import SharedDeployer
from airflow_pipelines.service.hosts import Hosts, HostState, LogTail
from airflow_pipelines.service.lifecycle import incarnation
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.reconcile.commits import ATTEMPTS, Commits, deployment_error
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord
from airflow_pipelines.service.store import Conflict

DEFAULT_PROVISIONING_TIMEOUT_S = 600.0

_LOSSES = frozenset({ErrorCode.HOST_LOST, ErrorCode.AUTOMATON_PROVISIONING_TIMEOUT})


class HostObserver:
    """An observer of hosts, which updates the records of their pipelines.

    :param commits: the writer of the observations
    :param hosts: the hosts of the store
    :param deployers: the deployers, by name
    :param shared: the deployer of the shared host
    :param files: the logs of pipelines
    """

    def __init__(self, commits: Commits, hosts: Hosts, deployers: Deployers, shared: SharedDeployer, files: PipelineFiles) -> None:
        self._commits = commits
        self._hosts = hosts
        self._registry = hosts.registry
        self._deployers = deployers
        self._shared = shared
        self._files = files

    def observe(self, record: PipelineRecord) -> PipelineRecord:
        """Apply everything that happened to the pipeline since the last look. Quick; every read calls it."""
        for _ in range(ATTEMPTS):
            try:
                observed = self._commits.commit(record, self._compute_steps(record))
            except Conflict:
                record = self._commits.reload(record)
                continue
            if record.deployment_id is not None and observed.consumed_sequence > record.consumed_sequence:
                # The last one is kept: taking the pipeline down reads how its incarnation ended.
                self._registry.forget_transitions(record.deployment_id, below=observed.consumed_sequence)
            error = observed.deployment_error
            if error is not None and record.deployment_error is None and error["error_code"] in _LOSSES:
                self._commits.tell(observed, error)
            return observed
        return record

    def _compute_steps(self, record: PipelineRecord) -> list[PipelineRecord]:
        now = datetime.now(UTC)
        steps = [record]

        def step(following: PipelineRecord) -> None:
            if following != steps[-1]:
                steps.append(following)

        waits = record.deployment_resources_desired_status is ResourcesStatus.PROVISIONED
        if record.deployment_resources_status is ResourcesStatus.STOPPED:
            if waits and record.program_status in COMPILE_ERRORS:
                step(incarnation.give_up_early_start(record, now))
            return steps[1:]
        # The host's state is read first, so that transitions it recorded before it died still count.
        loss = self._find_loss(record, now)
        if record.deployment_id is not None:
            for transition in self._registry.transitions(record.deployment_id, record.consumed_sequence):
                step(incarnation.observe(steps[-1], transition, now))
        if loss is not None and steps[-1].deployment_resources_desired_status is ResourcesStatus.PROVISIONED:
            again = loss["error_code"] == ErrorCode.HOST_LOST and self._may_place_again(steps[-1])
            step(incarnation.place_again(steps[-1]) if again else incarnation.fail(steps[-1], loss, now))
        stopping = steps[-1].deployment_resources_desired_status is ResourcesStatus.STOPPED
        if stopping and steps[-1].deployment_resources_status is not ResourcesStatus.STOPPING:
            step(incarnation.stopping(steps[-1], now))
        return steps[1:]

    def _find_loss(self, record: PipelineRecord, now: datetime) -> dict[str, Any] | None:
        """Return the deployment error of an incarnation whose host is lost or does not come up; None otherwise."""
        if record.deployment_resources_status is ResourcesStatus.STOPPING:
            return None
        host = None if record.host_id is None else self._registry.get(record.host_id)
        if host is not None:
            health = self._hosts.look_after(host)
            if health.state is HostState.LOST:
                return self._describe_lost_host(record, host, health.reason)
        if record.deployment_resources_status is ResourcesStatus.PROVISIONING and record.provisioning_since is not None:
            limit = record.runtime_config.get("provisioning_timeout_secs") or DEFAULT_PROVISIONING_TIMEOUT_S
            if (now - record.provisioning_since).total_seconds() > limit:
                tail = self._log_tail(record)
                return deployment_error(
                    ErrorCode.AUTOMATON_PROVISIONING_TIMEOUT,
                    f"The host was not ready within {limit:g} s (provisioning_timeout_secs){tail}",
                    {"timeout_secs": limit, "log": tail.lines},
                )
        return None

    def _may_place_again(self, record: PipelineRecord) -> bool:
        """Return True if a lost host has cost only time: the incarnation had not begun, and the host was the shared one."""
        begun = record.deployment_resources_status is not ResourcesStatus.PROVISIONING
        return not begun and self._deployers.get(record.deployer) is self._shared

    def _describe_lost_host(self, record: PipelineRecord, host: HostRecord, reason: str) -> dict[str, Any]:
        tail = self._log_tail(record)
        return deployment_error(
            ErrorCode.HOST_LOST,
            f"The host of the pipeline was lost: {reason}{tail}",
            {"host_id": str(host.host_id), "reason": reason, "log": tail.lines},
        )

    def _log_tail(self, record: PipelineRecord) -> LogTail:
        return self._hosts.log_tail(record.host_id, self._files.log(record))
