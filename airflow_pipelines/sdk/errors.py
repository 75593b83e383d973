"""The errors of the SDK. Each names the request and the outcome, and carries the contract's code if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode


class PipelinesError(Exception):
    """The base of all errors that the SDK itself raises.

    >>> from airflow_pipelines import PipelineClient, PipelinesError
    >>> try:
    ...     PipelineClient("http://127.0.0.1:1").version()
    ... except PipelinesError as error:
    ...     print(type(error).__name__)
    PipelineUnreachableError
    """


class PipelineAPIError(PipelinesError):
    """An error answer of the service.

    :param status_code: HTTP status
    :param error_code: the contract's code, such as ``UnknownPipelineName``; empty if the answer had none
    :param message: the message of the service
    :param details: structured details, of a shape that depends on the code

    >>> error = PipelineAPIError(404, "UnknownPipelineName", "there is no pipeline 'shop'")
    >>> print(error)
    there is no pipeline 'shop' (UnknownPipelineName, HTTP 404)
    """

    def __init__(self, status_code: int, error_code: str, message: str, details: Any = None) -> None:
        super().__init__(status_code, error_code, message, details)
        self.status_code = status_code
        self.error_code = error_code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        code = f"{self.error_code}, " if self.error_code else ""
        return f"{self.message} ({code}HTTP {self.status_code})"


class PipelineConnectionError(PipelinesError, ConnectionError):
    """The error of a service that could not be reached, or of a connection that broke before the answer was complete.

    >>> issubclass(PipelineConnectionError, ConnectionError)
    True
    """


class PipelineUnreachableError(PipelineConnectionError):
    """The error of a connection that could not be made. The service has not seen the request, so any request may be repeated."""


class UntrustedServiceError(PipelinesError):
    """The error of a service whose certificate is not trusted. Nothing was sent, and trying again does not help."""


class PipelineTimeoutError(PipelinesError, TimeoutError, RuntimeError):
    """The error of a wait or a request that timed out. The message names what was awaited and the last state seen.

    It is a ``RuntimeError`` too, because some waits of the reference are documented to raise that on a timeout.

    >>> issubclass(PipelineTimeoutError, TimeoutError)
    True
    """


class PipelineFailedError(PipelinesError, RuntimeError):
    """The error of a pipeline that stopped, or never came up, while a caller waited for it.

    :param deployment_error: the pipeline's deployment error (``message, error_code, details``), or None if it was stopped on
        request

    >>> error = PipelineFailedError("pipeline 'shop' is stopped", {"message": "division by zero", "error_code": "x", "details": {}})
    >>> error.deployment_error["message"]
    'division by zero'
    """

    def __init__(self, message: str, deployment_error: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, deployment_error)
        self.deployment_error = deployment_error

    def __str__(self) -> str:
        return str(self.args[0])


class ProgramCompilationError(PipelinesError, RuntimeError):
    """The error of a program that does not compile. The text shows each message with the lines that it refers to.

    :param program_error: the pipeline's ``program_error`` as the service stores it

    >>> error = ProgramCompilationError("it does not compile", {"sql_compilation": {"exit_code": 1, "messages": []}})
    >>> error.program_error["sql_compilation"]["exit_code"]
    1
    """

    def __init__(self, message: str, program_error: Mapping[str, Any]) -> None:
        super().__init__(message, program_error)
        self.program_error = program_error

    def __str__(self) -> str:
        return str(self.args[0])


def refused_program(error: PipelineAPIError, name: str) -> PipelinesError:
    """Convert the error of a new program that does not compile, while the pipeline keeps the one it has.

    :param error: the service's answer
    :param name: the pipeline's name
    :returns: a ProgramCompilationError with the compiler's messages; any other error unchanged
    """
    if error.error_code != ErrorCode.INVALID_NEW_PROGRAM_SQL:
        return error
    program_error = dict(error.details or {})
    text = describe_program_error(program_error)
    return ProgramCompilationError(
        f"The new program of pipeline {name!r} does not compile, so the one it has was kept:\n{text}", program_error
    )


def describe_program_error(program_error: Mapping[str, Any]) -> str:
    """Return a readable text of a pipeline's ``program_error``: every SQL message with its place and snippet, then other causes.

    :param program_error: the wire object ``{sql_compilation, rust_compilation, system_error}``
    :returns: one paragraph per message; empty when there is nothing to tell
    """
    parts: list[str] = []
    sql = program_error.get("sql_compilation") or {}
    for message in sql.get("messages") or []:
        kind = message.get("error_type") or "Error"
        warning = "warning: " if message.get("warning") else ""
        file = f"{message['file']}:" if message.get("file") else ""
        line = f"{message['start_line_number']}:{message['start_column']}:" if message.get("start_line_number") else ""
        place = f"{file}{line} " if file or line else ""
        text = f"{place}{warning}{kind}: {message.get('message', '')}"
        snippet = message.get("snippet")
        parts.append(f"{text}\n{snippet}" if snippet else text)
    rust = program_error.get("rust_compilation") or {}
    if rust.get("exit_code"):
        parts.append("\n".join(text for text in (rust.get("stdout"), rust.get("stderr")) if text))
    if program_error.get("system_error"):
        parts.append(f"System error: {program_error['system_error']}")
    return "\n".join(parts)
