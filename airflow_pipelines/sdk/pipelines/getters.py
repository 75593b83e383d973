"""The properties of a pipeline, each read from the service on request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from airflow_pipelines.contract.descriptors import PendingChange, SQLTable, SQLView
from airflow_pipelines.contract.enums import (
    BootstrapPolicy,
    DeploymentDesiredStatus,
    DeploymentResourcesDesiredStatus,
    DeploymentResourcesStatus,
    DeploymentRuntimeDesiredStatus,
    DeploymentRuntimeStatus,
    PipelineFieldSelector,
    PipelineStatus,
    ProgramStatus,
    StorageStatus,
)
from airflow_pipelines.contract.stats import parse_time
from airflow_pipelines.sdk.pipelines.base import PipelineBase, status_of
from airflow_pipelines.sdk.runtime_config import RuntimeConfig


class PipelineGetters(PipelineBase):
    """The properties of a pipeline. Every method asks the service and raises its ``PipelineAPIError``."""

    def id(self) -> str:
        """Return the id of the pipeline, a UUID; it does not change when the pipeline is renamed."""
        return str(self._status_field("id"))

    def description(self) -> str:
        """Return the description of the pipeline."""
        return str(self._status_field("description"))

    def tags(self) -> list[str]:
        """Return the tags of the pipeline."""
        return list(self._status_field("tags") or [])

    def created_at(self) -> datetime:
        """Return the time at which the pipeline was created."""
        return parse_time(self._status_field("created_at"))

    def version(self) -> int:
        """Return the version of the pipeline, which grows with each edit of its program or configuration."""
        return int(self._status_field("version"))

    def platform_version(self) -> str:
        """Return the version of this software that compiled the program."""
        return str(self._status_field("platform_version"))

    def runtime_config(self) -> RuntimeConfig:
        """Return the runtime configuration of the pipeline, with the service's defaults filled in."""
        return RuntimeConfig.from_dict(self._field("runtime_config"))

    def program_code(self) -> str:
        """Return the SQL text of the program."""
        return str(self._field("program_code"))

    def program_config(self) -> Mapping[str, Any]:
        """Return the compiler configuration of this program."""
        config: Mapping[str, Any] = self._field("program_config")
        return config

    def program_info(self) -> Mapping[str, Any]:
        """Return the result of compiling: the schema of tables and views, and the connectors.

        :returns: the wire object; empty while the program is not compiled
        """
        info: Mapping[str, Any] = self._field("program_info") or {}
        return info

    def program_error(self) -> Mapping[str, Any]:
        """Return the compiler's messages: ``{sql_compilation, rust_compilation, system_error}``; exit codes are 0 on success."""
        error: Mapping[str, Any] = self._field("program_error") or {}
        return error

    def program_status(self) -> ProgramStatus:
        """Return the status of the compilation.

        :returns: the status; after a failure its ``get_error()`` returns the compiler's messages
        """
        status = ProgramStatus.from_value(self._status_field("program_status"))
        return status._with_error(dict(self.program_error())) if status.is_error else status

    def program_status_since(self) -> datetime:
        """Return the time since which the program has its status."""
        return parse_time(self._status_field("program_status_since"))

    def program_version(self) -> int:
        """Return the version of the program, which grows with each edit that requires a compilation."""
        return int(self._status_field("program_version"))

    def udf_rust(self) -> str:
        """Return the Rust code of user-defined functions; always empty, since programs run on Spark."""
        return str(self._field("udf_rust"))

    def udf_toml(self) -> str:
        """Return the Rust dependencies of user-defined functions; always empty, since programs run on Spark."""
        return str(self._field("udf_toml"))

    def udf_python(self) -> str:
        """Return the Python module with the functions that the program declares without an expression."""
        return str(self.client.get(self._path("udf_python"))["udf_python"])

    def stream_program(self) -> dict[str, str]:
        """Return the stream program.

        :returns: the text of each file by its path, with the file that is executed first; empty without a stream program. It can be
            passed to :meth:`modify` and to a :class:`~airflow_pipelines.sdk.pipeline_builder.PipelineBuilder`
        """
        return dict(self._optional_field("stream_files") or {})

    def stream_arguments(self) -> list[str]:
        """Return the command line of the stream program."""
        return list(self._optional_field("stream_arguments") or [])

    def bootstrap_policy(self) -> BootstrapPolicy | None:
        """Return the bootstrap policy of the current start; None while the pipeline is stopped."""
        policy = self._status_field("bootstrap_policy")
        return None if policy is None else BootstrapPolicy.from_str(policy)

    def deployment_status_since(self) -> datetime:
        """Return the time since which the pipeline has its status."""
        return parse_time(self._status_field("deployment_status_since"))

    def deployment_desired_status(self) -> DeploymentDesiredStatus:
        """Return the status that the pipeline should reach."""
        return DeploymentDesiredStatus.from_str(self._status_field("deployment_desired_status"))

    def deployment_resources_status(self) -> DeploymentResourcesStatus:
        """Return the status of the pipeline's host."""
        return DeploymentResourcesStatus.from_str(self._status_field("deployment_resources_status"))

    def deployment_resources_desired_status(self) -> DeploymentResourcesDesiredStatus:
        """Return the desired status of the pipeline's host."""
        return DeploymentResourcesDesiredStatus.from_str(self._status_field("deployment_resources_desired_status"))

    def deployment_runtime_status(self) -> DeploymentRuntimeStatus | None:
        """Return the status of the pipeline on its host; None while it has no host."""
        status = self._status_field("deployment_runtime_status")
        return None if status is None else DeploymentRuntimeStatus.from_str(status)

    def deployment_runtime_desired_status(self) -> DeploymentRuntimeDesiredStatus | None:
        """Return the desired status of the pipeline on its host; None while it has no host."""
        status = self._status_field("deployment_runtime_desired_status")
        return None if status is None else DeploymentRuntimeDesiredStatus.from_str(status)

    def deployment_runtime_status_details(self) -> dict[str, Any] | None:
        """Return the details of the runtime status.

        :returns: in AWAITINGAPPROVAL the difference between the checkpoint's program and the current one: ``program_diff`` with
            lists of added, modified and removed tables and views, and such lists of connectors. Otherwise the details that the
            service gives, or None.
        """
        descriptor = self._read(PipelineFieldSelector.STATUS)
        details: dict[str, Any] | None = descriptor["deployment_runtime_status_details"]
        if details is not None and status_of(descriptor) is PipelineStatus.AWAITINGAPPROVAL and "approval_diff" in details:
            diff: dict[str, Any] | None = details["approval_diff"]
            return diff
        return details

    def pending_change(self) -> PendingChange | None:
        """Return the change that waits for approval, with the programs that :meth:`approve` takes.

        :returns: the change; None if the pipeline does not await approval
        """
        descriptor = self._read(PipelineFieldSelector.STATUS)
        details = descriptor["deployment_runtime_status_details"]
        waits = status_of(descriptor) is PipelineStatus.AWAITINGAPPROVAL and details
        return PendingChange.from_dict(details) if waits else None

    def deployment_error(self) -> Mapping[str, Any] | str:
        """Return the error that stopped the pipeline, as ``{message, error_code, details}``; an empty string if there is none."""
        error: Mapping[str, Any] | None = self._status_field("deployment_error")
        return error or ""

    def deployment_config(self) -> Mapping[str, Any]:
        """Return the configuration with which the current incarnation was started; empty while the pipeline has no host."""
        config: Mapping[str, Any] = self._deployment().get("deployment_config") or {}
        return config

    def deployment_location(self) -> str:
        """Return the location of the current incarnation in words: kind of host, machine and process. Empty without a host."""
        location = self._deployment().get("deployment_location")
        if not location:
            return ""
        return f"{location['kind']} host {location['host_id']} on {location['machine']}, process {location['pid']}"

    def storage_status(self) -> StorageStatus:
        """Return the status of the pipeline's storage."""
        return StorageStatus.from_str(self._status_field("storage_status"))

    def storage_status_details(self) -> dict[str, Any] | None:
        """Return the details of the storage: its ``checkpoints``. None if the pipeline was never started, or was cleared."""
        details: dict[str, Any] | None = self._status_field("storage_status_details")
        return details

    def tables(self) -> list[SQLTable]:
        """Return the tables of the compiled program, in the order of the text; empty while it is not compiled."""
        schema = self.program_info().get("schema") or {}
        return [SQLTable.from_dict(relation) for relation in schema.get("inputs") or []]

    def views(self) -> list[SQLView]:
        """Return the views of the compiled program, in the order of the text; empty while it is not compiled."""
        schema = self.program_info().get("schema") or {}
        return [SQLView.from_dict(relation) for relation in schema.get("outputs") or []]

    def errors(self) -> list[Mapping[str, Any]]:
        """Return all current errors of the pipeline.

        :returns: one mapping per error. Those of the program have one key: ``sql_compilation``, ``rust_compilation`` or
            ``system_error``. The deployment error is unchanged: ``message``, ``error_code`` and ``details``
        """
        descriptor = self._read(PipelineFieldSelector.ALL)
        program_error = descriptor["program_error"] or {}
        errors: list[Mapping[str, Any]] = []
        for stage in ("sql_compilation", "rust_compilation"):
            outcome = program_error.get(stage)
            if outcome and outcome.get("exit_code"):
                errors.append({stage: outcome})
        if program_error.get("system_error"):
            errors.append({"system_error": program_error["system_error"]})
        if descriptor["deployment_error"]:
            errors.append(descriptor["deployment_error"])
        return errors

    def _deployment(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.get(self._path("deployment"))
        return answer
