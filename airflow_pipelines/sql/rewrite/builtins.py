"""The rewrite of functions and constructs that Spark has under another name, or as a combination of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.rewrite.array_aggregates import array_aggregate_edits
from airflow_pipelines.sql.rewrite.casts import cast_text
from airflow_pipelines.sql.rewrite.constructs import (
    difference_edits,
    frame_edits,
    interval_edits,
    null_treatment_edits,
    quantified_edits,
    unnest_edits,
)
from airflow_pipelines.sql.rewrite.formats import FORMATTED, translate_format
from airflow_pipelines.sql.rewrite.json_access import JSON_ACCESS, json_access_call, json_operator_edits
from airflow_pipelines.sql.rewrite.json_calls import JSON_CALLS, json_call
from airflow_pipelines.sql.rewrite.ordinality import ordinality_edits
from airflow_pipelines.sql.rewrite.table_functions import table_function_edits
from airflow_pipelines.sql.rewrite.token_walker import NOT_CALLED, CallTokens, TokenWalker
from airflow_pipelines.sql.rewrite.truncation import TRUNCATIONS
from airflow_pipelines.sql.rewrite.unordered_windows import unordered_window_edits
from airflow_pipelines.sql.syntax.edits import Edit

_FIELDS = frozenset(
    {
        "day", "dayofweek", "dow", "doy", "hour", "minute", "month", "quarter", "second", "week", "year",
    }
)  # fmt: skip
"""The fields of a date or time that Spark has."""

TEMPLATES: Mapping[tuple[str, int], str] = {
    # Aggregates.
    ("countif", 1): "COUNT_IF({0})",
    ("logical_and", 1): "BOOL_AND({0})",
    ("logical_or", 1): "BOOL_OR({0})",
    # Arrays and maps.
    ("array_exists", 2): "EXISTS({0}, {1})",
    ("array_length", 1): "ARRAY_SIZE({0})",
    ("array_reverse", 1): "REVERSE({0})",
    ("array_to_string", 2): "ARRAY_JOIN({0}, {1})",
    ("array_to_string", 3): "ARRAY_JOIN({0}, {1}, {2})",
    ("element", 1): "CASE WHEN ARRAY_SIZE({0}) > 1 THEN RAISE_ERROR('ELEMENT() of several elements') ELSE GET({0}, 0) END",
    # Numbers. Spark's own GREATEST ignores NULLs already.
    ("greatest_ignore_nulls", 2): "GREATEST({0}, {1})",
    ("least_ignore_nulls", 2): "LEAST({0}, {1})",
    ("coth", 1): "(CASE WHEN {0} = 0 THEN DOUBLE('Infinity') ELSE 1 / TANH({0}) END)",
    ("csch", 1): "(CASE WHEN {0} = 0 THEN DOUBLE('Infinity') ELSE 1 / SINH({0}) END)",
    ("sech", 1): "(1 / COSH({0}))",
    ("is_nan", 1): "ISNAN({0})",
    ("is_inf", 1): "(ABS({0}) = DOUBLE('Infinity'))",
    ("truncate", 1): "(CASE WHEN {0} < 0 THEN CEIL({0}) ELSE FLOOR({0}) END)",
    ("truncate", 2): "(CASE WHEN {0} < 0 THEN CEIL({0}, {1}) ELSE FLOOR({0}, {1}) END)",
    # Texts and bytes.
    ("bin2utf8", 1): "DECODE({0}, 'UTF-8')",
    ("initcap_spaces", 1): "INITCAP({0})",
    ("regexp_replace", 2): "REGEXP_REPLACE({0}, {1}, '')",
    ("split", 1): "SPLIT({0}, ',')",
    ("strpos", 2): "INSTR({0}, {1})",
    ("to_hex", 1): "LOWER(HEX({0}))",
    # The first four bytes in big-endian order; the value of 32 bits may be negative.
    ("to_int", 1): "CASE WHEN LENGTH({0}) = 0 THEN 0 ELSE "
    "CAST(SHIFTRIGHT(SHIFTLEFT(CAST(CONV(HEX(LEFT({0}, 4)), 16, 10) AS BIGINT), 32), 32) AS INT) END",
    # Dates and times.
    ("localtime", 0): "CURRENT_TIME()",
    ("week", 1): "WEEKOFYEAR({0})",
    # JSON.
    ("variantnull", 0): "PARSE_JSON('null')",
}
"""Spark SQL for a call, by the function's name and its number of arguments; ``{n}`` is an argument."""
_ANY_NUMBER: Mapping[str, str] = {
    "array_concat": "CONCAT", "greatest_ignore_nulls": "GREATEST", "least_ignore_nulls": "LEAST", "row": "STRUCT",
}  # fmt: skip
"""Functions with any number of arguments that only have another name in Spark."""
_EXTRACTED: Mapping[str, str] = {
    "century": "CAST(CEIL(YEAR({0}) / 100) AS BIGINT)",
    "decade": "CAST(FLOOR(YEAR({0}) / 10) AS BIGINT)",
    "epoch": "UNIX_SECONDS(CAST({0} AS TIMESTAMP_LTZ))",
    "isodow": "EXTRACT(DAYOFWEEK_ISO FROM {0})",
    "isoyear": "EXTRACT(YEAROFWEEK FROM {0})",
    "microsecond": "CAST(EXTRACT(SECOND FROM {0}) * 1000000 AS BIGINT)",
    "millennium": "CAST(CEIL(YEAR({0}) / 1000) AS BIGINT)",
    "nanosecond": "CAST(EXTRACT(SECOND FROM {0}) * 1000000000 AS BIGINT)",
    "millisecond": "CAST(FLOOR(EXTRACT(SECOND FROM {0}) * 1000) AS BIGINT)",
}
"""The fields of a date or time that Spark's EXTRACT lacks."""


