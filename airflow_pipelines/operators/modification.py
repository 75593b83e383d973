"""The modification of a pipeline that a task describes, and its difference from the pipeline."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.operators import arguments
from airflow_pipelines.sdk.likeness import Likeness, compare_configs, compare_programs, compare_stream_files, merged_configs
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments

PROGRAM_FIELDS: Final = ("program_code", "udf_python", "stream_files", "stream_arguments")
"""The wire fields that make up a program."""


@dataclass(frozen=True, slots=True)
class Modification:
    """The parts of a pipeline to modify. None leaves a part as it is.

    :param sql: the program's text
    :param udf_python: the Python module with the program's functions
    :param streams: the stream program
    :param description: the description
    :param runtime_config: the values of the runtime configuration to change, in wire form
    """

    sql: str | None
    udf_python: str | None
    streams: StreamProgramArguments
    description: str | None = None
    runtime_config: Mapping[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        """A short text that identifies the modification."""
        values = [self.sql, self.udf_python, list(self.streams.to_wire().items()), self.description, self.runtime_config]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    def compare(self, descriptor: Mapping[str, Any], hook: PipelineHook) -> dict[str, Likeness]:
        """Compare the modification with a pipeline. Only the given values of a configuration are compared.

        :param descriptor: the pipeline as the service sends it, with all fields
        :param hook: the hook, to request values that the descriptor does not have
        :returns: the likeness of each field that is given
        """
        likeness: dict[str, Likeness] = {}
        if self.sql is not None:
            likeness["program_code"] = compare_programs(descriptor["program_code"], self.sql)
        if self.udf_python is not None:
            likeness["udf_python"] = _to_likeness(self.udf_python == hook.udf_python(descriptor["name"]))
        if self.streams.files is not None:
            likeness["stream_files"] = compare_stream_files(descriptor, self.streams.files)
        if self.streams.arguments is not None:
            same = list(self.streams.arguments) == list(descriptor.get("stream_arguments") or ())
            likeness["stream_arguments"] = _to_likeness(same)
        if self.description is not None:
            likeness["description"] = _to_likeness(self.description == descriptor["description"])
        if self.runtime_config is not None:
            likeness["runtime_config"] = compare_configs(descriptor["runtime_config"], self.runtime_config)
        return likeness

    def program(self, descriptor: Mapping[str, Any] | None, hook: PipelineHook) -> dict[str, Any]:
        """Return the whole program that a pipeline would have: the given parts, and the existing ones for the rest.

        :param descriptor: the pipeline as the service sends it, with all fields; None if there is none yet
        :param hook: the hook, to request values that the descriptor does not have
        :returns: the wire fields of a program
        """
        stored = descriptor or {}
        kept_functions = "" if descriptor is None or self.udf_python is not None else hook.udf_python(stored["name"])
        kept = {
            "program_code": stored.get("program_code") or "",
            "udf_python": kept_functions,
            "stream_files": stored.get("stream_files") or {},
            "stream_arguments": list(stored.get("stream_arguments") or ()),
        }
        given = {"program_code": self.sql, "udf_python": self.udf_python, **self.streams.to_wire()}
        return kept | {name: value for name, value in given.items() if value is not None}

    def changes(self, descriptor: Mapping[str, Any], likeness: Mapping[str, Likeness]) -> dict[str, Any]:
        """Return the fields to send, with their values. Comments that changed wait until the pipeline is stopped.

        :param descriptor: the pipeline as the service sends it, with all fields
        :param likeness: the result of :meth:`compare`
        """
        given = {
            "program_code": self.sql,
            "udf_python": self.udf_python,
            "description": self.description,
            **self.streams.to_wire(),
        }
        changes = {name: value for name, value in given.items() if likeness.get(name, Likeness.SAME) is not Likeness.SAME}
        if is_up(descriptor) and likeness.get("program_code") is Likeness.SAME_BUT_FOR_COMMENTS:
            del changes["program_code"]
        if likeness.get("runtime_config", Likeness.SAME) is not Likeness.SAME:
            changes["runtime_config"] = merged_configs(descriptor["runtime_config"], self.runtime_config)
        return changes


def config_changes(stored: Any, given: Any, path: str = "") -> list[str]:
    """Return the values of a configuration that change, as lines of text. Texts are not shown, because any of them may be a secret.

    :param stored: the configuration as the service keeps it
    :param given: the values to change
    :param path: the path within the configuration
    """
    if isinstance(given, Mapping):
        known = stored if isinstance(stored, Mapping) else {}
        return [line for name in given for line in config_changes(known.get(name), given[name], f"{path}.{name}" if path else name)]
    if given is None or stored == given:
        return []
    return [f"{path}: {_describe_value(stored)} becomes {_describe_value(given)}"]


def _describe_value(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return "nothing" if value is None else str(value)
    return "a text" if isinstance(value, str) else "a list"


class ModificationArguments(Protocol):
    """The arguments of an operator that make a modification. ``given`` has the names of those that the DAG gives."""

    given: frozenset[str]
    sql: str | None
    udf_python: str | None
    stream_program: Any
    stream_files: Sequence[str]
    stream_arguments: Sequence[str] | None


def check_program_arguments(task: ModificationArguments) -> None:
    """Validate the rendered arguments of a program.

    An argument that the DAG gives but whose value is lost fails the task; it must not count as "not given".

    :param task: the operator
    :raises AirflowFailException: if an argument is invalid; the message has its name
    """
    for name in ("sql", "udf_python"):
        if name in task.given:
            setattr(task, name, arguments.text(name, getattr(task, name)))
    for name in ("stream_program", "stream_arguments"):
        if name in task.given:
            arguments.present(name, getattr(task, name))
    task.stream_files = arguments.texts("stream_files", task.stream_files)


def is_up(descriptor: Mapping[str, Any]) -> bool:
    """Return True if a pipeline runs, or is starting or stopping.

    :param descriptor: the pipeline as the service sends it
    """
    return bool(descriptor["deployment_status"] != "Stopped" or descriptor["deployment_desired_status"] != "Stopped")


def _to_likeness(same: bool) -> Likeness:
    return Likeness.SAME if same else Likeness.DIFFERENT
