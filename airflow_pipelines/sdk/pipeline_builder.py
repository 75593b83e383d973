"""The creation of pipelines."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from airflow_pipelines.contract.enums import CompilationProfile, PipelineStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineFailedError, refused_program
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from airflow_pipelines.sdk.runtime_config import RuntimeConfig
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource

_POSSIBLE_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""The pattern of valid pipeline names. Other names are not put into a path, where they would have another meaning."""


class PipelineBuilder:
    """The definition of a pipeline, and the two ways to create it.

    :param client: the client to reach the service with
    :param name: letters, digits, ``-`` and ``_``, at most 63, beginning and ending with a letter or digit
    :param sql: the program's SQL text; may be empty beside a stream program
    :param udf_rust: Rust code of user-defined functions; any non-empty text is a program error, since programs run on Spark
    :param udf_toml: Rust dependencies; as ``udf_rust``
    :param description: at most 300 characters
    :param compilation_profile: kept for compatibility and without effect, since programs run on Spark
    :param runtime_config: the runtime configuration; default :meth:`RuntimeConfig.default`
    :param runtime_version: the version to compile with; default the service's
    :param tags: tags of the pipeline
    :param udf_python: a Python module with the functions that the program declares by ``CREATE FUNCTION`` without ``AS``. A
        function whose type hints are pandas Series works on many rows at once.
    :param stream_program: a stream program in Python: the path of its file, which brings along the modules of its folder that it
        imports; or of a folder with a ``__main__.py``; or the program's text (a str with a line break); or the texts of all its
        files by path, with the file that is executed first
    :param stream_files: other files and folders that the stream program needs, relative to its folder
    :param stream_arguments: the stream program's command line
    :raises StreamFilesError: when a file of the stream program is missing or cannot be used
    """

    def __init__(
        self,
        client: PipelineClient,
        name: str,
        sql: str = "",
        udf_rust: str = "",
        udf_toml: str = "",
        description: str = "",
        compilation_profile: CompilationProfile = CompilationProfile.OPTIMIZED,
        runtime_config: RuntimeConfig | None = None,
        runtime_version: str | None = None,
        *,
        tags: list[str] | None = None,
        udf_python: str = "",
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str | os.PathLike[str]] = (),
        stream_arguments: Sequence[str] | None = None,
    ) -> None:
        self.client = client
        self.name = name
        self.sql = sql
        self.udf_rust = udf_rust
        self.udf_toml = udf_toml
        self.description = description
        self.compilation_profile = compilation_profile
        self.runtime_config = runtime_config if runtime_config is not None else RuntimeConfig.default()
        self.runtime_version = runtime_version
        self.tags = tags
        self.udf_python = udf_python
        self.streams = StreamProgramArguments.collect(stream_program, stream_files, stream_arguments)

    def create(self, wait: bool = True, timeout_s: float | None = None) -> Pipeline:
        """Create the pipeline.

        :param wait: True to wait until its program is compiled
        :param timeout_s: the maximum number of seconds to wait for that; None waits without limit
        :returns: the pipeline, stopped
        :raises RuntimeError: when a pipeline of that name exists, or the program does not compile (``ProgramCompilationError``,
            with the compiler's messages); in the second case the pipeline exists and can be modified
        :raises PipelineAPIError: when the service refuses, for instance an invalid name
        :raises PipelineTimeoutError: when compiling takes too long
        """
        if self._find_existing() is not None:
            raise PipelineFailedError(
                f"pipeline {self.name!r} exists already: use create_or_replace(), or Pipeline.get() and modify()"
            )
        descriptor = self.client.post("/v0/pipelines", json=self._body())
        return self._finish_creation(descriptor, wait, timeout_s)

    def create_or_replace(self, wait: bool = True, timeout_s: float | None = None) -> Pipeline:
        """Create the pipeline, or replace one of its name, which is stopped by force and loses everything it has stored.

        The existing pipeline is left alone if the new one's configuration is invalid, its program is empty, or its program does not
        compile while the existing one's does.

        :param wait: True to wait until its program is compiled
        :param timeout_s: the maximum number of seconds to wait for each step; None waits without limit
        :returns: the pipeline, stopped and empty
        :raises RuntimeError: when the program does not compile (``ProgramCompilationError``, with the compiler's messages)
        :raises PipelineAPIError: when the service refuses, for instance an invalid name
        :raises PipelineTimeoutError: when stopping, clearing or compiling takes too long
        """
        if not self._is_possible():
            # The service refuses it, with the contract's code and what a name may look like.
            return self._finish_creation(self.client.post("/v0/pipelines", json=self._body()), wait, timeout_s)
        existing = self._find_existing()
        if existing is not None:
            self._check_replaces(existing)
            existing.stop(force=True, timeout_s=timeout_s)
            existing.clear_storage(timeout_s=timeout_s)
            existing.dismiss_error()
        probe = Pipeline(self.client)
        probe._name = self.name
        descriptor = self.client.put(probe._path(), json=self._body(), params={"allow_compile_errors": False})
        return self._finish_creation(descriptor, wait, timeout_s)

    def _check_replaces(self, existing: Pipeline) -> None:
        """Check that this pipeline may replace the existing one, before anything is deleted."""
        try:
            self.client.post(existing._path("validate"), json=self._body(), idempotent=True)
        except PipelineAPIError as error:
            raise refused_program(error, self.name) from error

    def _is_possible(self) -> bool:
        return _POSSIBLE_NAME.fullmatch(self.name or "") is not None

    def _find_existing(self) -> Pipeline | None:
        if not self._is_possible():
            return None
        try:
            pipeline = Pipeline.get(self.name, self.client)
        except PipelineAPIError as error:
            if error.error_code == ErrorCode.UNKNOWN_PIPELINE_NAME:
                return None
            raise
        return None if pipeline.status() is PipelineStatus.NOT_FOUND else pipeline

    def _finish_creation(self, descriptor: dict[str, Any], wait: bool, timeout_s: float | None) -> Pipeline:
        pipeline = Pipeline._of(descriptor, self.client)
        if wait:
            pipeline._wait_for_compilation(int(descriptor["program_version"]), timeout_s)
        return pipeline

    def _body(self) -> dict[str, Any]:
        program_config: dict[str, Any] = {}
        if self.compilation_profile is not CompilationProfile.SERVER_DEFAULT:
            program_config["profile"] = self.compilation_profile.value
        if self.runtime_version is not None:
            program_config["runtime_version"] = self.runtime_version
        body = {
            "name": self.name,
            "description": self.description,
            "program_code": self.sql,
            "udf_rust": self.udf_rust,
            "udf_toml": self.udf_toml,
            "program_config": program_config,
            "runtime_config": self.runtime_config.to_dict(),
            **self.streams.to_wire(),
        }
        if self.udf_python:
            body["udf_python"] = self.udf_python
        if self.tags is not None:
            body["tags"] = self.tags
        return body