def builtin_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits that replace calls and constructs by their forms in Spark.

    Edits may be nested; inner ones must be applied first.

    :param walker: the query
    """
    for call in walker.calls():
        arguments = [walker.piece(*argument) for argument in call.arguments]
        text = _translate_call(walker, call, arguments)
        if text is not None:
            yield Edit(call.start, call.end, text)
    yield from _brackets(walker)
    yield from _map_literals(walker)
    yield from _subqueries(walker)
    yield from json_operator_edits(walker)
    yield from _timestamps(walker)
    yield from _uuids(walker)
    yield from _bare_relations(walker)
    yield from unnest_edits(walker)
    yield from ordinality_edits(walker)
    yield from table_function_edits(walker)
    yield from difference_edits(walker)
    yield from interval_edits(walker)
    yield from quantified_edits(walker)
    yield from null_treatment_edits(walker)
    yield from frame_edits(walker)
    yield from unordered_window_edits(walker)
    yield from array_aggregate_edits(walker)


def _translate_call(walker: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    template = TEMPLATES.get((call.name, len(arguments)))
    if template is not None:
        return None if "distinct" in arguments[:1] else template.format(*arguments)
    if call.name in _ANY_NUMBER and arguments and not walker.follows_value(call.at):
        return f"{_ANY_NUMBER[call.name]}({', '.join(arguments)})"
    special = _SPECIAL.get(call.name)
    return special(walker, call, arguments) if special is not None else None


def _rewrite_choice(walker: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    """Rewrite MAX_BY and MIN_BY under their other names or with DISTINCT.

    DISTINCT has no effect, and Spark refuses it in windows.
    """
    quantified = walker.word(call.at + 2) in {"all", "distinct"} and walker.word(call.at + 3) != ","
    if len(arguments) != 2 or not (quantified or call.name.startswith("arg")):
        return None
    value = walker.piece(walker.start(call.at + 3), call.arguments[0][1]) if quantified else arguments[0]
    return f"{'MAX_BY' if 'max' in call.name else 'MIN_BY'}({value}, {arguments[1]})"


def _extract(walker: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    field = walker.word(call.at + 2)
    if len(arguments) != 1 or walker.word(call.at + 3) != "from" or field not in _EXTRACTED or call.close < call.at + 5:
        return None
    return _EXTRACTED[field].format(walker.piece(walker.start(call.at + 4), walker.end(call.close - 1)))


def _date_part(_scan: TokenWalker, _call: CallTokens, arguments: Sequence[str]) -> str | None:
    field = arguments[0].strip("'").lower() if len(arguments) == 2 else ""
    if field in _EXTRACTED:
        return _EXTRACTED[field].format(arguments[1])
    return f"EXTRACT({field.upper()} FROM {arguments[1]})" if field in _FIELDS and arguments[0].lower() == field else None


def _trunc(_scan: TokenWalker, _call: CallTokens, arguments: Sequence[str]) -> str | None:
    # With a text as the second argument it is Spark's own function of dates.
    if len(arguments) == 1 or (len(arguments) == 2 and arguments[1].lstrip("-").isdigit()):
        return TEMPLATES["truncate", len(arguments)].format(*arguments)
    return None


def _shift_date(_scan: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    # With a number of days it is Spark's own function.
    if len(arguments) != 2 or not arguments[1].lower().startswith("interval"):
        return None
    return f"({arguments[0]} {'+' if call.name == 'date_add' else '-'} {arguments[1]})"


def _brackets(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``ARRAY[...]``, ``MAP[...]``, and ``a[SAFE_OFFSET(i)]`` and the like."""
    for at in range(1, len(walker.tokens)):
        if walker.word(at) != "[":
            continue
        close = walker.closing(at)
        if close is None:
            continue
        name = walker.name(at - 1)
        if name in {"array", "map"} and walker.word(at - 2) != "." and walker.word(at - 1):
            inner = walker.piece(walker.end(at), walker.start(close))
            yield Edit(walker.start(at - 1), walker.end(close), f"{name.upper()}({inner})")
        elif walker.name(at + 1) in _ELEMENTS and walker.word(at + 2) == "(" and walker.closing(at + 2) == close - 1:
            first = walker.operand(at - 1)
            if first is not None:
                value = walker.piece(walker.start(first), walker.end(at - 1))
                index = walker.piece(walker.end(at + 2), walker.start(close - 1))
                yield Edit(walker.start(first), walker.end(close), _ELEMENTS[walker.name(at + 1)].format(value, index))


