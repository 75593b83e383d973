"""What a program defines for itself besides relations: named types and functions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from airflow_pipelines.sql.program.column_types import ColumnType
from airflow_pipelines.sql.program.parsed import Span
from airflow_pipelines.sql.syntax.edits import Edited

JSON_PREFIX = "jsonstring_as_"
"""A function without a body whose name starts so reads JSON text; its type says what it gives."""


class FunctionKind(Enum):
    """How a function is implemented."""

    SQL = "sql"
    """By an expression, which takes the place of every call."""
    JSON = "json"
    """By reading JSON text into the function's type."""
    PYTHON = "python"
    """By a function of the program's Python module."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A function's parameter; ``name`` is canonical."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A function of a program.

    ``body``: the expression of a SQL function as Spark is to read it, calls of other functions of the program replaced; empty for
    the other kinds. ``module``: the text of the Python module of
    a Python function. ``span``: the place of the name.
    """

    name: str
    kind: FunctionKind
    parameters: tuple[Parameter, ...]
    returns: ColumnType
    span: Span
    body: str = ""
    module: str = ""

    @property
    def spark_name(self) -> str:
        """The name under which Spark knows a Python function: another one whenever its module, name or types differ."""
        signature = [self.module, self.name, [kind.type.to_wire() for kind in self.parameters], self.returns.to_wire()]
        digest = hashlib.sha256(json.dumps(signature).encode("utf-8", "surrogatepass")).hexdigest()
        return f"python_{re.sub(r'[^a-z0-9_]', '_', self.name)}_{digest[:12]}"


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """The expression of a SQL function: where it starts in the program's text, and what became of it."""

    offset: int
    edits: Edited


@dataclass(frozen=True, slots=True)
class Definitions:
    """The types and functions of a program by their canonical names. A program without any has the default value."""

    types: Mapping[str, ColumnType] = field(default_factory=dict)
    functions: Mapping[str, FunctionDefinition] = field(default_factory=dict)

    @property
    def python_functions(self) -> tuple[FunctionDefinition, ...]:
        """The functions that Spark must be told of before it reads a query."""
        return tuple(function for function in self.functions.values() if function.kind is FunctionKind.PYTHON)
