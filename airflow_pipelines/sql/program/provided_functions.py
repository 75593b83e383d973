"""Functions that every program has although Spark lacks them: Python functions with a module of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.functions import FunctionDefinition, FunctionKind, Parameter
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.types import ColumnType

_GUNZIP = '''"""What GUNZIP does."""

import gzip


def gunzip(data):
    """The text that some bytes hold in gzip's format."""
    return None if data is None else gzip.decompress(bytes(data)).decode("utf-8")
'''
PROVIDED: Mapping[str, FunctionDefinition] = {
    "gunzip": FunctionDefinition(
        "gunzip",
        FunctionKind.PYTHON,
        (Parameter("data", ColumnType("VARBINARY")),),
        ColumnType("VARCHAR"),
        Span(1, 1, 1, 1),
        module=_GUNZIP,
    )
}
"""The functions by their names."""
_CALL = re.compile(rf"\b({'|'.join(PROVIDED)})\s*\(", re.I)


def with_provided(definitions: Definitions, text: str) -> Definitions:
    """Return a program's types and functions, and those provided functions that a text seems to call.

    A function of the program takes precedence over a provided one of the same name.

    :param definitions: the program's own types and functions
    :param text: the program's text
    """
    called = {name.lower() for name in _CALL.findall(text)} - definitions.functions.keys()
    if not called:
        return definitions
    return replace(definitions, functions={**definitions.functions, **{name: PROVIDED[name] for name in sorted(called)}})


def is_provided(function: FunctionDefinition) -> bool:
    """Return True if a function is a provided one."""
    return PROVIDED.get(function.name) == function
