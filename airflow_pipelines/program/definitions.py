"""The definitions of a program besides relations: named types and functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_pipelines.program.functions import FunctionDefinition, FunctionKind
from airflow_pipelines.rows.types import ColumnType


@dataclass(frozen=True, slots=True)
class Definitions:
    """The types and functions of a program by their canonical names. A program without any has the default value."""

    types: Mapping[str, ColumnType] = field(default_factory=dict)
    functions: Mapping[str, FunctionDefinition] = field(default_factory=dict)

    @property
    def python_functions(self) -> tuple[FunctionDefinition, ...]:
        """The functions that are registered in Spark before a query is analyzed."""
        return tuple(function for function in self.functions.values() if function.kind is FunctionKind.PYTHON)
