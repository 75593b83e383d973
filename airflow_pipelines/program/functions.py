"""Functions that a program defines for itself."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.types import ColumnType


class FunctionKind(Enum):
    """The implementation of a function."""

    SQL = "sql"
    """An expression, which replaces every call."""
    JSON = "json"
    """A parser of JSON text into the function's type."""
    PYTHON = "python"
    """A function of the program's Python module."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A function's parameter; ``name`` is canonical."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A function of a program.

    :param name: its canonical name
    :param kind: its implementation
    :param parameters: its parameters, in order
    :param returns: the type of its result
    :param span: the span of its name
    :param body: the expression of a SQL function in Spark's syntax, with calls of the program's other functions replaced
    :param module: the text of a Python function's module
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
        """The name under which a Python function is registered in Spark: unique to its module, name and types."""
        signature = [self.module, self.name, [kind.type.to_wire() for kind in self.parameters], self.returns.to_wire()]
        digest = hashlib.sha256(json.dumps(signature).encode("utf-8", "surrogatepass")).hexdigest()
        return f"python_{re.sub(r'[^a-z0-9_]', '_', self.name)}_{digest[:12]}"
