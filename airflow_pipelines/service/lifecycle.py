"""The state machine: pure functions from a record and what happened to the next record, or the Problem that forbids it.

Nothing here reads a clock, a database or a host. Each function makes one step, which the store records as one event.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.contract.deployment import RuntimeStatus, RuntimeTransition
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.programs import ProgramChange, ProgramVersion, unexpected_program
from airflow_pipelines.service import errors
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord, ProgramStatus, ResourcesStatus, StorageStatus

COMPILED: Final = {"exit_code": 0, "stdout": "", "stderr": ""}
"""How the second compile stage looks when it succeeded: Spark needs no second stage, the contract shows one."""


RUST_REFUSED: Final = (
    "Functions written in Rust are not supported: programs run on Spark. Remove udf_rust and udf_toml, and write the function's "
    "expression in SQL, or the function in Python (udf_python)"
)


class BootstrapPolicy(StrEnum):
    """What to do at start when the program differs from the checkpoint's."""

    ALLOW = "allow"
    AWAIT_APPROVAL = "await_approval"
    REJECT = "reject"


class Initial(StrEnum):
    """What a started pipeline becomes."""

    RUNNING = "running"
    PAUSED = "paused"
    STANDBY = "standby"


class RuntimeAction(StrEnum):
    """Calls that move a live pipeline."""

    PAUSE = "pause"
    RESUME = "resume"
    ACTIVATE = "activate"


@dataclass(frozen=True, slots=True)
class StartRequest:
    """The parameters of a start.

    ``deployer`` is the name of the deployer that shall carry it out. ``from_checkpoint``: an older checkpoint to go back to.
    """

    initial: Initial = Initial.RUNNING
    policy: BootstrapPolicy = BootstrapPolicy.AWAIT_APPROVAL
    silent_bootstrap: bool = False
    concurrent_bootstrap: bool = False
    dismiss_error: bool = True
    deployer: str = "shared"
    from_checkpoint: UUID | None = None


# --- what users ask for -----------------------------------------------------------------------------------------------------------


def start(record: PipelineRecord, request: StartRequest, now: datetime) -> PipelineRecord:
    """Ask for an incarnation. Repeating the same start is a no-op while it starts or runs."""
    if request.silent_bootstrap and request.concurrent_bootstrap:
        raise Problem(
            ErrorCode.INVALID_BOOTSTRAP_CONFIG, "silent_bootstrap and concurrent_bootstrap exclude each other: give one of them"
        )
    if request.initial is Initial.STANDBY:
        _check_standby(record)
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
        if record.program_status is ProgramStatus.SYSTEM_ERROR:
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
        silent_bootstrap=request.silent_bootstrap,
        concurrent_bootstrap=request.concurrent_bootstrap,
        deployer=request.deployer,
        from_checkpoint=request.from_checkpoint,
    )


def _compile_error(record: PipelineRecord) -> str:
    """The first thing that is wrong with the program, with its place."""
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
    if stored != (request.policy.value, request.silent_bootstrap, request.concurrent_bootstrap):
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


def _check_standby(record: PipelineRecord) -> None:
    backend = (record.runtime_config.get("storage") or {}).get("backend") or {}
    if backend.get("name") != "file" or not (backend.get("config") or {}).get("sync"):
        raise errors.restricted(
            ErrorCode.INITIAL_STANDBY_NOT_ALLOWED,
            record,
            "It cannot start in standby because its storage has no sync configuration",
            "Set runtime_config.storage.backend to the file backend with a sync section",
        )
    raise errors.not_supported("Starting in standby")


def stop(record: PipelineRecord, now: datetime, *, force: bool) -> PipelineRecord:
    """Ask for the end of the incarnation: with a checkpoint first, or at once when forced or when nothing runs yet."""
    if record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        return record
    if record.deployment_resources_status is ResourcesStatus.STOPPED:
        return replace(_forget_start(_desire_stopped(record, now)), deployer=None)
    if force or record.deployment_resources_status is not ResourcesStatus.PROVISIONED:
        return _desire_stopped(record, now)
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
    """Ask for the storage to be cleared; a no-op when it is, or is being."""
    if record.storage_status is not StorageStatus.IN_USE:
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
    """Forget the last deployment error."""
    if record.deployment_error is None:
        return record
    if not record.fully_stopped:
        raise errors.restricted(
            ErrorCode.DISMISS_ERROR_RESTRICTED_TO_FULLY_STOPPED, record, "Its error cannot be dismissed", "Wait until it is Stopped"
        )
    return replace(record, deployment_error=None, refresh_version=record.refresh_version + 1)


