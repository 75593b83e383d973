"""The pipeline that is wanted, and its differences from an existing one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.sdk.likeness import Likeness, compare_configs, compare_programs, compare_stream_files, merged_configs


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pipeline as it should be.

    :param name: its name
    :param stream_files: the texts of its stream program by path, with the file that is executed first; empty for none
    :param stream_arguments: the command line of its stream program
    :param sql: its SQL text; None keeps that of an existing pipeline
    :param runtime_config: the given values of its runtime configuration, in wire form
    """

    name: str
    stream_files: Mapping[str, str]
    stream_arguments: tuple[str, ...] = ()
    sql: str | None = None
    runtime_config: Mapping[str, Any] = field(default_factory=dict)

    def changes(self, descriptor: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of an existing pipeline that have to change, with their new values; empty if there are none.

        :param descriptor: the pipeline as the service sends it, with all fields
        """
        changes: dict[str, Any] = {}
        if compare_stream_files(descriptor, self.stream_files) is not Likeness.SAME:
            changes["stream_files"] = dict(self.stream_files)
        if list(self.stream_arguments) != list(descriptor.get("stream_arguments") or ()):
            changes["stream_arguments"] = list(self.stream_arguments)
        if self.sql is not None and compare_programs(descriptor["program_code"], self.sql) is Likeness.DIFFERENT:
            changes["program_code"] = self.sql
        if compare_configs(descriptor["runtime_config"], self.runtime_config) is Likeness.DIFFERENT:
            changes["runtime_config"] = merged_configs(descriptor["runtime_config"], self.runtime_config)
        return changes


def former_values(changes: Mapping[str, Any], descriptor: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that revert changes.

    :param changes: the fields that were changed
    :param descriptor: the pipeline as it was before
    """
    without: dict[str, Any] = {"stream_files": {}, "stream_arguments": []}
    return {name: descriptor.get(name, without.get(name)) for name in changes}
