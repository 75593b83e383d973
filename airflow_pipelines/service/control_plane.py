"""The control plane without HTTP: all requests about pipelines and to pipelines."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from sqlalchemy import Engine
from uuid6 import uuid7

from airflow_pipelines.common.database import DatabaseError, open_database
from airflow_pipelines.common.private_files import make_private_folder, make_private_tree
from airflow_pipelines.common.secret_files import SecretError, SecretFiles
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.program_versions import ProgramChange
from airflow_pipelines.contract.registry import HostRecord, Registry
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service import edits, errors
from airflow_pipelines.service.api_keys import ApiKeys
from airflow_pipelines.service.background import BackgroundReconciler
from airflow_pipelines.service.cluster import ClusterHealth
from airflow_pipelines.service.compiling import ProgramCompiler
from airflow_pipelines.service.configs import without_effect
from airflow_pipelines.service.deployers.base import DedicatedHosts, Deployer, Deployers
from airflow_pipelines.service.deployers.dedicated import DedicatedDeployer
from airflow_pipelines.service.deployers.launch import Launcher
from airflow_pipelines.service.deployers.shared import SharedDeployer
from airflow_pipelines.service.deployers.submit import LocalSubmitter
from airflow_pipelines.service.hosts import Hosts, HostTimeout, HostUnreachable
from airflow_pipelines.service.leases import Leases
from airflow_pipelines.service.lifecycle import compilation, incarnation, requests
from airflow_pipelines.service.lifecycle.requests import BootstrapFlags, RuntimeAction, StartRequest
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.reconcile.reconciler import Reconciler
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.replacing import Replacement
from airflow_pipelines.service.secrets import PipelineSecrets
from airflow_pipelines.service.store import Conflict, Event, Store
from airflow_pipelines.service.version import platform_version

logger = logging.getLogger(__name__)

APPROVAL_WAIT_S = 60.0
TESTING: Final = "testing"
"""The unstable feature that lets clients pretend a state."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a runtime call."""

    record: PipelineRecord
    host: HostRecord

    @property
    def path(self) -> str:
        """The path of the incarnation on its host."""
        return f"/deployments/{self.record.deployment_id}"


