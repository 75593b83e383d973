"""The steps of a program's compilation, from pending to success or to an error."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service.records import PipelineRecord

COMPILED: Final = {"exit_code": 0, "stdout": "", "stderr": ""}
"""The result of a successful second compile stage. Spark needs no second stage, but the contract shows one."""


RUST_REFUSED: Final = (
    "Functions written in Rust are not supported: programs run on Spark. Remove udf_rust and udf_toml, and write the function's "
    "expression in SQL, or the function in Python (udf_python)"
)


def claim_compilation(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Claim the compilation of a pending program, or of one whose compiler has gone."""
    return replace(_program(record, CompilationStatus.COMPILING_SQL, now), compile_claimed_at=now)


def sql_compiled(
    record: PipelineRecord, program_info: dict[str, Any], messages: list[dict[str, Any]], now: datetime
) -> PipelineRecord:
    """Record that the SQL of the program was compiled.

    :param record: the pipeline
    :param program_info: the program's relations and connectors, as the wire has them
    :param messages: the compiler's warnings, as the wire has them
    :param now: the time of the change
    """
    return replace(
        _program(record, CompilationStatus.SQL_COMPILED, now),
        program_info=program_info,
        program_error=_program_error({"exit_code": 0, "messages": messages}),
        refresh_version=record.refresh_version + 1,
    )


def compiling_second_stage(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Enter the contract's second compile stage, which takes no time here."""
    return _program(record, CompilationStatus.COMPILING_RUST, now)


def complete_compilation(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Record that the program can run."""
    return replace(
        _program(record, CompilationStatus.SUCCESS, now),
        program_error={**(record.program_error or {}), "rust_compilation": COMPILED},
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def remaining_steps(
    record: PipelineRecord, program_info: dict[str, Any], messages: list[dict[str, Any]], now: datetime
) -> list[PipelineRecord]:
    """Return all steps from a claimed compilation whose SQL compiled to the end of the compilation.

    :param record: the pipeline
    :param program_info: the program's relations and connectors, as the wire has them
    :param messages: the compiler's warnings, as the wire has them
    :param now: the time of the changes
    """
    first = sql_compiled(record, program_info, messages, now)
    second = compiling_second_stage(first, now)
    if record.udf_rust.strip() or record.udf_toml.strip():
        return [first, second, rust_refused(second, now)]
    return [first, second, complete_compilation(second, now)]


def rust_refused(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Record that the program has Rust functions, which Spark cannot run; their text is repeated so that it is not lost."""
    message = f"{RUST_REFUSED}. The text was:\n{record.udf_rust or record.udf_toml}"
    failed = {"exit_code": 1, "stdout": "", "stderr": message}
    return replace(
        _program(record, CompilationStatus.RUST_ERROR, now),
        program_error={**(record.program_error or {}), "rust_compilation": failed},
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def sql_failed(record: PipelineRecord, messages: list[dict[str, Any]], now: datetime) -> PipelineRecord:
    """Record that the program is invalid."""
    error = _program_error({"exit_code": 1, "messages": messages})
    return replace(
        _program(record, CompilationStatus.SQL_ERROR, now),
        program_error=error,
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def compiler_failed(record: PipelineRecord, message: str, now: datetime) -> PipelineRecord:
    """Record that the compiler failed; the program may be valid."""
    return replace(
        _program(record, CompilationStatus.SYSTEM_ERROR, now),
        program_error=_program_error(None) | {"system_error": message},
        compile_claimed_at=None,
        refresh_version=record.refresh_version + 1,
    )


def reset_program(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Reset the program, so that it is compiled again from the start."""
    return replace(_program(record, CompilationStatus.PENDING, now), program_info=None, program_error=None, compile_claimed_at=None)


def _program(record: PipelineRecord, status: CompilationStatus, now: datetime) -> PipelineRecord:
    return replace(record, program_status=status, program_status_since=now)


def _program_error(sql_compilation: dict[str, Any] | None) -> dict[str, Any]:
    return {"sql_compilation": sql_compilation, "rust_compilation": None, "system_error": None}
