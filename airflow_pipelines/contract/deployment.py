"""What the service tells a host about one incarnation of a pipeline, and what the host says about it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer, model_validator

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.runtime_config import RuntimeConfig
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.program.sources import ProgramSource

_SOURCE_FIELDS = {
    "program_code": "sql",
    "udf_python": "python_functions",
    "stream_files": "stream_files",
    "stream_arguments": "stream_arguments",
}


class Deployment(BaseModel):
    """One incarnation of a pipeline, as handed to a host.

    :param program_version: None when a service of an earlier release asks
    :param storage: the pipeline's own folder
    :param from_checkpoint: go back to this one, whatever is newer
    :param newest_checkpoint: one that is known to have been made, so that a storage without it is not taken for an empty one
    """

    model_config = ConfigDict(frozen=True)

    deployment_id: UUID
    pipeline_id: UUID
    pipeline_name: str
    source: ProgramSource
    program_version: int | None = None
    runtime_config: dict[str, Any]
    storage: str
    log_path: str
    initial: str = "running"
    bootstrap_policy: str = "await_approval"
    silent_bootstrap: bool = False
    concurrent_bootstrap: bool = False
    from_checkpoint: UUID | None = None
    newest_checkpoint: UUID | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_source(cls, fields: Any) -> Any:
        """On the wire the fields of the source are among the others."""
        if not isinstance(fields, dict) or "program_code" not in fields:
            return fields
        others = {key: value for key, value in fields.items() if key not in _SOURCE_FIELDS}
        source = {_SOURCE_FIELDS[key]: value for key, value in fields.items() if key in _SOURCE_FIELDS}
        if isinstance(source.get("stream_files"), dict):
            source["stream_files"] = [{"path": path, "text": text} for path, text in source["stream_files"].items()]
        return others | {"source": source}

    @model_serializer(mode="wrap")
    def _to_wire(self, fields_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = fields_of(self)
        return fields | self.source.to_wire() if fields.pop("source", None) is not None else fields

    def config(self) -> RuntimeConfig:
        """The runtime configuration, as whoever runs the incarnation reads it.

        :raises Problem: when a value makes no sense, which an earlier release stored without checking it
        """
        try:
            return RuntimeConfig.from_stored(self.runtime_config)
        except ValueError as error:
            raise self.invalid_config(error) from error

    def invalid_config(self, cause: ValueError) -> Problem:
        """The error of an incarnation whose runtime configuration cannot be used.

        :param cause: says which value makes no sense here
        """
        return Problem(
            ErrorCode.INVALID_RUNTIME_CONFIG,
            f"The runtime configuration of the pipeline {self.pipeline_name} makes no sense: {cause}. Correct it "
            "(modify) and start again.",
        )


class RuntimeTransition(BaseModel):
    """A change of an incarnation's runtime status, recorded by its host in the order it happened.

    :param error: a deployment error (``message, error_code, details``) when the incarnation failed. With any other status than
        STOPPED it is the reason why a graceful stop was given up: the incarnation goes on with what was desired before
    :param checkpoints: the list for ``storage_status_details`` when it changed, else None
    :param last_sync: the newest copy that this incarnation has made of a checkpoint (``uuid, synced_at``), None without any
    """

    model_config = ConfigDict(frozen=True)

    sequence: int = 0
    deployment_id: UUID
    status: RuntimeStatus
    desired: RuntimeStatus
    details: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    checkpoints: list[dict[str, Any]] | None = None
    last_sync: dict[str, Any] | None = None
