"""Binding of a program to the pipeline that it is deployed in: its execution then describes the program and runs nothing.

Each interface to streams asks :func:`is_binding` where it would run a program, notes the execution, and binds it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from airflow_pipelines.streams.deploying.description import Execution, describe
from airflow_pipelines.streams.errors import StreamProgramError

BINDING_FOLDER = "AIRFLOW_PIPELINES_STREAM_BINDING"
"""The environment variable that names the folder to which a program writes its description."""
DESCRIPTION, PLAN = "description.json", "plan"
"""The files in that folder."""
_PACKAGE = str(Path(__file__).parents[2])


class BindingError(StreamProgramError):
    """A request that a program deployed as a pipeline cannot make."""


def is_binding() -> bool:
    """Return True if programs of this process are bound to a pipeline instead of being run."""
    return BINDING_FOLDER in os.environ


def note_execution() -> None:
    """Record that the program calls ``execute``.

    :raises BindingError: if it has done so before
    """
    _EXECUTIONS.append(_find_caller())
    if len(_EXECUTIONS) > 1:
        raise BindingError(executed_twice(_EXECUTIONS))


def bind_execution(execution: Execution) -> None:
    """Write the description of a program.

    :param execution: the execution that the program asks for
    """
    folder = Path(os.environ[BINDING_FOLDER])
    program = describe(execution, Path.cwd())
    (folder / PLAN).write_bytes(program.plan)
    (folder / DESCRIPTION).write_text(json.dumps(program.to_json()))


_EXECUTIONS: list[str] = []
_WARNINGS: list[str] = []


def executions() -> Sequence[str]:
    """Return the places where this process called ``execute``: file and line of each call, including refused ones."""
    return tuple(_EXECUTIONS)


def warn(message: str) -> None:
    """Record a warning for the author of the program, which does not prevent its deployment.

    :param message: one or two sentences
    """
    _WARNINGS.append(message)


def warnings() -> Sequence[str]:
    """Return the warnings for the author of the program."""
    return tuple(_WARNINGS)


def executed_twice(places: Sequence[str]) -> str:
    """Return the message that a program cannot be executed more than once.

    :param places: the places where it was executed
    :returns: a sentence
    """
    return (
        f"The program calls execute() {len(places)} times, at {' and at '.join(places)}. A pipeline runs one program: add all"
        " sinks, and then call execute() once."
    )


def _find_caller() -> str:
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    shown = file.relative_to(Path.cwd()) if file.is_absolute() and file.is_relative_to(Path.cwd()) else file
    return f"{shown}:{frame.f_lineno}"