_ELEMENTS: Mapping[str, str] = {
    "offset": "{0}[{1}]",
    "ordinal": "{0}[({1}) - 1]",
    "safe_offset": "GET({0}, {1})",
    "safe_ordinal": "GET({0}, ({1}) - 1)",
}
"""Spark SQL for an element of an array in brackets: counted from 0 or from 1, with an error or NULL for a missing one."""


def _map_literals(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``MAP {key: value, ...}``."""
    for at in range(1, len(walker.tokens)):
        close = walker.closing(at) if walker.word(at) == "{" and walker.name(at - 1) == "map" else None
        if close is None:
            continue
        colons, depth = [], 0
        for place in range(at + 1, close):
            word = walker.word(place)
            depth += (word in _OPENING) - (word in _CLOSING)
            if word == ":" and depth == 0:
                colons.append(place)
        if len(colons) == len(list(walker.arguments(at, close))):
            yield Edit(walker.start(at - 1), walker.end(at), "MAP(")
            yield from (Edit(walker.start(colon), walker.end(colon), ",") for colon in colons)
            yield Edit(walker.start(close), walker.end(close), ")")


_COLLECTED: Mapping[str, str] = {
    # A list of rows keeps NULLs, which a list of values would leave out.
    "array": "(SELECT TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(__e))), __r -> __r.__e) FROM ({}) AS __q(__e))",
    "map": "(SELECT MAP_FROM_ENTRIES(SORT_ARRAY(COLLECT_LIST(STRUCT(__k, __v)))) FROM ({}) AS __q(__k, __v))",
}


def _subqueries(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``ARRAY(SELECT ...)`` and ``MAP(SELECT ...)``: all values or pairs of a query, sorted."""
    for at in range(len(walker.tokens) - 2):
        collected = _COLLECTED.get(walker.name(at))
        if collected is None or walker.word(at + 1) != "(" or walker.word(at + 2) not in {"select", "with"}:
            continue
        close = walker.closing(at + 1)
        if close is not None:
            query = walker.piece(walker.end(at + 1), walker.start(close))
            yield Edit(walker.start(at), walker.end(close), collected.format(query))


def _timestamps(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``TIMESTAMP '...'`` and ``TIMESTAMP WITH TIME ZONE '...'``.

    The former has no time zone, as a column of that type.
    """
    for at in range(len(walker.tokens) - 1):
        token = walker.tokens[at]
        if walker.text[token.start : token.end + 1] != "timestamp":
            continue
        zoned = [walker.word(at + place) for place in (1, 2, 3)] == ["with", "time", "zone"]
        literal = at + 4 if zoned else at + 1
        if literal < len(walker.tokens) and walker.tokens[literal].token_type is TokenType.STRING:
            yield Edit(token.start, walker.end(literal - 1), "TIMESTAMP_LTZ" if zoned else "TIMESTAMP_NTZ")


def _uuids(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``UUID '...'``."""
    for at in range(len(walker.tokens) - 1):
        if walker.name(at) == "uuid" and walker.tokens[at + 1].token_type is TokenType.STRING and not walker.follows_value(at):
            literal = walker.piece(walker.start(at + 1), walker.end(at + 1))
            yield Edit(walker.start(at), walker.end(at + 1), cast_text(literal, ColumnType("UUID")))


def _bare_relations(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``VALUES (...)`` and ``TABLE t`` as whole queries, as sides of a set operation or in parentheses."""
    for at in range(len(walker.tokens)):
        token = walker.tokens[at]
        word = walker.text[token.start : token.end + 1]
        if word not in {"values", "table"} or not (walker.word(at - 1) in _BEFORE_QUERY or _is_subquery(walker, at)):
            continue
        yield Edit(token.start, token.end + 1, "SELECT * FROM VALUES" if word == "values" else "SELECT * FROM")


def _is_subquery(walker: TokenWalker, at: int) -> bool:
    """Return True if ``TABLE t`` is in parentheses that are not those of a function's arguments."""
    if walker.word(at) != "table" or walker.word(at - 1) != "(" or not walker.name(at + 1):
        return False
    before = walker.word(at - 2)
    return not walker.name(at - 2) or before in NOT_CALLED or before == "exists"


_BEFORE_QUERY = frozenset({"", "all", "distinct", "except", "intersect", "minus", "union"})
_Special = Callable[[TokenWalker, CallTokens, Sequence[str]], str | None]
_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})
_SPECIAL: Mapping[str, _Special] = {
    **dict.fromkeys(("arg_max", "arg_min", "max_by", "min_by"), _rewrite_choice),
    "date_part": _date_part,
    "extract": _extract,
    **dict.fromkeys(FORMATTED, translate_format),
    **dict.fromkeys(JSON_ACCESS, json_access_call),
    **dict.fromkeys(JSON_CALLS, json_call),
    **TRUNCATIONS,
    "trunc": _trunc,
    "date_add": _shift_date,
    "date_sub": _shift_date,
}
