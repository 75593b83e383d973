"""Compiles a pipeline's program on the shared host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.service.hosts import Hosts, HostTimeout, HostUnreachable, raise_for_problem
from airflow_pipelines.service.records import PipelineRecord

COMPILE_TIMEOUT_S = 110.0
COMPILE_ATTEMPTS = 3
"""A program with which so many hosts were lost is not given to another one: perhaps it is what they die of."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling gave: the contract's program_info, or the messages that say what is wrong."""

    program_info: dict[str, Any] | None
    messages: list[dict[str, Any]]


def compile_on(hosts: Hosts, host: HostRecord, record: PipelineRecord) -> Compiled:
    """Compile ``record``'s program on ``host``.

    Raises :class:`Problem` when the compiler itself fails and HostUnreachable when it died.
    """
    return compile_text(hosts, host, record.program_code, record.udf_python)


def is_lost_compiler(error: BaseException) -> bool:
    """Whether another host may compile what this one could not; one that takes too long is not lost."""
    return isinstance(error, HostUnreachable) and not isinstance(error, HostTimeout)


def compile_text(hosts: Hosts, host: HostRecord, program_code: str, udf_python: str) -> Compiled:
    """Compile a program that need not belong to a pipeline."""
    body = {"program_code": program_code, "udf_python": udf_python}
    response = hosts.call(host, "POST", "/compile", json=body, timeout_s=COMPILE_TIMEOUT_S)
    try:
        raise_for_problem(response)
    except Problem as problem:
        if problem.code is ErrorCode.SQL_ERROR:
            return Compiled(None, problem.details["messages"])
        raise
    answer = response.json()
    return Compiled(answer["program_info"], answer.get("messages") or [])
