"""A program's Python functions: their checks at compile time, and their registration in the sessions that run its queries."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from airflow_pipelines.engine.functions import python_probe
from airflow_pipelines.engine.spark import python_worker
from airflow_pipelines.engine.spark.python_udfs import register_pandas, register_scalar, send_by_value
from airflow_pipelines.program.functions import FunctionDefinition
from airflow_pipelines.program.messages import COMPILATION_ERROR, SYNTAX_ERROR, ProgramErrors, ProgramMessage
from airflow_pipelines.program.names import display
from airflow_pipelines.program.source_text import SourceText

IMPORT_TIMEOUT_S = 60.0
"""The time limit, in seconds, of importing a program's module."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A function of a module.

    :param name: its name in the module
    :param fewest: the minimum number of positional arguments
    :param most: the maximum number of positional arguments; None for any number
    :param vectorised: True if it takes pandas Series
    """

    name: str
    fewest: int
    most: int | None
    vectorised: bool


class ModuleRefused(Exception):
    """The error of a program's Python module that cannot be imported. ``message`` has the reason and the place in the module."""

    def __init__(self, message: ProgramMessage) -> None:
        super().__init__(message.message)
        self.message = message


def import_module(module: str) -> None:
    """Import a program's Python module before the program is compiled, so that no other compilation waits for the import.

    :param module: the module's text
    :raises ProgramErrors: if it cannot be imported
    """
    if module.strip():
        try:
            _load_functions(module)
        except ModuleRefused as refused:
            raise ProgramErrors([refused.message]) from refused


def check_functions(source: SourceText, functions: Sequence[FunctionDefinition], module: str) -> list[ProgramMessage]:
    """Return the errors of a program's Python module, and of declarations that do not match it.

    :param source: the program's text
    :param functions: the program's functions without a body
    :param module: the module's text
    """
    if not functions and not module.strip():
        return []
    if not module.strip():
        return [source.message(function.span, COMPILATION_ERROR, _describe_missing_module(function)) for function in functions]
    try:
        candidates = _load_functions(module)
    except ModuleRefused as refused:
        return [refused.message]
    messages = []
    for function in functions:
        problem = _find_problem(function, candidates)
        if problem is not None:
            messages.append(source.message(function.span, COMPILATION_ERROR, problem))
    return messages


def register_functions(session: SparkSession, functions: Iterable[FunctionDefinition]) -> None:
    """Register Python functions under their Spark names, so that queries of a session can call them.

    :param session: the session
    :param functions: the functions, for which :func:`check_functions` found no error
    """
    for function in functions:
        match = _match(function, _load_functions(function.module))
        if match is None:
            raise AssertionError(f"function {function.name} was not checked")
        field = {"name": "r", "type": function.returns.spark_json(), "nullable": True, "metadata": {}}
        returns = StructField.fromJson(field).dataType
        text, digest = function.module, _digest(function.module)
        if match.vectorised:
            register_pandas(session, function.spark_name, python_worker.vectorised(digest, text, match.name), returns)
        else:
            checked = StructType([StructField("r", returns)]).jsonValue()["fields"][0]["type"]
            register_scalar(session, function.spark_name, python_worker.scalar(digest, text, match.name, checked), returns)


def _describe_missing_module(function: FunctionDefinition) -> str:
    return (
        f"Function {display(function.name)} has no body: add AS <expression>, or give the pipeline a Python module (udf_python) "
        "with a function of that name"
    )


def _find_problem(function: FunctionDefinition, candidates: Mapping[str, _Found]) -> str | None:
    match = _match(function, candidates)
    if match is None:
        known = ", ".join(sorted(candidates)) or "none"
        return f"Function {display(function.name)} has no body, and udf_python has no function of that name; it has: {known}"
    count = len(function.parameters)
    noun = "parameter" if count == 1 else "parameters"
    if count < match.fewest or (match.most is not None and count > match.most):
        takes = str(match.fewest) if match.fewest == match.most else f"{match.fewest} to {match.most or 'any number'}"
        return f"Function {display(function.name)} has {count} {noun}, and the Python function {match.name} takes {takes}"
    if match.vectorised and not count:
        return f"Function {display(function.name)} has no parameters, so the Python function cannot work on Series"
    return None


def _match(function: FunctionDefinition, candidates: Mapping[str, _Found]) -> _Found | None:
    """Return the Python function for a declaration.

    SQL names are case-insensitive; a function whose name is in lower case is preferred.
    """
    if function.name in candidates:
        return candidates[function.name]
    return next((candidate for name, candidate in sorted(candidates.items()) if name.lower() == function.name), None)


@lru_cache(maxsize=64)
def _load_functions(module: str) -> Mapping[str, _Found]:
    """Return the functions of a module, which is imported in a process of its own.

    :raises ModuleRefused: when it cannot be imported
    """
    try:
        ast.parse(module)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
        raise ModuleRefused(_module_message(module, SYNTAX_ERROR, str(getattr(error, "msg", error)), line, column)) from error
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    command = [os.environ.get("PYSPARK_PYTHON") or sys.executable, python_probe.__file__ or ""]
    try:
        run = subprocess.run(
            command,
            input=module.encode(),
            capture_output=True,
            timeout=IMPORT_TIMEOUT_S,
            env=environment,
            cwd=Path("/"),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"importing it takes more than {IMPORT_TIMEOUT_S:.0f} s"
        raise ModuleRefused(_module_message(module, COMPILATION_ERROR, message, None, None)) from error
    lines = run.stdout.decode("utf-8", "replace").strip().splitlines()
    try:
        answer = json.loads(lines[-1] if lines else "")
    except ValueError as error:
        said = run.stderr.decode("utf-8", "replace").strip().splitlines()
        message = f"importing it ended Python with code {run.returncode}: {said[-1] if said else 'without a message'}"
        raise ModuleRefused(_module_message(module, COMPILATION_ERROR, message, None, None)) from error
    failed = answer.get("error")
    if failed is not None:
        message = f"{failed['type']}: {failed['message']}"
        raise ModuleRefused(_module_message(module, COMPILATION_ERROR, message, failed["line"], failed["column"]))
    return {name: _Found(name, **described) for name, described in answer["functions"].items()}


def _module_message(module: str, error_type: str, message: str, line: int | None, column: int | None) -> ProgramMessage:
    """Return a message about the module. Its text names the place, because the places of messages refer to the program."""
    if line is None:
        return ProgramMessage(None, error_type, f"udf_python: {message}")
    source = SourceText(module)
    start = source.offset(line, max(1, column or 1))
    where = f"udf_python, line {line}" + (f", column {column}" if column else "")
    return ProgramMessage(None, error_type, f"{where}: {message}", source.snippet(source.span(start, start + 1)))


def _digest(module: str) -> str:
    return "udf_python_" + hashlib.sha256(module.encode("utf-8", "surrogatepass")).hexdigest()[:16]


send_by_value(python_worker)