def check_delete(record: PipelineRecord) -> None:
    """Refuse to delete what runs or has storage."""
    if not record.fully_stopped:
        raise errors.restricted(
            ErrorCode.DELETE_RESTRICTED_TO_FULLY_STOPPED, record, "It cannot be deleted", "Stop it and wait until it is Stopped"
        )
    if record.storage_status is not StorageStatus.CLEARED:
        raise errors.restricted(
            ErrorCode.DELETE_RESTRICTED_TO_CLEARED_STORAGE,
            record,
            f"It cannot be deleted because its storage is {record.storage_status}",
            "Clear the storage (clear) and wait until it is Cleared",
        )


def check_runtime_action(record: PipelineRecord, action: RuntimeAction) -> None:
    """Refuse a pause, resume or activate that the state does not allow; the host carries it out otherwise."""
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
    """Refuse runtime calls when there is no incarnation, or one that is about to end."""
    provisioned = record.deployment_resources_status is ResourcesStatus.PROVISIONED
    if not provisioned or record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        raise errors.not_deployed(record)


def emptied(record: PipelineRecord) -> PipelineRecord:
    """The pipeline as it would be, were it stopped and its storage cleared: to try what may be done then."""
    return replace(
        record,
        deployment_resources_status=ResourcesStatus.STOPPED,
        deployment_resources_desired_status=ResourcesStatus.STOPPED,
        storage_status=StorageStatus.CLEARED,
    )


def check_program(record: PipelineRecord, expected: ProgramChange) -> None:
    """Refuse an approval that is for another program than the pipeline's."""
    program = ProgramVersion.of(record.source, record.program_version)
    if not program.is_expected(expected.new):
        raise unexpected_program("The program", program, expected.new)


# --- compiling --------------------------------------------------------------------------------------------------------------------


