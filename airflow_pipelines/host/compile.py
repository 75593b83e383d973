"""Compiling on a host: the engine's compiler, and then the connectors' declarations."""

from __future__ import annotations

from airflow_pipelines.connectors.base import UnknownOptionError
from airflow_pipelines.connectors.registry import validate
from airflow_pipelines.engine.compiler import CompiledProgram, compile_program
from airflow_pipelines.engine.sessions import SparkSessions
from airflow_pipelines.sql.errors import COMPILATION_ERROR, ProgramErrors, ProgramMessage


def compile_checked(text: str, sessions: SparkSessions) -> CompiledProgram:
    """Compile a program and check its connectors. Raises ProgramErrors with the places of all errors found."""
    compiled = compile_program(text, sessions)
    messages = []
    for connector in compiled.program.connectors():
        try:
            validate(connector, compiled.schemas[connector.relation])
        except UnknownOptionError as error:
            messages.append(ProgramMessage(connector.span, COMPILATION_ERROR, str(error)))
    if messages:
        raise ProgramErrors(messages)
    return compiled
