"""The rules by which a program may replace another: it must not be empty, and it must compile if the other does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.compiling import Compiled
from airflow_pipelines.service.lifecycle.compilation import RUST_REFUSED
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


class Replacement:
    """The check of programs before they replace others. Each source is compiled once, even if the pipeline changes meanwhile."""

    def __init__(self, compile_source: Callable[[ProgramSource], Compiled]) -> None:
        self._compile_source = compile_source
        self._found: dict[ProgramSource, Compiled] = {}

    def check(self, before: PipelineRecord, after: PipelineRecord) -> Compiled | None:
        """Compile the program of ``after`` if it differs and could replace one that compiles.

        :param before: the pipeline as it is
        :param after: the pipeline as it should be
        :returns: the result of compiling; None if there was nothing to check
        :raises Problem: 400 ``EmptyProgram`` when the new program has neither a statement nor stream files and the old one has
            some, and ``InvalidNewProgramSql`` when it does not compile and the old one does
        """
        if _has_program(before) and not _has_program(after):
            raise Problem(
                ErrorCode.EMPTY_PROGRAM,
                f"The new program of pipeline '{before.name}' is empty, so the one it has was kept: its tables and their rows "
                "would go with it. Give the program's text; with allow_compile_errors=true it takes the place of the other "
                "nevertheless",
            )
        if _texts(before) == _texts(after) or before.program_status in COMPILE_ERRORS:
            return None
        compiled = self._compile(after)
        messages = _rust(after) or (compiled.messages if compiled.program_info is None else [])
        if not messages:
            return compiled
        # The old program may not be compiled yet, and may not compile either.
        if before.program_status is not CompilationStatus.SUCCESS and (_rust(before) or self._compile(before).program_info is None):
            return None
        raise Problem(
            ErrorCode.INVALID_NEW_PROGRAM_SQL,
            f"The new program of pipeline '{before.name}' does not compile, so the one it has was kept: {_join_errors(messages)}. "
            "Correct it; with allow_compile_errors=true it takes the place of the other nevertheless",
            {"sql_compilation": {"exit_code": 1, "messages": messages}},
        )

    def _compile(self, record: PipelineRecord) -> Compiled:
        source = record.source
        if source not in self._found:
            self._found[source] = self._compile_source(source)
        return self._found[source]


def _texts(record: PipelineRecord) -> tuple[ProgramSource, bool]:
    return record.source, bool(_rust(record))


def _rust(record: PipelineRecord) -> list[dict[str, Any]]:
    """Return the message that refuses functions in Rust; empty if the program has none."""
    has_rust = record.udf_rust.strip() or record.udf_toml.strip()
    return [{"message": RUST_REFUSED, "error_type": "Unsupported", "warning": False}] if has_rust else []


def _has_program(record: PipelineRecord) -> bool:
    return bool(record.stream_files or _COMMENT.sub(" ", record.program_code).replace(";", " ").strip())


def _join_errors(messages: list[dict[str, Any]]) -> str:
    wrong = [message for message in messages if not message.get("warning")]
    return "; ".join(f"{_place(message)}{str(message.get('message', '')).rstrip('.')}" for message in wrong)


def _place(message: dict[str, Any]) -> str:
    file, line = message.get("file"), message.get("start_line_number")
    return (f"{file}: " if file else "") + (f"line {line}, column {message.get('start_column')}: " if line else "")
