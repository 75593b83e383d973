"""Functions that a program defines for itself."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.program.column_types import ColumnType
from airflow_pipelines.program.places import Span


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