class ControlPlane:
    """The view of one service process on a store. All methods are thread-safe and short, unless documented otherwise."""

    def __init__(self, settings: Settings, dedicated: DedicatedHosts | None = None) -> None:
        self.settings = settings
        try:
            engine = open_database(settings.database_url)
            make_private_folder(settings.home)
            make_private_tree(settings.logs)
            make_private_tree(settings.storage)
        except DatabaseError as error:
            raise Problem(ErrorCode.STORE_UNAVAILABLE, str(error)) from error
        except OSError as error:
            raise Problem(
                ErrorCode.STORE_UNAVAILABLE,
                f"The folder {error.filename} cannot be used ({error.strerror or error}): let this user write there, or choose "
                "another one with AIRFLOW_PIPELINES_HOME and AIRFLOW_PIPELINES_STORAGE",
            ) from error
        self.store = Store(engine)
        self.store.create_tables()
        self.api_keys = ApiKeys(engine, settings.api_keys)
        self.registry = Registry(engine)
        self.hosts = Hosts(self.registry, settings.heartbeat_timeout_s)
        self.files = PipelineFiles(settings)
        self.secrets = PipelineSecrets(SecretFiles(settings.secrets))
        self._take_stored_secrets_out()
        leases = Leases(engine)
        local = Launcher(settings, engine, LocalSubmitter())
        self.compiler = SharedDeployer(settings, self.hosts, local)
        self.deployers = self._deployers(engine, local, dedicated)
        self.programs = ProgramCompiler(self.hosts, self.compiler)
        self.reconciler = Reconciler(self.store, self.hosts, self.deployers, self.compiler, self.files)
        self.cluster = ClusterHealth(engine, self.hosts)
        self.background = BackgroundReconciler(self.store, self.reconciler, self.cluster, leases)
        self._engine = engine

    def _deployers(self, engine: Engine, local: Launcher, dedicated: DedicatedHosts | None) -> Deployers:
        settings = self.settings
        by_name: dict[str, Deployer] = {
            "shared": self.compiler,
            "dedicated": DedicatedDeployer(settings, self.hosts, local, settings.master),
        }
        default = settings.deployer
        if dedicated is not None:
            launcher = Launcher(settings, engine, dedicated.submitter)
            by_name[dedicated.name] = DedicatedDeployer(settings, self.hosts, launcher, dedicated.master)
            default = dedicated.name
        if default not in by_name:
            raise Problem(ErrorCode.INVALID_PARAM, f"There is no deployer '{default}': use one of {', '.join(sorted(by_name))}")
        return Deployers(by_name, default)

    def close(self) -> None:
        """Stop background work and release connections. Hosts and pipelines go on."""
        self.background.close()
        self.hosts.close()
        self._engine.dispose()

    # --- reading ----------------------------------------------------------------------------------------------------------------

    def pipelines(self) -> list[PipelineRecord]:
        """Return all pipelines in their present state."""
        return [seen for record in self.store.all() if (seen := self._observe_or_none(record)) is not None]

    def pipeline(self, name: str) -> PipelineRecord:
        """Return one pipeline in its present state."""
        return self._observe(self.store.require(name))

    def exists(self, pipeline_id: UUID) -> bool:
        """Return True if the pipeline has not been deleted."""
        return self.store.get(pipeline_id) is not None

    def events(self, name: str) -> list[Event]:
        """Return a pipeline's events, newest first."""
        return self.store.events(self.pipeline(name).id)

    def target(self, name: str) -> Target:
        """Return the target of runtime calls for the pipeline.

        :raises Problem: when there is none
        """
        record = self.pipeline(name)
        requests.check_deployed(record)
        host = None if record.host_id is None else self.registry.get(record.host_id)
        if host is None or host.url is None:
            raise errors.unavailable(record, "its host is not up yet")
        return Target(record, host)

    def explain_broken_call(self, name: str, why: str) -> Problem:
        """Return the Problem of a call that its host broke off, after observing the pipeline again."""
        record = self.store.require(name)
        host_id = record.host_id
        record = self._observe(record)
        return errors.unreachable(record, why, str(self.hosts.log_tail(host_id, self.files.log(record))))

    # --- changing ---------------------------------------------------------------------------------------------------------------

    def create(self, body: Any) -> PipelineRecord:
        """Create a pipeline from a POST body."""
        return self._add(edits.parse_full(body, platform_version()))

    def put(self, name: str, body: Any, *, allow_compile_errors: bool = True) -> tuple[PipelineRecord, bool]:
        """Create or replace a pipeline. A new program is compiled in the background or beforehand, as by :meth:`patch`.

        :param name: the name in the path
        :param body: the JSON body
        :param allow_compile_errors: as for :meth:`patch`
        :returns: the pipeline, and True if it was created
        :raises Problem: as :meth:`patch`
        """
        edit = edits.parse_full(body, platform_version(), default_name=name)
        record = self.store.find(name)
        if record is not None:
            return self._edit(record, edit, allow_compile_errors), False
        if edit.name != name:
            raise Problem(
                ErrorCode.CANNOT_RENAME_NON_EXISTING_PIPELINE,
                f"There is no pipeline named '{name}' that could be renamed to '{edit.name}': give the same name in path and body",
            )
        return self._add(edit), True

    def check_put(self, name: str, body: Any) -> None:
        """Check that :meth:`put` would succeed if the pipeline were stopped and its storage cleared. Changes nothing.

        :param name: the name in the path
        :param body: the JSON body
        :raises Problem: the error that :meth:`put` would raise with ``allow_compile_errors`` False
        """
        edit = edits.parse_full(body, platform_version(), default_name=name)
        emptied = requests.emptied(self.pipeline(name))
        edit = self.secrets.out_of(edit, emptied.id)
        Replacement(self.programs.compile).check(emptied, edits.apply_edit(emptied, edit, platform_version(), datetime.now(UTC)))

    def patch(self, name: str, body: Any, *, allow_compile_errors: bool = True) -> PipelineRecord:
        """Change some fields of a pipeline. A new program is compiled in the background, unless it is required to compile.

        :param name: the pipeline's name
        :param body: the fields
        :param allow_compile_errors: True to let a program that does not compile replace one that does; if False, a new program is
            compiled first, which takes a while
        :returns: the pipeline after the change
        :raises Problem: when a field is invalid or may not change now, or the program may not replace the other
        """
        return self._edit(self.pipeline(name), edits.parse_edit(body, platform_version()), allow_compile_errors)

    def delete(self, name: str) -> None:
        """Delete a stopped and cleared pipeline with its log and events."""
        while True:
            record = self.pipeline(name)
            requests.check_delete(record)
            try:
                self.store.delete(record)
            except Conflict:
                continue
            self.files.forget(record)
            self.secrets.forget(record.id)
            return

    def start(self, name: str, request: StartRequest) -> PipelineRecord:
        """Request an incarnation."""
        return self._change(name, lambda record: requests.start(record, request, datetime.now(UTC)))

    def stop(self, name: str, *, force: bool) -> PipelineRecord:
        """Request the end of the incarnation."""
        return self._change(name, lambda record: requests.stop(record, datetime.now(UTC), force=force))

    def clear(self, name: str) -> PipelineRecord:
        """Request the clearing of the storage."""
        return self._change(name, requests.clear)

    def dismiss_error(self, name: str) -> PipelineRecord:
        """Dismiss the last deployment error."""
        return self._change(name, requests.dismiss_error)

    def update_runtime(self, name: str) -> PipelineRecord:
        """Move the pipeline to this release."""
        return self._change(name, lambda record: edits.update_runtime(record, platform_version(), datetime.now(UTC)))

    def check_testing(self, name: str) -> None:
        """Check that actions for tests of clients are allowed.

        :param name: the pipeline's name
        :raises Problem: when the unstable feature ``testing`` is not enabled
        """
        self.store.require(name)
        if TESTING not in self.settings.unstable_features:
            raise Problem(
                ErrorCode.UNSUPPORTED_PIPELINE_ACTION,
                f"This is for tests of clients only: start the service with AIRFLOW_PIPELINES_UNSTABLE_FEATURES={TESTING}",
            )

    def pretend_platform_version(self, name: str, version: str) -> PipelineRecord:
        """Pretend that another release has compiled the program; call :meth:`check_testing` before.

        :param name: the pipeline's name
        :param version: the version of that release
        """
        return self._change(name, lambda record: edits.pretend_platform_version(record, version))

    def move(self, name: str, action: RuntimeAction) -> PipelineRecord:
        """Pause or resume the pipeline. The host decides; the call does not wait for the new status."""
        target = self.target(name)
        requests.check_runtime_action(target.record, action)
        self._ask(target, action.value)
        return self.pipeline(name)

    def activate(self, name: str, desired: RuntimeStatus) -> PipelineRecord:
        """Let a pipeline leave standby.

        :param name: the pipeline's name
        :param desired: running or paused
        :returns: the pipeline after the call
        :raises Problem: when it is not in standby
        """
        target = self.target(name)
        requests.check_runtime_action(target.record, RuntimeAction.ACTIVATE)
        self._ask(target, f"{RuntimeAction.ACTIVATE.value}?initial={desired.value}")
        return self.pipeline(name)

    def approve(self, name: str, flags: BootstrapFlags, expected: ProgramChange | None = None) -> PipelineRecord:
        """Approve the change that a pipeline waits with, and wait up to a minute until the pipeline goes on.

        :param name: the pipeline's name
        :param flags: the options for evaluating the changed views; they replace those of the start
        :param expected: the programs that the approval is for; None for any waiting change
        :returns: the pipeline after the call
        :raises Problem: 412 when the programs differ; nothing is approved then
        """
        record = self.pipeline(name)
        requests.check_deployed(record)
        if expected is not None:
            # Checked even if nothing waits any more: another client may have approved another program.
            requests.check_program(record, expected)
        if record.deployment_runtime_status is not RuntimeStatus.AWAITING_APPROVAL:
            return record
        query = urlencode({"silent_bootstrap": flags.silent, "concurrent_bootstrap": flags.concurrent})
        # The host compares again when it approves, since only it knows the program of the saved state.
        target = self.target(name)
        answer = self._ask(target, f"approve?{query}", None if expected is None else {"programs": expected.to_wire()})
        if answer["approved"]:
            incarnation_id = target.record.deployment_id
            record = self._change(name, lambda current: requests.approve(current, incarnation_id, flags))
        deadline = time.monotonic() + APPROVAL_WAIT_S
        while record.deployment_runtime_status is RuntimeStatus.AWAITING_APPROVAL and time.monotonic() < deadline:
            time.sleep(0.02)
            record = self.pipeline(name)
        return record

    # --- inside -----------------------------------------------------------------------------------------------------------------

    def _add(self, edit: edits.PipelineEdit) -> PipelineRecord:
        pipeline_id = uuid7()
        try:
            record = edits.new_record(self.secrets.out_of(edit, pipeline_id), pipeline_id, platform_version(), datetime.now(UTC))
            self.store.create(record)
        except Exception:
            self.secrets.forget(pipeline_id)
            raise
        self.files.note(record, "The pipeline was created")
        self._tell_without_effect(record)
        self.background.wake(record.id)
        return record

    def _edit(self, record: PipelineRecord, edit: edits.PipelineEdit, allow_compile_errors: bool) -> PipelineRecord:
        replacement = Replacement(self.programs.compile)
        edit = self.secrets.out_of(edit, record.id)

        def steps(current: PipelineRecord) -> list[PipelineRecord]:
            edited = edits.apply_edit(current, edit, platform_version(), datetime.now(UTC))
            compiled = None if allow_compile_errors else replacement.check(current, edited)
            if compiled is None or compiled.program_info is None:
                return [edited]
            # It is compiled already.
            now = datetime.now(UTC)
            claimed = compilation.claim_compilation(edited, now)
            return [edited, claimed, *compilation.remaining_steps(claimed, compiled.program_info, compiled.messages, now)]

        edited = self.reconciler.commits.change_in_steps(self._observe(record), steps)
        self.secrets.forget_unused(edited)
        if edited.runtime_config != record.runtime_config:
            self._tell_without_effect(edited)
        return self._after(edited)

    def _take_stored_secrets_out(self) -> None:
        """Move secrets that an earlier release wrote into the store out of it."""
        for record in self.store.all():
            try:
                without = self.secrets.out_of_stored(record)
            except SecretError as error:
                logger.warning("Secrets of pipeline %s stay in the store: %s", record.name, error)
                continue
            if without is not record:
                # If the pipeline is changed at this moment, the next service process does it.
                with suppress(Conflict):
                    self.store.commit(record, [without])

    def _tell_without_effect(self, record: PipelineRecord) -> None:
        """Write the settings that have no effect into the pipeline's log."""
        lines = without_effect(record.runtime_config)
        if lines:
            self.files.note(record, "\n".join(lines), "WARNING")

    def _change(self, name: str, action: Any) -> PipelineRecord:
        return self._after(self.reconciler.commits.change(self.pipeline(name), action))

    def _after(self, record: PipelineRecord) -> PipelineRecord:
        if not incarnation.at_rest(record):
            self.background.wake(record.id)
        return record

    def _observe(self, record: PipelineRecord) -> PipelineRecord:
        return self._after(self.reconciler.observe(record))

    def _observe_or_none(self, record: PipelineRecord) -> PipelineRecord | None:
        try:
            return self._observe(record)
        except Problem as problem:
            if problem.code is ErrorCode.UNKNOWN_PIPELINE_NAME:
                return None
            raise
        except (ValueError, TypeError, KeyError, AttributeError):
            # Its host's records are invalid; the other pipelines can still be listed.
            logger.exception("Pipeline %s cannot be brought up to date and is listed as the store has it", record.name)
            return record

    def _ask(self, target: Target, verb: str, body: Any = None) -> Any:
        try:
            response = self.hosts.call(target.host, "POST", f"{target.path}/{verb}", json=body, timeout_s=APPROVAL_WAIT_S + 5)
        except HostTimeout as error:
            raise errors.too_slow(target.record, str(error)) from error
        except HostUnreachable as error:
            raise self.explain_broken_call(target.record.name, str(error)) from error
        if not response.is_success:
            raise errors.of_host(response.status_code, response.text)
        return response.json()