def claim_compilation(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Take up the compilation of a pending program, or of one whose compiler went away."""
    return replace(_program(record, ProgramStatus.COMPILING_SQL, now), compile_claimed_at=now)


def sql_compiled(
    record: PipelineRecord, program_info: dict[str, Any], messages: list[dict[str, Any]], now: datetime
) -> PipelineRecord:
    """The program is understood; ``messages`` are warnings."""
    return replace(
        _program(record, ProgramStatus.SQL_COMPILED, now),
        program_info=program_info,
        program_error=_program_error({"exit_code": 0, "messages": messages}),
        refresh_version=record.refresh_version + 1,
    )


def compiling_second_stage(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """The contract's second compile stage, which takes no time here."""
    return _program(record, ProgramStatus.COMPILING_RUST, now)


def compiled(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """The program can run."""
    return replace(
        _program(record, ProgramStatus.SUCCESS, now),
        program_error={**(record.program_error or {}), "rust_compilation": COMPILED},
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def compilation(
    record: PipelineRecord, program_info: dict[str, Any], messages: list[dict[str, Any]], now: datetime
) -> list[PipelineRecord]:
    """All steps from a claimed compilation that understood the SQL to its end; ``messages`` are warnings."""
    first = sql_compiled(record, program_info, messages, now)
    second = compiling_second_stage(first, now)
    if record.udf_rust.strip() or record.udf_toml.strip():
        return [first, second, rust_refused(second, now)]
    return [first, second, compiled(second, now)]


def rust_refused(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """The program comes with Rust functions, which Spark cannot run; the text is repeated so that nothing of it is lost."""
    message = f"{RUST_REFUSED}. The text was:\n{record.udf_rust or record.udf_toml}"
    failed = {"exit_code": 1, "stdout": "", "stderr": message}
    return replace(
        _program(record, ProgramStatus.RUST_ERROR, now),
        program_error={**(record.program_error or {}), "rust_compilation": failed},
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def sql_failed(record: PipelineRecord, messages: list[dict[str, Any]], now: datetime) -> PipelineRecord:
    """The program is wrong."""
    error = _program_error({"exit_code": 1, "messages": messages})
    return replace(
        _program(record, ProgramStatus.SQL_ERROR, now),
        program_error=error,
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def compiler_failed(record: PipelineRecord, message: str, now: datetime) -> PipelineRecord:
    """The compiler could not do its work; the program may be right."""
    return replace(
        _program(record, ProgramStatus.SYSTEM_ERROR, now),
        program_error=_program_error(None) | {"system_error": message},
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def reset_program(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Compile again from the start."""
    return replace(_program(record, ProgramStatus.PENDING, now), program_info=None, program_error=None, compile_claimed_at=None)


def _program(record: PipelineRecord, status: ProgramStatus, now: datetime) -> PipelineRecord:
    return replace(record, program_status=status, program_status_since=now)


def _program_error(sql_compilation: dict[str, Any] | None) -> dict[str, Any]:
    return {"sql_compilation": sql_compilation, "rust_compilation": None, "system_error": None}


# --- deploying --------------------------------------------------------------------------------------------------------------------


def give_up_early_start(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """A start that waited for a compilation which failed."""
    error = {
        "message": f"The program did not compile ({record.program_status}): see program_error",
        "error_code": ErrorCode.START_FAILED_DUE_TO_FAILED_COMPILATION.value,
        "details": {"program_status": record.program_status.value},
    }
    return start_failed(record, error, now)


def start_failed(record: PipelineRecord, error: dict[str, Any], now: datetime) -> PipelineRecord:
    """A start that could not even be provisioned."""
    return _forget_start(replace(_desire_stopped(record, now), deployment_error=error, refresh_version=record.refresh_version + 1))


def use_storage(record: PipelineRecord) -> PipelineRecord:
    """The first step of provisioning: from now on there may be something in the storage."""
    details = record.storage_status_details or {"checkpoints": []}
    if record.storage_status is StorageStatus.IN_USE:
        return replace(record, storage_status_details=details)
    return replace(
        record, storage_status=StorageStatus.IN_USE, storage_status_details=details, refresh_version=record.refresh_version + 1
    )


def provision(
    record: PipelineRecord, deployment_id: UUID, host_id: UUID | None, deployment_config: dict[str, Any], now: datetime
) -> PipelineRecord:
    """An incarnation gets its id; ``host_id`` is None until a host to run it on is known."""
    return replace(
        _resources(record, ResourcesStatus.PROVISIONING, now),
        deployment_id=deployment_id,
        host_id=host_id,
        deployment_config=deployment_config,
        provisioning_since=now,
    )


def place_again(record: PipelineRecord) -> PipelineRecord:
    """The host for the incarnation ended before the incarnation had begun: it may have another one."""
    return replace(record, host_id=None)


def observe(record: PipelineRecord, transition: RuntimeTransition, now: datetime) -> PipelineRecord:
    """What the host said about the incarnation."""
    record = replace(record, consumed_sequence=max(record.consumed_sequence, transition.sequence))
    if transition.deployment_id != record.deployment_id:
        return record
    if transition.checkpoints is not None and record.storage_status is StorageStatus.IN_USE:
        record = replace(record, storage_status_details={"checkpoints": transition.checkpoints})
    if record.deployment_resources_status is ResourcesStatus.STOPPING:
        return record
    if transition.status is RuntimeStatus.STOPPED:
        return fail(record, transition.error or _unexplained_end(), now)
    before = record
    if record.deployment_resources_status is ResourcesStatus.PROVISIONING:
        record = _resources(record, ResourcesStatus.PROVISIONED, now)
    if record.deployment_runtime_status is not transition.status:
        record = replace(record, deployment_runtime_status=transition.status, deployment_runtime_status_since=now)
    # A stop that was asked for meanwhile is not undone by a host that had not heard of it yet, but by one that gave it up.
    given_up = transition.error is not None
    suspending = record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED and not given_up
    if not suspending and record.deployment_runtime_desired_status is not transition.desired:
        record = replace(record, deployment_runtime_desired_status=transition.desired, deployment_runtime_desired_status_since=now)
    record = replace(record, deployment_runtime_status_details=transition.details)
    if before.deployment_status != record.deployment_status:
        record = replace(record, refresh_version=record.refresh_version + 1)
    if record.deployment_runtime_status is RuntimeStatus.SUSPENDED:
        return _desire_stopped(record, now)
    return record


def fail(record: PipelineRecord, error: dict[str, Any], now: datetime) -> PipelineRecord:
    """The incarnation failed: it is to be stopped, and the error is kept until it is dismissed."""
    if record.deployment_resources_status is ResourcesStatus.STOPPED:
        return record
    return replace(
        _desire_stopped(record, now), deployment_error=record.deployment_error or error, refresh_version=record.refresh_version + 1
    )


def stopping(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """The resources are being given back; the incarnation is no more."""
    return _forget_start(
        replace(
            _resources(record, ResourcesStatus.STOPPING, now),
            deployment_runtime_status=None,
            deployment_runtime_status_details=None,
            deployment_runtime_status_since=None,
            deployment_runtime_desired_status=None,
            deployment_runtime_desired_status_since=None,
            provisioning_since=None,
        )
    )


def stopped(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """The resources are gone."""
    return replace(
        _resources(record, ResourcesStatus.STOPPED, now), deployment_id=None, host_id=None, deployment_config=None, deployer=None
    )


def cleared(record: PipelineRecord) -> PipelineRecord:
    """The storage is empty."""
    error = record.deployment_error
    if error is not None and error.get("error_code") == ErrorCode.STORAGE_CLEAR_FAILED:
        error = None
    return replace(
        record,
        storage_status=StorageStatus.CLEARED,
        storage_status_details=None,
        deployment_error=error,
        refresh_version=record.refresh_version + 1,
    )


"""The error code of a storage that cannot be cleared, dropped when clearing succeeds after all."""


def clear_failed(record: PipelineRecord, message: str) -> PipelineRecord:
    """Clearing did not work; it stays Clearing and is tried again."""
    error = {"message": message, "error_code": ErrorCode.STORAGE_CLEAR_FAILED.value, "details": {}}
    if record.deployment_error is not None:
        return record
    return replace(record, deployment_error=error, refresh_version=record.refresh_version + 1)


def at_rest(record: PipelineRecord) -> bool:
    """Nothing will change unless somebody asks for it or the incarnation moves by itself."""
    if record.program_status not in COMPILE_ERRORS | {ProgramStatus.SUCCESS} or record.storage_status is StorageStatus.CLEARING:
        return False
    if record.deployment_resources_desired_status is not record.deployment_resources_status:
        return False
    if record.deployment_resources_status is ResourcesStatus.STOPPED:
        return True
    status, desired = record.deployment_runtime_status, record.deployment_runtime_desired_status
    waits = status is RuntimeStatus.AWAITING_APPROVAL and desired is not RuntimeStatus.SUSPENDED
    return waits or status is desired


def _desire_stopped(record: PipelineRecord, now: datetime) -> PipelineRecord:
    if record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        return record
    return replace(
        record, deployment_resources_desired_status=ResourcesStatus.STOPPED, deployment_resources_desired_status_since=now
    )


def _forget_start(record: PipelineRecord) -> PipelineRecord:
    return replace(
        record,
        deployment_initial=None,
        bootstrap_policy=None,
        silent_bootstrap=None,
        concurrent_bootstrap=None,
        from_checkpoint=None,
    )


def _resources(record: PipelineRecord, status: ResourcesStatus, now: datetime) -> PipelineRecord:
    return replace(
        record,
        deployment_resources_status=status,
        deployment_resources_status_since=now,
        refresh_version=record.refresh_version + 1,
    )


def _unexplained_end() -> dict[str, Any]:
    return {
        "message": "The host ended the incarnation without giving a reason",
        "error_code": ErrorCode.UNKNOWN_ERROR.value,
        "details": {},
    }
