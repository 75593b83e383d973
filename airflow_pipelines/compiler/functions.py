"""The compilation of a program's functions: Python functions are registered, the expressions of SQL functions are checked."""

from __future__ import annotations

from airflow_pipelines.compiler.compilation import Compilation
from airflow_pipelines.compiler.variants import analyze_variants
from airflow_pipelines.engine.functions.python_functions import register_functions
from airflow_pipelines.engine.spark.analysis import QueryRefused
from airflow_pipelines.program.functions import FunctionDefinition, FunctionKind
from airflow_pipelines.program.names import display, quote
from airflow_pipelines.sql.program.function_bodies import FunctionBody
from airflow_pipelines.sql.rewrite.casts import spark_type
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import spell_for_spark
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure
from airflow_pipelines.sql.syntax.edits import Edited


def add_functions(compilation: Compilation) -> None:
    """Register the Python functions, and check that the expression of each SQL function can be cast to the function's type."""
    program = compilation.program
    register_functions(compilation.analyzer.session, program.definitions.python_functions)
    for function in program.definitions.functions.values():
        if function.kind is FunctionKind.SQL:
            _check_body(compilation, function, program.bodies[function.name])


def _check_body(compilation: Compilation, function: FunctionDefinition, body: FunctionBody) -> None:
    nulls = ", ".join(f"CAST(NULL AS {spark_type(item.type)}) AS {quote(item.name)}" for item in function.parameters)
    relation = f" FROM (SELECT {nulls})" if nulls else ""
    try:
        edits = spell_for_spark(body.edits, compilation.program.definitions)
    except CallRefused as refused:
        _note(compilation, function, body.offset + refused.start, body.offset + refused.end, refused.message)
        return
    cast = f"SELECT CAST(({edits.text}) AS {spark_type(function.returns)})"
    start = len("SELECT CAST((")
    try:
        analyze_variants(Edited(f"{cast}{relation}"), compilation.analysis, compilation.analyzer)
    except (QueryRefused, SyntaxFailure) as refused:
        first = min(max(refused.start - start, 0), max(len(edits.text) - 1, 0))
        last = max(min(refused.end - start, len(edits.text)), first + 1)
        place, end = edits.origin(first, last)
        _note(compilation, function, body.offset + place, body.offset + end, refused.message)


def _note(compilation: Compilation, function: FunctionDefinition, start: int, end: int, message: str) -> None:
    span = compilation.source.span(start, end)
    compilation.note(span, f"The expression of function {display(function.name)} is wrong: {message}")
