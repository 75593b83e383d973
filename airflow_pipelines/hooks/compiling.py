"""The validation and compilation of programs, with progress lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from airflow_pipelines.hooks.wait_log import WaitLog
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelinesError, PipelineTimeoutError, ProgramCompilationError, describe_program_error
from airflow_pipelines.sdk.wire import path_of

_STAGES = {"Pending": "waiting for a host that compiles it", "CompilingSql": "compiling"}


def validate(client: PipelineClient, name: str, program: Mapping[str, Any], *, timeout_s: float | None) -> None:
    """Compile a program without giving it to a pipeline.

    :param client: the client
    :param name: the pipeline that the program is meant for, for the message
    :param program: its wire fields: ``program_code``, ``udf_python``, ``stream_files``, ``stream_arguments``
    :param timeout_s: seconds to wait for the compiler; None for the client's own timeout
    :raises ProgramCompilationError: if it does not compile; the message has the lines, columns and reasons
    :raises PipelinesError: if the compiler itself failed
    """
    path, fields = path_of("validate_program"), {"ir": False, **program}
    answer = client.request("POST", path, json=fields, timeout_s=timeout_s, idempotent=True)
    if "SystemError" in answer:
        raise PipelinesError(f"The program for pipeline {name!r} could not be validated: {answer['SystemError']['error']}")
    if "SqlError" in answer:
        program_error = {"sql_compilation": answer["SqlError"]["info"]}
        text = describe_program_error(program_error)
        raise ProgramCompilationError(
            f"The program for pipeline {name!r} does not compile, so nothing was done:\n{text}", program_error
        )


def wait_until_compiled(
    look: Callable[[], Mapping[str, Any]],
    name: str,
    program_version: int,
    *,
    story: WaitLog,
    timeout_s: float,
    poll_interval_s: float,
) -> str:
    """Block until a version of a pipeline's program is compiled.

    :param look: a function that returns the pipeline with all fields, as the service sends it
    :param name: the pipeline's name
    :param program_version: the version to wait for; a later one is enough
    :param story: the progress lines of the wait
    :param timeout_s: maximum seconds to wait
    :param poll_interval_s: seconds between looks
    :returns: the compiler's warnings, empty if there are none
    :raises ProgramCompilationError: if it does not compile; the message has the lines, columns and reasons
    :raises PipelineTimeoutError: if the compiler did not finish in time
    """
    subject = f"waiting for the program of pipeline {name!r} to compile"
    deadline = time.monotonic() + timeout_s
    while True:
        descriptor = look()
        status = descriptor.get("program_status")
        program_error = descriptor.get("program_error") or {}
        if status == "Success" and descriptor["program_version"] >= program_version:
            return describe_program_error(program_error)
        if isinstance(status, str) and status.endswith("Error"):
            raise ProgramCompilationError(
                f"The program of pipeline {name!r} does not compile:\n{describe_program_error(program_error)}", program_error
            )
        if time.monotonic() > deadline:
            raise PipelineTimeoutError(f"{subject}: time is up, last seen: {status}")
        story.progress(subject, _STAGES.get(str(status), str(status)), time.time())
        time.sleep(poll_interval_s)
