"""The compilation of programs on the shared host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from tenacity import retry_if_exception

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.deployers.base import SubmitError
from airflow_pipelines.service.deployers.shared import START_LIMIT_S, SharedDeployer
from airflow_pipelines.service.hosts import Hosts, HostTimeout, HostUnreachable, raise_for_problem
from airflow_pipelines.service.records import PipelineRecord

COMPILE_TIMEOUT_S = 110.0
"""The number of seconds for which a request waits for the compiler; a repeated request gets a result compiled meanwhile."""
PATIENCE_S = 3 * 3600.0
"""The number of seconds for which a pipeline waits for the compiler while its host lives: longer than the compiler's own limit."""
HOST_START_WAIT_S = START_LIMIT_S + 60.0
COMPILE_ATTEMPTS = 3
"""The number of lost hosts after which a program is not given to another one, since it may be what kills them."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of compiling: the contract's program_info, or the error messages."""

    program_info: dict[str, Any] | None
    messages: list[dict[str, Any]]


class ProgramCompiler:
    """A compiler of programs that need not belong to a pipeline; it waits for a host.

    :param hosts: the hosts of the store
    :param shared: the deployer of the shared host
    """

    def __init__(self, hosts: Hosts, shared: SharedDeployer) -> None:
        self._hosts = hosts
        self._shared = shared

    def compile(self, source: ProgramSource, *, with_dataflow: bool = False) -> Compiled:
        """Compile a program. The shared host is started if there is none, which takes a while.

        :param source: its source
        :param with_dataflow: True to include the dataflow graph in the description
        :raises Problem: when there is no compiler, or it fails
        """
        attempts = RetryPolicy(attempts=COMPILE_ATTEMPTS).retrying(retry_if_exception(is_lost_compiler))
        try:
            return attempts(lambda: compile_source(self._hosts, self.await_host(), source, with_dataflow=with_dataflow))
        except HostTimeout as error:
            raise still_at_work(error) from error
        except (SubmitError, HostUnreachable) as error:
            raise _unavailable(error) from error

    def difference(self, old: ProgramSource, new: ProgramSource) -> dict[str, Any]:
        """Return the difference between two programs, in the contract's form. The shared host is started if there is none.

        :param old: a program that compiled
        :param new: the program that is to replace it
        :raises Problem: when the new program does not compile or cannot continue from the old one's state, or there is no compiler
        """
        body = {"old": old.to_wire(), "new": new.to_wire()}
        try:
            response = self._hosts.call(self.await_host(), "POST", "/diff", json=body, timeout_s=COMPILE_TIMEOUT_S)
        except HostTimeout as error:
            raise still_at_work(error) from error
        except (SubmitError, HostUnreachable) as error:
            raise _unavailable(error) from error
        raise_for_new_program(response)
        answer: dict[str, Any] = response.json()
        return answer

    def await_host(self) -> HostRecord:
        """Wait for the shared host and return it once it is up; looking for it ends a host that hangs.

        :raises SubmitError: when it does not come up
        """
        deadline = time.monotonic() + HOST_START_WAIT_S
        while (host := self._shared.host()) is None:
            if time.monotonic() > deadline:
                raise SubmitError(f"the shared host did not come up within {HOST_START_WAIT_S:g} s")
            time.sleep(0.1)
        return host


def raise_for_new_program(response: httpx.Response) -> None:
    """Raise the error of a host's answer about a program that is to replace another.

    :param response: the host's answer
    :raises Problem: ``InvalidNewProgramSql`` when the program does not compile, or any other error of the host
    """
    try:
        raise_for_problem(response)
    except Problem as problem:
        if problem.code is not ErrorCode.SQL_ERROR:
            raise
        details = {"sql_compilation": {"exit_code": 1, "messages": problem.details["messages"]}}
        message = f"The new program does not compile: {problem.message}"
        raise Problem(ErrorCode.INVALID_NEW_PROGRAM_SQL, message, details) from problem


def still_at_work(error: HostTimeout) -> Problem:
    """Return the Problem of a request whose compiler is alive and has not finished."""
    return Problem(
        ErrorCode.COMPILER_TIMEOUT,
        f"The compiler is still at work: {error}. Its host lives, and keeps what it compiles: try again in a while",
    )


def _unavailable(error: Exception) -> Problem:
    return Problem(ErrorCode.COMPILER_UNAVAILABLE, f"The compiler is not available: {error}")


def compile_on(hosts: Hosts, host: HostRecord, record: PipelineRecord, on_look: Callable[[], None]) -> Compiled:
    """Compile a pipeline's program, however busy the host is: the call waits as long as the host lives.

    :param hosts: the hosts of the store
    :param host: the host that compiles
    :param record: the pipeline
    :param on_look: a function to call now and then while the host is at work
    :raises Problem: when the compiler itself fails
    :raises HostUnreachable: when its host died
    """
    body = record.source.to_wire() | {"ir": False}
    return _parse_result(hosts.call_while_alive(host, "POST", "/compile", json=body, timeout_s=PATIENCE_S, on_look=on_look))


def is_lost_compiler(error: BaseException) -> bool:
    """Return True if another host may compile the program; a host that is merely slow is not lost."""
    return isinstance(error, HostUnreachable) and not isinstance(error, HostTimeout)


def compile_source(hosts: Hosts, host: HostRecord, source: ProgramSource, *, with_dataflow: bool = False) -> Compiled:
    """Compile a program that need not belong to a pipeline.

    :param hosts: the hosts of the store
    :param host: the host that compiles
    :param source: the program's source
    :param with_dataflow: True to include the dataflow graph in the description
    :raises Problem: when the compiler itself fails
    :raises HostTimeout: when it takes longer than the caller should wait
    :raises HostUnreachable: when its host died
    """
    body = source.to_wire() | {"ir": with_dataflow}
    return _parse_result(hosts.call(host, "POST", "/compile", json=body, timeout_s=COMPILE_TIMEOUT_S))


def _parse_result(response: httpx.Response) -> Compiled:
    try:
        raise_for_problem(response)
    except Problem as problem:
        if problem.code is ErrorCode.SQL_ERROR:
            return Compiled(None, problem.details["messages"])
        raise
    answer = response.json()
    return Compiled(answer["program_info"], answer.get("messages") or [])
