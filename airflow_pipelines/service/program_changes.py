"""The comparison of a pipeline's program with another one, before that replaces it. It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service import errors
from airflow_pipelines.service.compiling import COMPILE_TIMEOUT_S, raise_for_new_program, still_at_work
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.edits import PipelineEdit, arguments_field, files_field, text_field
from airflow_pipelines.service.hosts import HostTimeout, HostUnreachable
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.version import check_runtime_version

_FIELDS = ("program_code", "udf_python", "stream_files", "stream_arguments", "runtime_version")


@dataclass(frozen=True, slots=True)
class ProgramChanges:
    """The requests about the effects of another program."""

    control_plane: ControlPlane

    def diff(self, name: str, body: Any) -> dict[str, Any]:
        """Return the difference between a pipeline's configured program and another one.

        :param name: the pipeline's name
        :param body: the fields of the other program; missing fields are those of the configured one
        :returns: the difference in the contract's form
        :raises Problem: when one of the two does not compile, or the other cannot continue from the configured one's state
        """
        record = self.control_plane.pipeline(name)
        source = self._parse_other(record, body)
        if record.program_status is not CompilationStatus.SUCCESS:
            raise Problem(
                ErrorCode.PROGRAM_NOT_COMPILED,
                f"The program of pipeline '{name}' is not compiled (its status is {record.program_status}), so that nothing can be "
                "compared with it. Wait until it is compiled, or correct it",
                errors.state(record),
            )
        return self.control_plane.programs.difference(record.source, source)

    def plan(self, name: str, body: Any) -> dict[str, Any]:
        """Return the effects on a running pipeline of continuing with another program. The pipeline is not stopped.

        :param name: the pipeline's name
        :param body: as for :meth:`diff`
        :returns: the same object that the pipeline would show when it awaits approval
        :raises Problem: when the other program does not compile or compiling takes too long, or the pipeline is not running
        """
        target = self.control_plane.target(name)
        source = self._parse_other(target.record, body)
        # All fields are sent: the host keeps its own value of a missing one, even if the other program has none.
        fields = source.to_wire() | {"stream_files": source.stream_texts, "stream_arguments": list(source.stream_arguments)}
        try:
            response = self.control_plane.hosts.call(
                target.host, "POST", f"{target.path}/plan", json=fields, timeout_s=COMPILE_TIMEOUT_S
            )
        except HostTimeout as error:
            raise still_at_work(error) from error
        except HostUnreachable as error:
            raise self.control_plane.explain_broken_call(name, str(error)) from error
        raise_for_new_program(response)
        answer: dict[str, Any] = response.json()
        return answer

    def _parse_other(self, record: PipelineRecord, body: Any) -> ProgramSource:
        fields = {} if body is None else body
        if not isinstance(fields, dict) or not fields.keys() <= set(_FIELDS):
            raise errors.invalid_param(f"The body is an object with some of the fields {', '.join(_FIELDS)}")
        check_runtime_version(text_field(fields, "runtime_version"))
        edit = PipelineEdit(
            program_code=text_field(fields, "program_code"),
            udf_python=text_field(fields, "udf_python"),
            stream_files=files_field(fields),
            stream_arguments=arguments_field(fields),
        )
        # With references in place of secrets, as in the program that it is compared with.
        edit = self.control_plane.secrets.out_of(edit, record.id)
        return record.source.with_fields(
            sql=edit.program_code,
            python_functions=edit.udf_python,
            stream_files=edit.stream_files,
            stream_arguments=edit.stream_arguments,
        )
