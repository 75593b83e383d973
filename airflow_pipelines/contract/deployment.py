"""The messages between the service and a host about one incarnation of a pipeline."""

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
    """An incarnation of a pipeline, as handed to a host.

    :param program_version: the version of the program; None from a service of an earlier release
    :param storage: the pipeline's own folder
    :param from_checkpoint: the checkpoint to go back to, even if there are newer ones
    :param newest_checkpoint: a checkpoint that is known to exist, so that a storage without it is not taken for an empty one
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
        """Collect the fields of the source, which are among the others on the wire."""
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
        """Return the runtime configuration as it applies to the incarnation.

        :raises Problem: when a value is invalid, which an earlier release stored without checking it
        """
        try:
            return RuntimeConfig.from_stored(self.runtime_config)
        except ValueError as error:
            raise self.invalid_config(error) from error

    def invalid_config(self, cause: ValueError) -> Problem:
        """Return the error of an incarnation whose runtime configuration is invalid.

        :param cause: the error that names the invalid value
        """
        return Problem(
            ErrorCode.INVALID_RUNTIME_CONFIG,
            f"The runtime configuration of the pipeline {self.pipeline_name} makes no sense: {cause}. Correct it "
            "(modify) and start again.",
        )


class RuntimeTransition(BaseModel):
    """A change of an incarnation's runtime status, recorded by its host in the order it happened.

    :param error: a deployment error (``message, error_code, details``) if the incarnation failed. With any other status than
        STOPPED it is the reason why a graceful stop was abandoned: the incarnation continues with the status that was desired
        before
    :param checkpoints: the list for ``storage_status_details`` if it changed, else None
    :param last_sync: the newest copy that this incarnation has made of a checkpoint (``uuid, synced_at``); None if it has made none
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
