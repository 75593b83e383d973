"""Compiling on a host: the engine's compiler together with the check of the connectors' declarations."""

from __future__ import annotations

import math

from airflow_pipelines.compiler.compiler import CompiledProgram, compile_program
from airflow_pipelines.connectors.registry import validate
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.sources import ProgramSource


def compile_checked(source: ProgramSource, sessions: SparkSessions, limit_s: float = math.inf) -> CompiledProgram:
    """Compile a program and check its connectors, within about ``limit_s`` seconds.

    :raises ProgramErrors: with the places of all errors found
    """
    return compile_program(source.sql, sessions, check_connector=validate, udf_python=source.python_functions, limit_s=limit_s)
