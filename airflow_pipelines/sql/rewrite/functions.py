"""The rewrite that inlines calls of a program's SQL functions, and gives its Python functions their names in Spark."""

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
    """Yield the edits that replace calls of ``functions``. Edits may be nested; inner ones must be applied first.

    :param walker: the query's tokens
    :param functions: the program's functions by name
    :raises CallRefused: if a call has the wrong number of arguments
    """
    for call in walker.calls():
        function = functions.get(call.name)
        # In WITH f(a) AS (...) and FROM t AS f(a) the name is that of a relation.
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
        yield Edit(call.start, call.end, expand_call(function, [walker.piece(*argument) for argument in call.arguments]))


def expand_call(function: FunctionDefinition, arguments: list[str]) -> str:
    """Return Spark SQL for one call of a function.

    :param function: the function
    :param arguments: Spark SQL of the arguments, one for each parameter
    """
    values = [cast_text(text, parameter.type) for text, parameter in zip(arguments, function.parameters, strict=True)]
    match function.kind:
        case FunctionKind.PYTHON:
            return f"{function.spark_name}({', '.join(values)})"
        case FunctionKind.JSON:
            return _json_text(values[0], function.returns)
        case FunctionKind.SQL:
            given = {parameter.name: f"({value})" for parameter, value in zip(function.parameters, values, strict=True)}
            return cast_text(f"({_substitute_parameters(function.body, given)})", function.returns)


def _json_text(text: str, kind: ColumnType) -> str:
    """Return Spark SQL that parses JSON text to a type; NULL if it is no JSON, or a value that does not fit."""
    if kind.name in _FROM_JSON:
        # Spark's function returns a row of NULLs for a text that is no JSON at all.
        schema = spark_type(kind).replace("\\", "\\\\").replace("'", "\\'")
        return f"CASE WHEN TRY_PARSE_JSON({text}) IS NOT NULL THEN FROM_JSON({text}, '{schema}') END"
    if kind.is_variant:
        return f"TRY_PARSE_JSON({text})"
    return cast_text(f"TRY_VARIANT_GET(TRY_PARSE_JSON({text}), '$', '{spark_type(kind)}')", kind, attempt=True)


def _substitute_parameters(body: str, values: Mapping[str, str]) -> str:
    """Return the body of a SQL function with arguments in place of its parameters."""
    edits = []
    for column in parse_tokens(tokenise(body), body).find_all(exp.Column):
        first = column.parts[0]
        if first.name in values and "start" in first.meta:
            edits.append(Edit(first.meta["start"], first.meta["end"] + 1, values[first.name]))
    return Edited(body).edit(edits).text
