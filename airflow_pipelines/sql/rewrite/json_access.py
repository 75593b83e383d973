"""The rewrite of JSON_GET and the like, and of ``->`` and ``->>``, which look into JSON by keys and positions from 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit
from airflow_pipelines.sql.syntax.tokens import LITERALS
from airflow_pipelines.sql.values.json_path import path_literal, path_step

_DOCUMENT = "TRY_PARSE_JSON(CAST({0} AS STRING))"
"""The JSON in a text or a VARIANT; NULL for a text that is no JSON."""
_END = ", 'variant')"
_FOUND = f"TRY_VARIANT_GET({{0}}, {{1}}{_END}"
_KIND = f"SCHEMA_OF_VARIANT({_FOUND})"
_TEMPLATES: Mapping[str, str] = {
    "json_as_text": "TRY_VARIANT_GET({0}, {1}, 'string')",
    "json_contains": f"({_FOUND} IS NOT NULL)",
    "json_get": _FOUND,
    "json_get_array": "TRANSFORM(TRY_VARIANT_GET({0}, {1}, 'array<variant>'), __e -> TO_JSON(__e))",
    "json_get_bool": f"CASE WHEN {_KIND} = 'BOOLEAN' THEN TRY_VARIANT_GET({{0}}, {{1}}, 'boolean') END",
    "json_get_float": f"CASE WHEN {_KIND} RLIKE '^(BIGINT|DECIMAL|DOUBLE|FLOAT)' THEN TRY_VARIANT_GET({{0}}, {{1}}, 'double') END",
    "json_get_int": f"CASE WHEN {_KIND} = 'BIGINT' THEN TRY_VARIANT_GET({{0}}, {{1}}, 'bigint') END",
    "json_get_json": f"TO_JSON({_FOUND})",
    "json_get_str": f"CASE WHEN {_KIND} = 'STRING' THEN TRY_VARIANT_GET({{0}}, {{1}}, 'string') END",
    "json_length": f"CASE WHEN {_KIND} LIKE 'ARRAY%' THEN SIZE(TRY_VARIANT_GET({{0}}, {{1}}, 'array<variant>')) "
    f"WHEN {_KIND} LIKE 'OBJECT%' THEN SIZE(TRY_VARIANT_GET({{0}}, {{1}}, 'map<string,variant>')) END",
}
"""Spark SQL of each function: ``{0}`` is the document, ``{1}`` the path."""
JSON_ACCESS = frozenset(_TEMPLATES)
"""The functions that are translated here."""
_OPERATORS: Mapping[str, str] = {"->": "json_get", "->>": "json_as_text"}
_HIGHER_ORDER = frozenset(
    {
        "aggregate", "array_exists", "array_sort", "exists", "filter", "forall", "map_filter", "map_zip_with", "reduce",
        "transform", "transform_keys", "transform_values", "variant_filter", "variant_map", "zip_with",
    }
)  # fmt: skip
"""Functions that take lambda functions, in which ``->`` is no operator."""


def json_access_call(_walker: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    """Return Spark SQL for a call of one of :data:`JSON_ACCESS`, or None without arguments.

    :param call: the call
    :param arguments: Spark SQL of the document, a text or a VARIANT, and of the keys and positions that lead to the value
    """
    return _access(call.name, arguments) if arguments else None


def json_operator_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits that replace ``document -> key`` and ``document ->> key``; of a chain the first one.

    :param walker: the query
    """
    for at in range(1, len(walker.tokens) - 1):
        if not _is_operator(walker, at):
            continue
        first, last = walker.operand(at - 1), _end_of_key(walker, at + 1)
        # The operand behind another operator is not the document yet.
        if first is None or last is None or _is_operator(walker, first - 1):
            continue
        document, key = walker.piece(walker.start(first), walker.end(at - 1)), walker.piece(walker.start(at + 1), walker.end(last))
        yield Edit(walker.start(first), walker.end(last), _access(_OPERATORS[walker.word(at)], [document, key]))


def _is_operator(walker: TokenWalker, at: int) -> bool:
    return walker.word(at) in _OPERATORS and not _is_lambda(walker, at)


def _is_lambda(walker: TokenWalker, at: int) -> bool:
    """Return True if the arrow at a token belongs to a lambda function, which is never the first argument of a call."""
    if walker.word(at) != "->":
        return False
    first = walker.opening(at - 1) if walker.word(at - 1) == ")" else at - 1
    if first is None or walker.word(first - 1) != ",":
        return False
    depth, place = 0, first - 1
    while place >= 0 and depth >= 0:
        depth += (walker.word(place) == ")") - (walker.word(place) == "(")
        place -= 1
    return depth < 0 and walker.name(place).lower() in _HIGHER_ORDER


def _end_of_key(walker: TokenWalker, at: int) -> int | None:
    """Return the last token of the key that begins at a token: a literal, a name, a call or an expression in parentheses."""
    if walker.tokens[at].token_type in LITERALS:
        return at
    if walker.word(at) == "(":
        return walker.closing(at)
    if not walker.name(at):
        return None
    while walker.word(at + 1) == "." and walker.name(at + 2):
        at += 2
    return walker.closing(at + 1) if walker.word(at + 1) == "(" else at


def _access(function: str, arguments: Sequence[str]) -> str:
    return _TEMPLATES[function].format(_document(arguments[0]), _path(arguments[1:]))


def _document(value: str) -> str:
    walker = TokenWalker(value)
    # The result of another access is a VARIANT already.
    is_found = value.endswith(_END) and walker.name(0) == "TRY_VARIANT_GET"
    return value if is_found and walker.closing(1) == len(walker.tokens) - 1 else _DOCUMENT.format(value)


def _path(keys: Sequence[str]) -> str:
    """Return Spark SQL of the path over keys (texts) and positions in arrays (numbers from 0)."""
    steps = [_known_step(key) for key in keys]
    if all(step is not None for step in steps):
        return path_literal("".join(step for step in steps if step is not None))
    parts = [_computed_step(key) if step is None else f"'{step}'" for key, step in zip(keys, steps, strict=True)]
    return f"CONCAT('$', {', '.join(parts)})"


def _known_step(key: str) -> str | None:
    tokens = TokenWalker(key).tokens
    if len(tokens) != 1:
        return None
    if tokens[0].token_type is TokenType.STRING:
        return path_step(tokens[0].text)
    return f"[{key}]" if key.isdigit() else None


def _computed_step(key: str) -> str:
    return f"CASE WHEN TYPEOF({key}) = 'string' THEN CONCAT('[\"', {key}, '\"]') ELSE CONCAT('[', {key}, ']') END"
