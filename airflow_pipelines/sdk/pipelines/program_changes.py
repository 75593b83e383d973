"""The comparison of a pipeline's program with another one, before that replaces it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.sdk.pipelines.base import PipelineBase
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource


class PipelineProgramChanges(PipelineBase):
    """The methods that compare programs."""

    def diff(
        self,
        program_code: str | None = None,
        runtime_version: str | None = None,
        *,
        sql: str | None = None,
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str | os.PathLike[str]] = (),
        stream_arguments: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return the difference between the configured program and another one. Works in any state, and changes nothing.

        :param program_code: the other program, under the name that the contract uses here; give only one of ``sql`` and
            ``program_code``
        :param runtime_version: the version to compile it with; None for the service's, which is the only one available
        :param sql: the other program, as for :meth:`modify`; None for the configured one
        :param stream_program: its stream program, as for :meth:`modify`; None for the configured one
        :param stream_files: other files of the stream program
        :param stream_arguments: its command line; None for the configured one
        :returns: ``program_diff`` with lists of added, modified and removed tables, views and operators of a stream program, and
            such lists of connectors: the same as when the pipeline awaits approval
        :raises PipelineAPIError: when the other program does not compile (``InvalidNewProgramSql``), cannot continue from the
            configured one's state (``BootstrapNotAllowed``), or the configured one is not compiled (``ProgramNotCompiled``)
        :raises ValueError: when both names of the other program are given
        """
        if sql is not None and program_code is not None:
            raise ValueError("sql and program_code are two names of one argument: give one of them")
        fields = {"program_code": program_code if sql is None else sql, "runtime_version": runtime_version}
        body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        body |= StreamProgramArguments.collect(stream_program, stream_files, stream_arguments).to_wire()
        answer: dict[str, Any] = self.client.post(self._path("diff"), json=body, idempotent=True)
        return answer

    def plan(
        self,
        sql: str | None = None,
        *,
        udf_python: str | None = None,
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str | os.PathLike[str]] = (),
        stream_arguments: Sequence[str] | None = None,
    ) -> PendingChange:
        """Return the effects on the running pipeline of continuing with another program, without stopping or delaying it.

        Pass the ``programs`` of the result to :meth:`approve` to approve exactly this change later.

        :param sql: the other program; None for the running one
        :param udf_python: its Python module; None for that of the running one
        :param stream_program: its stream program, as for :meth:`modify`; None for the running one
        :param stream_files: other files of the stream program
        :param stream_arguments: its command line; None for that of the running one
        :returns: the difference, with both declarations of each relation that differs; the views to evaluate, with the rows that
            are read for them and an estimate in seconds; the dropped relations; the operators of the stream program with the state
            that they keep and drop, and the lines in which its files differ; and the reasons for a refusal. It equals
            :meth:`pending_change` after the pipeline was stopped, modified and started
        :raises PipelineAPIError: when the other program does not compile (``InvalidNewProgramSql``), or the pipeline is not running
        """
        fields = {"program_code": sql, "udf_python": udf_python}
        body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        body |= StreamProgramArguments.collect(stream_program, stream_files, stream_arguments).to_wire()
        return PendingChange.from_dict(self.client.post(self._path("plan"), json=body, idempotent=True))
