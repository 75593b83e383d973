"""Inlines calls of a program's SQL functions, and calls its Python functions by their names in Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from airflow_pipelines.program.functions import FunctionDefinition, FunctionKind
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.rewrite.casts import cast_text, spark_type
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.dialect import parse_tokens, tokenise
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_FROM_JSON = frozenset({"ARRAY", "MAP", "STRUCT"})


def function_edits(walker: TokenWalker, functions: Mapping[str, FunctionDefinition]) -> Iterator[Edit]:
    """The edits that replace calls of ``functions``. Edits may be nested; inner ones are to be applied first.

    :param walker: the query's tokens
    :param functions: the program's functions by name
    :raises CallRefused: when a call has the wrong number of arguments
    """
    for call in walker.calls():
        function = functions.get(call.name)
        # In WITH f(a) AS (...) and FROM t AS f(a) it is a relation that has the function's name.
        if (
            function is None
            or walker.follows_value(call.at)
            or (walker.word(call.close + 1) == "as" and walker.word(call.close + 2) == "(")
        ):
            continue
        wanted, given = len(function.parameters), len(call.arguments)
        if wanted != given:
            noun = "argument" if wanted == 1 else "arguments"
            raise CallRefused(call.start, call.end, f"Function {function.name} takes {wanted} {noun}, and this call gives {given}")
        yield Edit(call.start, call.end, expanded(function, [walker.piece(*argument) for argument in call.arguments]))


def expanded(function: FunctionDefinition, arguments: list[str]) -> str:
    """Spark SQL for one call of a function.

    :param function: the function
    :param arguments: Spark SQL of the arguments, as many as there are parameters
    """
    values = [cast_text(text, parameter.type) for text, parameter in zip(arguments, function.parameters, strict=True)]
    match function.kind:
        case FunctionKind.PYTHON:
            return f"{function.spark_name}({', '.join(values)})"
        case FunctionKind.JSON:
            return _json_text(values[0], function.returns)
        case FunctionKind.SQL:
            given = {parameter.name: f"({value})" for parameter, value in zip(function.parameters, values, strict=True)}
            return cast_text(f"({_substituted(function.body, given)})", function.returns)


def _json_text(text: str, kind: ColumnType) -> str:
    """JSON text read into a type; NULL when it is no JSON, or a value that does not fit."""
    if kind.name in _FROM_JSON:
        # Spark's function makes a row of NULLs of a text that is no JSON at all.
        schema = spark_type(kind).replace("\\", "\\\\").replace("'", "\\'")
        return f"CASE WHEN TRY_PARSE_JSON({text}) IS NOT NULL THEN FROM_JSON({text}, '{schema}') END"
    if kind.is_variant:
        return f"TRY_PARSE_JSON({text})"
    return cast_text(f"TRY_VARIANT_GET(TRY_PARSE_JSON({text}), '$', '{spark_type(kind)}')", kind, attempt=True)


def _substituted(body: str, values: Mapping[str, str]) -> str:
    """The body of a SQL function with arguments in place of its parameters."""
    edits = []
    for column in parse_tokens(tokenise(body), body).find_all(exp.Column):
        first = column.parts[0]
        if first.name in values and "start" in first.meta:
            edits.append(Edit(first.meta["start"], first.meta["end"] + 1, values[first.name]))
    return Edited(body).edit(edits).text
