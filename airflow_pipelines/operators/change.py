"""Operators that bring a pipeline's program to what the DAG says, without losing its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.operators.base import PipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_IF_EXISTS = ("modify", "replace", "keep")


class ModifyPipelineOperator(PipelineOperator):
    """Changes a stopped pipeline and waits until its program is compiled. State is kept: the next start shows the difference to
    approve.

    What is not given stays as it is, and a change that changes nothing does nothing, whatever the pipeline's status.

    XCom: ``{"pipeline", "id", "version", "program_version", "changed"}``; ``changed`` lists the fields that were changed.

    Args:
        sql: the program's text, or the path of a ``.sql`` file.
        udf_python: the text of the Python module with the program's functions. It is no template, because Python's braces are not
            Jinja's.
        description: a description.
        runtime_config: the values to change of the runtime configuration, in wire form.
        compile_timeout: seconds to wait for the compiler.
    """

    template_fields: Sequence[str] = (*PipelineOperator.template_fields, "sql", "description", "runtime_config")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"sql": "sql", "runtime_config": "json"}

    def __init__(
        self,
        *,
        sql: str | None = None,
        udf_python: str | None = None,
        description: str | None = None,
        runtime_config: Mapping[str, Any] | None = None,
        compile_timeout: float = 300.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.udf_python = udf_python
        self.description = description
        self.runtime_config = runtime_config
        self.compile_timeout = compile_timeout

    def act(self, context: Context) -> dict[str, Any]:
        """Modify."""
        descriptor = self.hook.descriptor(self.pipeline_name, "all")
        if descriptor is None:
            raise AirflowFailException(
                f"There is no pipeline {self.pipeline_name!r} to modify: deploy it with DeployPipelineOperator"
            )
        return self.modify(descriptor)

    def modify(self, descriptor: Mapping[str, Any]) -> dict[str, Any]:
        """Send what differs from a pipeline's descriptor, and wait for the compiler."""
        changes = self.differences(descriptor)
        if not changes:
            self.log.info("Pipeline %s is as it should be", self.pipeline_name)
            return self.xcom(descriptor, changed=[])
        if set(changes) != {"description"} and (
            descriptor["deployment_status"] != "Stopped" or descriptor["deployment_desired_status"] != "Stopped"
        ):
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} is {descriptor['deployment_status']} and differs in "
                f"{', '.join(sorted(changes))}: it can be modified when it is stopped, so put a StopPipelineOperator before"
            )
        modified = self.hook.modify(self.pipeline_name, changes)
        self.log.info("Pipeline %s changed in %s", self.pipeline_name, ", ".join(sorted(changes)))
        self.hook.wait_until_compiled(self.pipeline_name, int(modified["program_version"]), timeout_s=self.compile_timeout)
        return self.xcom(modified, changed=sorted(changes))

    def differences(self, descriptor: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that differ, with their new values. A configuration counts as different where it says something else."""
        changes: dict[str, Any] = {}
        if self.sql is not None and self.sql != descriptor["program_code"]:
            changes["program_code"] = self.sql
        if self.udf_python is not None and self.udf_python != self.hook.udf_python(self.pipeline_name):
            changes["udf_python"] = self.udf_python
        if self.description is not None and self.description != descriptor["description"]:
            changes["description"] = self.description
        if self.runtime_config is not None and not _says(descriptor["runtime_config"], self.runtime_config):
            changes["runtime_config"] = _merged(descriptor["runtime_config"], self.runtime_config)
        return changes

    def xcom(self, descriptor: Mapping[str, Any], *, changed: list[str]) -> dict[str, Any]:
        """The result."""
        return {
            "pipeline": self.pipeline_name,
            "id": descriptor["id"],
            "version": descriptor["version"],
            "program_version": descriptor["program_version"],
            "changed": changed,
        }


class DeployPipelineOperator(ModifyPipelineOperator):
    """Makes sure that a pipeline with a program exists, and waits until the program is compiled. It does not start it.

    XCom: as of ModifyPipelineOperator, with ``action``: ``created``, ``modified``, ``unchanged``, ``replaced`` or ``kept``.

    Args:
        sql: the program's text, or the path of a ``.sql`` file.
        if_exists: what to do with an existing pipeline: ``modify`` it when it differs, keeping its state; ``keep`` it as it is; or
            ``replace`` it, which stops it and throws its state away.
    """

    def __init__(self, *, sql: str, if_exists: str = "modify", **kwargs: Any) -> None:
        super().__init__(sql=sql, **kwargs)
        if if_exists not in _IF_EXISTS:
            raise ValueError(f"if_exists is {if_exists!r}; known: {', '.join(_IF_EXISTS)}")
        self.if_exists = if_exists

    def act(self, context: Context) -> dict[str, Any]:
        """Deploy."""
        descriptor = self.hook.descriptor(self.pipeline_name, "all")
        if descriptor is None:
            create, action = self.hook.create, "created"
        elif self.if_exists == "replace":
            create, action = self.hook.replace, "replaced"
        elif self.if_exists == "keep":
            return {**self.xcom(descriptor, changed=[]), "action": "kept"}
        else:
            result = self.modify(descriptor)
            return {**result, "action": "modified" if result["changed"] else "unchanged"}
        create(
            self.pipeline_name,
            str(self.sql),
            udf_python=self.udf_python or "",
            description=self.description or "",
            runtime_config=self.runtime_config,
        )
        made = self.hook.descriptor(self.pipeline_name) or {}
        return {**self.xcom(made, changed=[]), "action": action}


def _says(stored: Any, given: Any) -> bool:
    """Whether a stored configuration, which has all defaults filled in, already says what a given one says."""
    if isinstance(given, Mapping) and isinstance(stored, Mapping):
        return all(value is None or (name in stored and _says(stored[name], value)) for name, value in given.items())
    return bool(stored == given)


def _merged(stored: Any, given: Any) -> Any:
    if isinstance(given, Mapping) and isinstance(stored, Mapping):
        return {**stored, **{name: _merged(stored.get(name), value) for name, value in given.items()}}
    return given
