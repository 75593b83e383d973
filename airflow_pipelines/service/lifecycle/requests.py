"""The requests of users to a pipeline: start, stop, clear its storage, dismiss its error; and the states that forbid them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from airflow_pipelines.contract.enums import BootstrapPolicy, StorageStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.program_versions import ProgramChange, ProgramVersion, unexpected_program
from airflow_pipelines.contract.statuses import CompilationStatus, ResourcesStatus, RuntimeStatus
from airflow_pipelines.service import errors
from airflow_pipelines.service.lifecycle.changes import desire_stopped, forget_start
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord


class Initial(StrEnum):
    """The initial status of a started pipeline."""

    RUNNING = "running"
    PAUSED = "paused"
    STANDBY = "standby"


class RuntimeAction(StrEnum):
    """The calls that change the status of a live pipeline."""

    PAUSE = "pause"
    RESUME = "resume"
    ACTIVATE = "activate"


@dataclass(frozen=True, slots=True)
class BootstrapFlags:
    """The options for evaluating changed views, as given with a start or an approval."""

    silent: bool = False
    concurrent: bool = False

    def check(self) -> None:
        """Check that the flags do not exclude each other.

        :raises Problem: when both are set
        """
        if self.silent and self.concurrent:
            raise Problem(
                ErrorCode.INVALID_BOOTSTRAP_CONFIG, "silent_bootstrap and concurrent_bootstrap exclude each other: give one of them"
            )


@dataclass(frozen=True, slots=True)
class StartRequest:
    """The parameters of a start.

    :param deployer: the name of the deployer that should carry it out
    :param from_checkpoint: an older checkpoint to go back to
    """

    initial: Initial = Initial.RUNNING
    policy: BootstrapPolicy = BootstrapPolicy.AWAIT_APPROVAL
    flags: BootstrapFlags = BootstrapFlags()
    dismiss_error: bool = True
    deployer: str = "shared"
    from_checkpoint: UUID | None = None


def start(record: PipelineRecord, request: StartRequest, now: datetime) -> PipelineRecord:
    """Request an incarnation. Repeating the same start is a no-op while it starts or runs.

    :param record: the pipeline
    :param request: the parameters of the start
    :param now: the time of the request
    :raises Problem: when the pipeline's state or the request does not allow it
    """
    request.flags.check()
    if request.initial is Initial.STANDBY:
        _check_standby(record, request)
    if record.deployment_resources_desired_status is ResourcesStatus.PROVISIONED:
        return _start_again(record, request)
    if record.deployment_resources_status is not ResourcesStatus.STOPPED:
        raise errors.restricted(
            ErrorCode.ILLEGAL_PIPELINE_ACTION,
            record,
            "It cannot start while it is stopping",
            "Wait until its status is Stopped, then start it",
        )
    if record.storage_status is StorageStatus.CLEARING:
        raise errors.restricted(
            ErrorCode.CANNOT_START_WHILE_CLEARING_STORAGE,
            record,
            "It cannot start while its storage is being cleared",
            "Wait until it is Cleared",
        )
    if record.program_status in COMPILE_ERRORS:
        cure = "correct the program and start again"
        if record.program_status is CompilationStatus.SYSTEM_ERROR:
            cure = "put that right, send the program again (modify) and start"
        raise errors.restricted(
            ErrorCode.CANNOT_START_WITH_COMPILATION_ERROR,
            record,
            f"It cannot start because its program did not compile ({record.program_status})",
            f"{_compile_error(record)}; {cure}",
        )
    if record.deployment_error is not None and not request.dismiss_error:
        raise errors.restricted(
            ErrorCode.CANNOT_START_WITH_UNDISMISSED_ERROR,
            record,
            f"It cannot start before its last error is dismissed ({record.deployment_error.get('message', '')})",
            "Call dismiss_error first, or start with dismiss_error=true",
        )
    return replace(
        record,
        deployment_error=None,
        deployment_resources_desired_status=ResourcesStatus.PROVISIONED,
        deployment_resources_desired_status_since=now,
        deployment_initial=request.initial.value,
        bootstrap_policy=request.policy.value,
        silent_bootstrap=request.flags.silent,
        concurrent_bootstrap=request.flags.concurrent,
        deployer=request.deployer,
        from_checkpoint=request.from_checkpoint,
    )


def _compile_error(record: PipelineRecord) -> str:
    """Return the first error of the program, with its place."""
    error = record.program_error or {}
    if error.get("system_error"):
        return f"See program_error ({error['system_error']})"
    for message in (error.get("sql_compilation") or {}).get("messages") or []:
        if not message.get("warning"):
            line, column = message.get("start_line_number"), message.get("start_column")
            place = f"line {line}, column {column}: " if line else ""
            return f"See program_error ({place}{message.get('message', '')})"
    return "See program_error"


def _start_again(record: PipelineRecord, request: StartRequest) -> PipelineRecord:
    if record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED:
        raise errors.restricted(
            ErrorCode.ILLEGAL_PIPELINE_ACTION,
            record,
            "It cannot start while it is stopping",
            "Wait until its status is Stopped, then start it",
        )
    if record.deployment_initial != request.initial.value:
        raise errors.restricted(
            ErrorCode.INITIAL_IMMUTABLE_UNLESS_STOPPED,
            record,
            f"It was started with initial={record.deployment_initial}, which cannot become {request.initial.value} now",
            "Use pause or resume, or stop it first",
        )
    stored = (record.bootstrap_policy, record.silent_bootstrap, record.concurrent_bootstrap)
    if stored != (request.policy.value, request.flags.silent, request.flags.concurrent):
        raise errors.restricted(
            ErrorCode.BOOTSTRAP_POLICY_IMMUTABLE_UNLESS_STOPPED,
            record,
            f"It was started with bootstrap_policy={stored[0]}, silent_bootstrap={stored[1]}, concurrent_bootstrap={stored[2]}",
            "Start with the same values, or stop it first",
        )
    if request.from_checkpoint is not None and record.from_checkpoint != request.from_checkpoint:
        raise errors.restricted(
            ErrorCode.FROM_CHECKPOINT_IMMUTABLE_UNLESS_STOPPED,
            record,
            f"It was started {'' if record.from_checkpoint is None else f'from checkpoint {record.from_checkpoint}, '}"
            f"and cannot go back to checkpoint {request.from_checkpoint} now",
            "Stop it first",
        )
    return record


def approve(record: PipelineRecord, deployment_id: UUID | None, flags: BootstrapFlags) -> PipelineRecord:
    """Replace the flags of the start by those of an approval.

    :param record: the pipeline
    :param deployment_id: the incarnation that awaited the approval
    :param flags: the flags of the approval
    """
    if record.deployment_id != deployment_id or record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        return record
    return replace(record, silent_bootstrap=flags.silent, concurrent_bootstrap=flags.concurrent)


def _check_standby(record: PipelineRecord, request: StartRequest) -> None:
    if request.from_checkpoint is not None:
        raise errors.invalid_param("from_checkpoint and initial=standby exclude each other: give one of them")
    backend = (record.runtime_config.get("storage") or {}).get("backend") or {}
    if backend.get("name") != "file" or not (backend.get("config") or {}).get("sync"):
        raise errors.restricted(
            ErrorCode.INITIAL_STANDBY_NOT_ALLOWED,
            record,
            "It cannot start in standby because its storage has no sync configuration",
            "Set runtime_config.storage.backend to the file backend with a sync section",
        )


def stop(record: PipelineRecord, now: datetime, *, force: bool) -> PipelineRecord:
    """Request the end of the incarnation: after a checkpoint, or at once if forced or if nothing runs yet.

    :param record: the pipeline
    :param now: the time of the request
    :param force: True to end at once, without a checkpoint
    :raises Problem: when the pipeline's state does not allow it
    """
    if record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        return record
    if record.deployment_resources_status is ResourcesStatus.STOPPED:
        return replace(forget_start(desire_stopped(record, now)), deployer=None)
    if force or record.deployment_resources_status is not ResourcesStatus.PROVISIONED:
        return desire_stopped(record, now)
    if record.deployment_runtime_status is RuntimeStatus.STANDBY:
        raise errors.restricted(
            ErrorCode.INVALID_TRANSITION,
            record,
            "A pipeline in standby cannot make a checkpoint",
            "Stop it with force=true, or activate it first",
        )
    if record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED:
        return record
    return replace(record, deployment_runtime_desired_status=RuntimeStatus.SUSPENDED, deployment_runtime_desired_status_since=now)


def clear(record: PipelineRecord) -> PipelineRecord:
    """Request the clearing of the storage; a no-op if it is cleared or being cleared."""
    if record.storage_status is not StorageStatus.INUSE:
        return record
    if not record.fully_stopped:
        raise errors.restricted(
            ErrorCode.STORAGE_STATUS_IMMUTABLE_UNLESS_STOPPED,
            record,
            "Its storage cannot be cleared",
            "Stop it and wait until it is Stopped",
        )
    return replace(
        record, storage_status=StorageStatus.CLEARING, storage_status_details=None, refresh_version=record.refresh_version + 1
    )


def dismiss_error(record: PipelineRecord) -> PipelineRecord:
    """Dismiss the last deployment error."""
    if record.deployment_error is None:
        return record
    if not record.fully_stopped:
        raise errors.restricted(
            ErrorCode.DISMISS_ERROR_RESTRICTED_TO_FULLY_STOPPED, record, "Its error cannot be dismissed", "Wait until it is Stopped"
        )
    return replace(record, deployment_error=None, refresh_version=record.refresh_version + 1)


def check_delete(record: PipelineRecord) -> None:
    """Check that the pipeline may be deleted: it must not run or have storage."""
    if not record.fully_stopped:
        raise errors.restricted(
            ErrorCode.DELETE_RESTRICTED_TO_FULLY_STOPPED, record, "It cannot be deleted", "Stop it and wait until it is Stopped"
        )
    if record.storage_status is not StorageStatus.CLEARED:
        raise errors.restricted(
            ErrorCode.DELETE_RESTRICTED_TO_CLEARED_STORAGE,
            record,
            f"It cannot be deleted because its storage is {record.storage_status.value}",
            "Clear the storage (clear) and wait until it is Cleared",
        )


def check_runtime_action(record: PipelineRecord, action: RuntimeAction) -> None:
    """Check that the state allows a pause, resume or activate; the host carries it out."""
    check_deployed(record)
    standby = record.deployment_runtime_status is RuntimeStatus.STANDBY
    if action is RuntimeAction.ACTIVATE and not standby:
        raise errors.restricted(
            ErrorCode.INVALID_TRANSITION,
            record,
            "Only a pipeline in standby can be activated",
            "Start it with initial=standby first, or resume it",
        )
    if action is not RuntimeAction.ACTIVATE and standby:
        raise errors.restricted(
            ErrorCode.INVALID_TRANSITION, record, f"A pipeline in standby cannot {action.value}", "Activate it first"
        )
    if record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED:
        raise errors.restricted(
            ErrorCode.INVALID_TRANSITION,
            record,
            f"It cannot {action.value} because it is being stopped",
            "Wait until it is Stopped, then start it",
        )


def check_deployed(record: PipelineRecord) -> None:
    """Check that there is an incarnation, and that it is not about to end."""
    provisioned = record.deployment_resources_status is ResourcesStatus.PROVISIONED
    if not provisioned or record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        raise errors.not_deployed(record)


def emptied(record: PipelineRecord) -> PipelineRecord:
    """Return the pipeline as if it were stopped and its storage cleared, to check what would be allowed then."""
    return replace(
        record,
        deployment_resources_status=ResourcesStatus.STOPPED,
        deployment_resources_desired_status=ResourcesStatus.STOPPED,
        storage_status=StorageStatus.CLEARED,
    )


def check_program(record: PipelineRecord, expected: ProgramChange) -> None:
    """Check that an approval is for the pipeline's program."""
    program = ProgramVersion.of(record.source, record.program_version)
    if not program.is_expected(expected.new):
        raise unexpected_program("The program", program, expected.new)
