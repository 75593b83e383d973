"""The rewrite of JSON_EACH_*, VARIANT_FILTER and VARIANT_MAP to functions over maps of a VARIANT's fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_FIELDS = "TRY_VARIANT_GET({0}, '$', 'map<string,variant>')"
"""The fields of an object; NULL for anything else."""
_KIND = "SCHEMA_OF_VARIANT(f.value)"
_TEXT = "TRY_VARIANT_GET(f.value, '$', 'string')"
_WHOLE = "TRY_VARIANT_GET(f.value, '$', 'bigint')"
_EACH: Mapping[str, tuple[str, str]] = {
    # Values of the type itself, never texts of numbers or numbers as texts; dates and times may be texts, since JSON has no others.
    "json_each_bigint": (
        "BIGINT",
        # Neither a DOUBLE nor a DECIMAL alone shows every fraction.
        f"CASE WHEN {_KIND} RLIKE '^(BIGINT|DECIMAL|DOUBLE|FLOAT)' AND {_WHOLE} = TRY_VARIANT_GET(f.value, '$', 'double') "
        f"AND {_WHOLE} = TRY_VARIANT_GET(f.value, '$', 'decimal(38,9)') THEN {_WHOLE} END",
    ),
    "json_each_boolean": ("BOOLEAN", f"CASE WHEN {_KIND} = 'BOOLEAN' THEN TRY_VARIANT_GET(f.value, '$', 'boolean') END"),
    "json_each_double": (
        "DOUBLE",
        f"CASE WHEN {_KIND} RLIKE '^(BIGINT|DECIMAL|DOUBLE|FLOAT)' THEN TRY_VARIANT_GET(f.value, '$', 'double') END",
    ),
    "json_each_date": ("DATE", f"CASE WHEN {_KIND} IN ('DATE', 'STRING') THEN TRY_CAST({_TEXT} AS DATE) END"),
    "json_each_string": ("STRING", f"CASE WHEN {_KIND} = 'STRING' THEN {_TEXT} END"),
    "json_each_time": ("TIME", f"CASE WHEN {_KIND} = 'STRING' THEN TRY_CAST({_TEXT} AS TIME) END"),
    "json_each_timestamp": (
        "TIMESTAMP_NTZ",
        f"CASE WHEN {_KIND} IN ('TIMESTAMP_NTZ', 'STRING') THEN TRY_CAST({_TEXT} AS TIMESTAMP_NTZ) END",
    ),
}
"""For each function the type of its values, and the value of a field ``f``, which is NULL for a field that it skips."""
EACH = "json_each_"
"""The prefix of the names of the functions that return the fields of one type."""
JSON_CALLS = frozenset({*_EACH, "variant_filter", "variant_map"})
"""The functions that are translated here."""


def json_call(_scan: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    """Return Spark SQL for a call of one of :data:`JSON_CALLS`, or None if the function does not take such arguments.

    :param call: the call
    :param arguments: Spark SQL of its arguments
    """
    if call.name in _EACH:
        return _each(call.name, arguments[0]) if len(arguments) == 1 else None
    if len(arguments) != 2:
        return None
    key, value, body = _lambda(arguments[1])
    if not key:
        return None
    fields = _FIELDS.format(arguments[0])
    alone = _substitute_parameters(body, {key: "CAST(NULL AS STRING)", value: f"({arguments[0]})"})
    if call.name == "variant_filter":
        kept = f"TO_VARIANT_OBJECT(MAP_FILTER({fields}, ({key}, {value}) -> {body}))"
        return f"CASE WHEN {fields} IS NOT NULL THEN {kept} WHEN {alone} THEN {arguments[0]} END"
    mapped = f"TRANSFORM_VALUES({fields}, ({key}, {value}) -> COALESCE(CAST({body} AS VARIANT), PARSE_JSON('null')))"
    return (
        f"CASE WHEN {fields} IS NOT NULL THEN TO_VARIANT_OBJECT({mapped}) "
        f"WHEN ({arguments[0]}) IS NOT NULL THEN CAST({alone} AS VARIANT) END"
    )


def _each(name: str, value: str) -> str:
    kind, field = _EACH[name]
    pairs = f"TRANSFORM(MAP_ENTRIES({_FIELDS.format(value)}), f -> STRUCT(f.key AS key, {field} AS value))"
    entries = f"MAP_FROM_ENTRIES(FILTER({pairs}, f -> f.value IS NOT NULL))"
    none = f"CAST(MAP() AS MAP<STRING, {kind}>)"
    return f"CASE WHEN ({value}) IS NOT NULL THEN COALESCE({entries}, {none}) END"


def _lambda(text: str) -> tuple[str, str, str]:
    """Return the two parameters and the body of ``(k, v) -> body``, or empty texts for anything else."""
    walker = TokenWalker(text)
    names = [walker.piece(walker.start(at), walker.end(at)) for at in (1, 3) if walker.name(at)]
    shape = [walker.word(at) for at in (0, 2, 4, 5)]
    if shape != ["(", ",", ")", "->"] or len(names) != 2 or len(walker.tokens) < 7:
        return "", "", ""
    return names[0], names[1], walker.piece(walker.start(6), len(text))


def _substitute_parameters(body: str, values: Mapping[str, str]) -> str:
    """Return the body of a lambda with other expressions for its parameters."""
    walker = TokenWalker(body)
    edits = [
        Edit(walker.start(at), walker.end(at), values[walker.piece(walker.start(at), walker.end(at))])
        for at in range(len(walker.tokens))
        if walker.piece(walker.start(at), walker.end(at)) in values
        and walker.name(at)
        and walker.word(at - 1) != "."
        and walker.word(at + 1) != "("
    ]
    return Edited(body).edit(edits).text
