"""Moves pipelines on: takes in what hosts recorded, notices hosts that died, and does the next thing that has to be done.

Truth is in the store only. Whatever is done here may be done by any service process, may be cut off anywhere by a kill, and is then
taken up by whoever looks next: every step is a compare-and-swap, every call to a host may be repeated.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.contract.deployment import Deployment, RuntimeStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import SHARED, HostRecord, Registry
from airflow_pipelines.engine.storage.errors import storage_error
from airflow_pipelines.host.storage_problems import storage_problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.compiling import COMPILE_ATTEMPTS, COMPILE_TIMEOUT_S, compile_on, is_lost_compiler
from airflow_pipelines.service.deployers.base import Deployers, SubmitError
from airflow_pipelines.service.deployers.shared import SharedDeployer
from airflow_pipelines.service.hosts import Hosts, HostState, HostUnreachable, LogTail
from airflow_pipelines.service.lifecycle import compilation, incarnation, requests
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord, ProgramStatus, ResourcesStatus, StorageStatus
from airflow_pipelines.service.store import Conflict, Store

DEFAULT_PROVISIONING_TIMEOUT_S = 600.0
CLAIM_LIMIT_S = COMPILE_TIMEOUT_S + 10.0
"""A compilation claimed longer ago than this was abandoned by a process that died."""
TAKE_DOWN_LIMIT_S = 30.0
"""A host of its own that does not let go of an incarnation for this long is ended. A shared one never is: others run there."""

_LOSSES = frozenset({ErrorCode.HOST_LOST, ErrorCode.AUTOMATON_PROVISIONING_TIMEOUT})

logger = logging.getLogger(__name__)


class Reconciler:
    """Advances the pipelines of one store."""

    def __init__(self, store: Store, hosts: Hosts, deployers: Deployers, compiler: SharedDeployer, files: PipelineFiles) -> None:
        self._store = store
        self._hosts = hosts
        self._registry: Registry = hosts.registry
        self._deployers = deployers
        self._compiler = compiler
        self._files = files
        # What this process has already asked of hosts, by incarnation and host; after a crash it is asked again.
        self._lost_compilers: Counter[tuple[UUID, int]] = Counter()
        self._asked: set[tuple[str, UUID, UUID | None]] = set()

    def change(self, record: PipelineRecord, action: Callable[[PipelineRecord], PipelineRecord]) -> PipelineRecord:
        """Apply ``action`` to the newest state of the pipeline, again and again until nobody interferes."""
        return self.change_in_steps(record, lambda current: [action(current)])

    def change_in_steps(self, record: PipelineRecord, action: Callable[[PipelineRecord], list[PipelineRecord]]) -> PipelineRecord:
        """The same for an ``action`` of several steps, each of which is an event."""
        for _ in range(100):
            try:
                return self._store.commit(record, action(record))
            except Conflict:
                record = self._reload(record)
        raise Problem(ErrorCode.LOCK_TOOK_TOO_LONG, f"Pipeline '{record.name}' changes too often to be changed. Try again")

    def observe(self, record: PipelineRecord) -> PipelineRecord:
        """Take in what happened to the pipeline since it was last looked at. Quick; every read calls it."""
        for _ in range(100):
            try:
                observed = self._store.commit(record, self._observed(record))
            except Conflict:
                record = self._reload(record)
                continue
            if record.deployment_id is not None and observed.consumed_sequence > record.consumed_sequence:
                # The last one stays: a pipeline that is taken down is asked how its incarnation ended.
                self._registry.forget_transitions(record.deployment_id, below=observed.consumed_sequence)
            error = observed.deployment_error
            if error is not None and record.deployment_error is None and error["error_code"] in _LOSSES:
                self._tell(observed, error)
            return observed
        return record

    def look_after_hosts(self) -> None:
        """End hosts that are lost, also those of which no pipeline would find out. Quick."""
        for host in self._registry.live_hosts():
            self._hosts.look_after(host)

    def drive(self, record: PipelineRecord) -> PipelineRecord:
        """Do the next thing for the pipeline, if there is one, and return what it became.

        May take as long as a compilation. Raises :class:`Conflict` when another process was quicker.
        """
        now = _now()
        if self._wants_compiler(record, now):
            return self._compile(record)
        if record.storage_status is StorageStatus.CLEARING:
            return self._clear(record)
        resources, desired = record.deployment_resources_status, record.deployment_resources_desired_status
        if resources is ResourcesStatus.STOPPING:
            return self._take_down(record)
        if desired is ResourcesStatus.PROVISIONED:
            if resources is ResourcesStatus.STOPPED and record.program_status is ProgramStatus.SUCCESS:
                return self._provision(record)
            if resources is ResourcesStatus.PROVISIONING:
                return self._deploy(record)
            if resources is ResourcesStatus.PROVISIONED and record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED:
                return self._suspend(record)
        return record

    # --- looking ----------------------------------------------------------------------------------------------------------------

    def _observed(self, record: PipelineRecord) -> list[PipelineRecord]:
        now = _now()
        steps = [record]

        def step(following: PipelineRecord) -> None:
            if following != steps[-1]:
                steps.append(following)

        waits = record.deployment_resources_desired_status is ResourcesStatus.PROVISIONED
        if record.deployment_resources_status is ResourcesStatus.STOPPED:
            if waits and record.program_status in COMPILE_ERRORS:
                step(incarnation.give_up_early_start(record, now))
            return steps[1:]
        # The host's state first: what it recorded before it died is read after that and still counts.
        loss = self._loss(record, now)
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

    def _loss(self, record: PipelineRecord, now: datetime) -> dict[str, Any] | None:
        """The deployment error of an incarnation whose host is lost or does not come up."""
        if record.deployment_resources_status is ResourcesStatus.STOPPING:
            return None
        host = None if record.host_id is None else self._registry.get(record.host_id)
        if host is not None:
            health = self._hosts.look_after(host)
            if health.state is HostState.LOST:
                return self._host_lost(record, host, health.reason)
        if record.deployment_resources_status is ResourcesStatus.PROVISIONING and record.provisioning_since is not None:
            limit = record.runtime_config.get("provisioning_timeout_secs") or DEFAULT_PROVISIONING_TIMEOUT_S
            if (now - record.provisioning_since).total_seconds() > limit:
                tail = self._log_tail(record)
                return _error(
                    ErrorCode.AUTOMATON_PROVISIONING_TIMEOUT,
                    f"The host was not ready within {limit:g} s (provisioning_timeout_secs){tail}",
                    {"timeout_secs": limit, "log": tail.lines},
                )
        return None

    def _may_place_again(self, record: PipelineRecord) -> bool:
        """Whether the loss of a host has cost nothing but time: the incarnation had not begun, and the host was not its own."""
        begun = record.deployment_resources_status is not ResourcesStatus.PROVISIONING
        return not begun and self._deployers.get(record.deployer) is self._compiler

    def _host_lost(self, record: PipelineRecord, host: HostRecord, reason: str) -> dict[str, Any]:
        tail = self._log_tail(record)
        return _error(
            ErrorCode.HOST_LOST,
            f"The host of the pipeline was lost: {reason}{tail}",
            {"host_id": str(host.host_id), "reason": reason, "log": tail.lines},
        )

    def _log_tail(self, record: PipelineRecord) -> LogTail:
        return self._hosts.log_tail(record.host_id, self._files.log(record))

    # --- compiling --------------------------------------------------------------------------------------------------------------

    def _wants_compiler(self, record: PipelineRecord, now: datetime) -> bool:
        if record.program_status is ProgramStatus.PENDING:
            return True
        unfinished = record.program_status in {
            ProgramStatus.COMPILING_SQL,
            ProgramStatus.SQL_COMPILED,
            ProgramStatus.COMPILING_RUST,
        }
        claimed = record.compile_claimed_at
        return unfinished and (claimed is None or (now - claimed).total_seconds() > CLAIM_LIMIT_S)

    def _compile(self, record: PipelineRecord) -> PipelineRecord:
        # The claim comes after the host is there, so that nobody holds one while a host starts.
        try:
            host = self._compiler.host()
        except SubmitError as error:
            return self._store.commit(record, [compilation.compiler_failed(record, str(error), _now())])
        if host is None:
            return record
        record = self._store.commit(record, [compilation.claim_compilation(record, _now())])
        try:
            result = compile_on(self._hosts, host, record)
        except HostUnreachable as error:
            logger.warning("The compiler of pipeline %s went away: %s", record.name, error)
            program = (record.id, record.program_version)
            self._lost_compilers[program] += 1
            if is_lost_compiler(error) and self._lost_compilers[program] < COMPILE_ATTEMPTS:
                return self._finish(record, lambda current: [compilation.reset_program(current, _now())])
            del self._lost_compilers[program]
            return self._compiler_failed(record, f"The compiling host was lost: {error}. Its log is {host.log_path}")
        except Problem as error:
            return self._compiler_failed(record, f"{error.code}: {error.message}")
        self._lost_compilers.pop((record.id, record.program_version), None)
        info = result.program_info
        if info is None:
            return self._finish(record, lambda r: [compilation.sql_failed(r, result.messages, _now())])
        return self._finish(record, lambda current: compilation.remaining_steps(current, info, result.messages, _now()))

    def _compiler_failed(self, record: PipelineRecord, message: str) -> PipelineRecord:
        return self._finish(record, lambda current: [compilation.compiler_failed(current, message, _now())])

    def _finish(self, claimed: PipelineRecord, steps: Callable[[PipelineRecord], list[PipelineRecord]]) -> PipelineRecord:
        """Write a compilation's result unless the program is another one by now, or somebody else took over."""
        record = claimed
        while True:
            same = (record.program_version, record.compile_claimed_at) == (claimed.program_version, claimed.compile_claimed_at)
            if not same or record.program_status is not ProgramStatus.COMPILING_SQL:
                return record
            try:
                return self._store.commit(record, steps(record))
            except Conflict:
                record = self._reload(record)

    # --- deploying --------------------------------------------------------------------------------------------------------------

    def _provision(self, record: PipelineRecord) -> PipelineRecord:
        deployer = self._deployers.get(record.deployer)
        if deployer is None:
            return record
        deployment = self._deployment(record, uuid7())
        config = deployment.model_dump(mode="json", exclude={"source"})
        used = incarnation.use_storage(record)
        try:
            host_id = deployer.place()
        except SubmitError as error:
            return self._store.commit(record, _failed_start(record, str(error)))
        provisioning = incarnation.provision(used, deployment.deployment_id, host_id, config, _now())
        return self._store.commit(record, [used, provisioning])

    def _deploy(self, record: PipelineRecord) -> PipelineRecord:
        deployer = self._deployers.get(record.deployer)
        deployment_id = record.deployment_id
        asked = ("deploy", deployment_id or record.id, record.host_id)
        if deployer is None or deployment_id is None or asked in self._asked:
            return record
        try:
            if record.host_id is None:
                host_id = deployer.place()
                return record if host_id is None else self._store.commit(record, [replace(record, host_id=host_id)])
            self._files.create(record)
            deployer.deploy(record.host_id, self._deployment(record, deployment_id))
        except SubmitError as error:
            return self._failed(record, _error(ErrorCode.RUNNER_INTERACTION_UNREACHABLE, f"The host could not be started: {error}"))
        except OSError as error:
            problem = storage_problem(storage_error(self._files.storage(record), error), record.name)
            return self._failed(record, problem.body())
        except Problem as error:
            return self._failed(record, error.body())
        except HostUnreachable as error:
            logger.warning("Pipeline %s could not be handed to its host yet: %s", record.name, error)
            return record
        self._asked.add(asked)
        return record

    def _suspend(self, record: PipelineRecord) -> PipelineRecord:
        deployment_id = record.deployment_id
        host = None if record.host_id is None else self._registry.get(record.host_id)
        if deployment_id is None or host is None:
            return record
        # Each stop is asked for once: one that the host gave up may be followed by another.
        asked = (f"suspend of {record.deployment_runtime_desired_status_since}", deployment_id, host.host_id)
        if asked in self._asked:
            return record
        try:
            response = self._hosts.call(host, "POST", f"/deployments/{deployment_id}/suspend")
        except HostUnreachable as error:
            logger.warning("Pipeline %s could not be suspended yet: %s", record.name, error)
            return record
        if not response.is_success:
            problem = errors.of_host(response.status_code, response.text)
            # It may have ended by itself in the meantime, which its transitions then say.
            seen = self.observe(record)
            return seen if seen.deployment_resources_status is ResourcesStatus.STOPPING else self._failed(seen, problem.body())
        self._asked.add(asked)
        return record

    def _take_down(self, record: PipelineRecord) -> PipelineRecord:
        host = None if record.host_id is None else self._registry.get(record.host_id)
        deployment_id = record.deployment_id
        if host is not None and deployment_id is not None:
            try:
                if not self._gone(record, host, deployment_id):
                    return record
            except Problem as error:
                # Saying no does not stop the stopping: the host is asked again.
                logger.warning("The host of pipeline %s did not take it down: %s", record.name, error)
                return record
            record = self.observe(record)
            self._asked -= {asked for asked in self._asked if asked[1] == deployment_id}
        stopped = self._store.commit(record, [incarnation.stopped(record, _now())])
        self._store.forget_ended_transitions()
        return stopped

    def _gone(self, record: PipelineRecord, host: HostRecord, deployment_id: UUID) -> bool:
        deployer = self._deployers.get(record.deployer) or self._deployers.of_kind(host.kind)
        last = self._registry.transitions(deployment_id, record.consumed_sequence - 1)
        suspended = bool(last) and last[-1].status is RuntimeStatus.SUSPENDED
        age = (_now() - record.deployment_resources_status_since).total_seconds()
        if age > TAKE_DOWN_LIMIT_S and host.ended_at is None:
            self._insist(record, host, deployment_id)
        if suspended and age <= TAKE_DOWN_LIMIT_S:
            return deployer.release(host, deployment_id)
        return deployer.take_down(host, deployment_id)

    def _insist(self, record: PipelineRecord, host: HostRecord, deployment_id: UUID) -> None:
        """End a host that has nothing else to do; what runs on a shared one is waited for, which the pipeline's log says once."""
        if host.kind != SHARED:
            logger.warning("Host %s does not let go of pipeline %s and is ended", host.host_id, record.name)
            self._hosts.end(host)
            return
        told = ("told", deployment_id, host.host_id)
        if told not in self._asked:
            self._asked.add(told)
            self._note(
                record,
                f"The step in progress has not ended within {TAKE_DOWN_LIMIT_S:g} s of being cancelled. It is waited for: other "
                "pipelines run on the same host, which therefore is not ended",
                "WARNING",
            )

    def _clear(self, record: PipelineRecord) -> PipelineRecord:
        try:
            self._files.clear(record)
        except OSError as error:
            where = error.filename or self._files.storage(record)
            message = f"The storage {where} cannot be cleared ({error.strerror or error}); it is tried again"
            if record.deployment_error is None:
                return self._store.commit(record, [incarnation.clear_failed(record, message)])
            time.sleep(0.5)
            return record
        return self._store.commit(record, [incarnation.cleared(record)])

    def _tell(self, record: PipelineRecord, error: dict[str, Any]) -> None:
        """Write an error into the pipeline's log, for those who follow it: the host cannot do so any more."""
        # Its own last lines stand right before it.
        message = error["message"].partition("\nThe last lines of the pipeline's log:")[0]
        self._note(record, f"{error['error_code']}: {message}", "ERROR")

    def _note(self, record: PipelineRecord, message: str, level: str) -> None:
        try:
            self._files.note(record, message, level)
        except OSError as failure:
            logger.warning("The log of pipeline %s cannot be written: %s", record.name, failure)

    def _failed(self, record: PipelineRecord, error: dict[str, Any]) -> PipelineRecord:
        self._tell(record, error)
        return self.change(record, lambda current: incarnation.fail(current, error, _now()))

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
            bootstrap_policy=record.bootstrap_policy or requests.BootstrapPolicy.AWAIT_APPROVAL.value,
            silent_bootstrap=bool(record.silent_bootstrap),
            from_checkpoint=record.from_checkpoint,
            newest_checkpoint=record.newest_checkpoint,
        )

    def _reload(self, record: PipelineRecord) -> PipelineRecord:
        newest = self._store.get(record.id)
        if newest is None:
            raise errors.unknown_pipeline(record.name)
        return newest


def _failed_start(record: PipelineRecord, message: str) -> list[PipelineRecord]:
    now = _now()
    return [
        incarnation.start_failed(
            record, _error(ErrorCode.RUNNER_INTERACTION_UNREACHABLE, f"The host could not be started: {message}"), now
        )
    ]


def _error(code: ErrorCode, message: str, details: Any = None) -> dict[str, Any]:
    return {"message": message, "error_code": code.value, "details": details or {}}


def _now() -> datetime:
    return datetime.now(UTC)
