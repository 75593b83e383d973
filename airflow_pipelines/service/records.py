"""The pipeline record: everything the service knows about one pipeline, immutable, and its wire form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.contract.enums import StorageStatus
from airflow_pipelines.contract.statuses import CompilationStatus, ResourcesStatus, RuntimeStatus
from airflow_pipelines.program.sources import ProgramSource, SourceFile

COMPILE_ERRORS: Final = frozenset({CompilationStatus.SQL_ERROR, CompilationStatus.RUST_ERROR, CompilationStatus.SYSTEM_ERROR})
"""The program statuses from which a pipeline cannot start."""


class Selector(StrEnum):
    """The selection of a pipeline's fields in an answer."""

    ALL = "all"
    STATUS = "status"
    STATUS_WITH_CONNECTORS = "status_with_connectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRecord:
    """A pipeline as the store keeps it.

    :param revision: the compare-and-swap column; the three versions are the contract's
    :param deployer: the name of the deployer that the start requested
    :param host_id: the host of the incarnation
    :param deployment_config: the configuration that the host received
    :param provisioning_since: the time at which provisioning began
    :param compile_claimed_at: the time at which a service process last claimed the compilation
    :param consumed_sequence: the newest runtime transition that this record includes
    :param udf_python: the text of the program's Python module
    :param from_checkpoint: the checkpoint that the start goes back to
    :param stream_files: the files of the stream program, with the file that is executed first
    :param stream_arguments: the command line of the stream program
    """

    id: UUID
    name: str
    description: str
    tags: tuple[str, ...]
    created_at: datetime
    revision: int
    version: int
    program_version: int
    refresh_version: int
    platform_version: str
    runtime_config: dict[str, Any]
    program_code: str
    udf_rust: str
    udf_toml: str
    program_config: dict[str, Any]
    program_status: CompilationStatus
    program_status_since: datetime
    program_error: dict[str, Any] | None
    program_info: dict[str, Any] | None
    deployment_error: dict[str, Any] | None
    storage_status: StorageStatus
    storage_status_details: dict[str, Any] | None
    deployment_resources_status: ResourcesStatus
    deployment_resources_status_details: dict[str, Any] | None
    deployment_resources_status_since: datetime
    deployment_resources_desired_status: ResourcesStatus
    deployment_resources_desired_status_since: datetime
    deployment_runtime_status: RuntimeStatus | None
    deployment_runtime_status_details: dict[str, Any] | None
    deployment_runtime_status_since: datetime | None
    deployment_runtime_desired_status: RuntimeStatus | None
    deployment_runtime_desired_status_since: datetime | None
    deployment_initial: str | None
    deployment_id: UUID | None
    bootstrap_policy: str | None
    silent_bootstrap: bool | None
    concurrent_bootstrap: bool | None
    deployer: str | None
    host_id: UUID | None
    deployment_config: dict[str, Any] | None
    provisioning_since: datetime | None
    compile_claimed_at: datetime | None
    consumed_sequence: int
    udf_python: str = ""
    from_checkpoint: UUID | None = None
    stream_files: tuple[SourceFile, ...] = ()
    stream_arguments: tuple[str, ...] = ()

    @property
    def source(self) -> ProgramSource:
        """The program's source."""
        return ProgramSource(self.program_code, self.udf_python, self.stream_files, self.stream_arguments)

    @property
    def fully_stopped(self) -> bool:
        """True if nothing runs and nothing is meant to run."""
        return (
            self.deployment_resources_status is ResourcesStatus.STOPPED
            and self.deployment_resources_desired_status is ResourcesStatus.STOPPED
        )

    @property
    def newest_checkpoint(self) -> UUID | None:
        """The newest checkpoint that a host has reported; None if there is none."""
        listed = (self.storage_status_details or {}).get("checkpoints") or []
        return max((UUID(entry["uuid"]) for entry in listed), default=None)

    @property
    def deployment_status(self) -> str:
        """The status for people: of the resources, or of the runtime once there are resources."""
        if self.deployment_resources_status is ResourcesStatus.PROVISIONED:
            return (self.deployment_runtime_status or RuntimeStatus.UNAVAILABLE).value
        return self.deployment_resources_status.value

    @property
    def deployment_desired_status(self) -> str:
        """The status that the pipeline should reach."""
        if self.deployment_resources_desired_status is ResourcesStatus.STOPPED:
            return RuntimeStatus.STOPPED.value
        if self.deployment_runtime_desired_status is not None:
            return self.deployment_runtime_desired_status.value
        return (self.deployment_initial or "running").capitalize()

    @property
    def event_status(self) -> tuple[Any, ...]:
        """The status components of which each change is an event."""
        return (
            self.deployment_resources_status,
            self.deployment_resources_desired_status,
            self.deployment_runtime_status,
            self.deployment_runtime_desired_status,
            self.deployment_error is not None,
            self.program_status,
            self.storage_status,
        )


_PLAIN: Final = (
    "name", "description", "version", "platform_version", "program_version", "refresh_version", "storage_status_details",
    "deployment_error", "deployment_runtime_status_details",
)  # fmt: skip
_VALUES: Final = (
    "program_status", "storage_status", "deployment_resources_status", "deployment_resources_desired_status",
    "deployment_runtime_status", "deployment_runtime_desired_status",
)  # fmt: skip
_TIMES: Final = (
    "created_at", "program_status_since", "deployment_resources_status_since", "deployment_resources_desired_status_since",
    "deployment_runtime_status_since", "deployment_runtime_desired_status_since",
)  # fmt: skip
_ONLY_ALL: Final = (
    "runtime_config", "program_code", "udf_rust", "udf_toml", "program_error", "program_info",
    "deployment_resources_status_details",
)  # fmt: skip
_BOOTSTRAP: Final = ("bootstrap_policy", "silent_bootstrap", "concurrent_bootstrap")


def rfc3339(moment: datetime | None) -> str | None:
    """Format a time as RFC 3339 in UTC with microseconds."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def later(one: datetime, other: datetime | None) -> datetime:
    """Return the later of two times; the second may be unknown."""
    return one if other is None else max(one, other)


def descriptor(record: PipelineRecord, selector: Selector = Selector.ALL) -> dict[str, Any]:
    """Return the pipeline's descriptor with exactly the contract's keys for ``selector``."""
    values: dict[str, Any] = {key: getattr(record, key) for key in (*_PLAIN, *_BOOTSTRAP)}
    values.update({key: None if (value := getattr(record, key)) is None else value.value for key in _VALUES})
    values.update({key: rfc3339(getattr(record, key)) for key in _TIMES})
    values["id"] = str(record.id)
    values["tags"] = list(record.tags)
    values["program_config"] = record.program_config
    values["deployment_initial"] = None if record.deployment_initial is None else record.deployment_initial.capitalize()
    # The record keeps the id until the host has released the incarnation; users see it only while there is one.
    live = record.deployment_resources_status in {ResourcesStatus.PROVISIONING, ResourcesStatus.PROVISIONED}
    values["deployment_id"] = str(record.deployment_id) if live else None
    values["deployment_status"] = record.deployment_status
    values["deployment_desired_status"] = record.deployment_desired_status
    values["deployment_status_since"] = rfc3339(
        later(record.deployment_resources_status_since, record.deployment_runtime_status_since)
    )
    values["deployment_desired_status_since"] = rfc3339(
        later(record.deployment_resources_desired_status_since, record.deployment_runtime_desired_status_since)
    )
    if selector is Selector.ALL:
        values.update({key: getattr(record, key) for key in _ONLY_ALL})
        if record.program_info is not None:
            # A host of an earlier release did not send it.
            values["program_info"] = {**record.program_info, "dataflow": record.program_info.get("dataflow")}
        if record.stream_files:
            # Only where there are some: the other keys are the contract's.
            values["stream_files"] = record.source.stream_texts
            values["stream_arguments"] = list(record.stream_arguments)
    elif selector is Selector.STATUS_WITH_CONNECTORS:
        details = record.deployment_runtime_status_details or {}
        values["connectors"] = {"num_errors": (details.get("connector_stats") or {}).get("num_errors")}
    return values


def edit_answer(record: PipelineRecord) -> dict[str, Any]:
    """Return the descriptor for the answers of editing calls: without the bootstrap fields."""
    values = descriptor(record)
    for key in _BOOTSTRAP:
        del values[key]
    return values
