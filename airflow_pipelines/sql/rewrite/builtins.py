"""Rewrites functions and constructs that Spark has under another name, or as a combination of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.rewrite.constructs import difference_edits, ordinality_edits
from airflow_pipelines.sql.rewrite.formats import FORMATTED, formatted
from airflow_pipelines.sql.rewrite.json_access import JSON_ACCESS, json_access_call, json_operator_edits
from airflow_pipelines.sql.rewrite.json_calls import JSON_CALLS, json_call
from airflow_pipelines.sql.rewrite.token_walker import Call, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit

_NTZ = "CAST({} AS TIMESTAMP_NTZ)"
_UNITS = frozenset(
    {
        "century", "day", "decade", "hour", "isoweek", "microsecond", "millennium", "millisecond", "minute", "month", "quarter",
        "second", "week", "year",
    }
)  # fmt: skip

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
    # Numbers. Spark's own GREATEST passes over NULLs already.
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
    ("regexp_replace", 2): "REGEXP_REPLACE({0}, {1}, '')",
    ("strpos", 2): "INSTR({0}, {1})",
    ("to_hex", 1): "LOWER(HEX({0}))",
    # The first four bytes, the first of them the highest; the value of 32 bits may be negative.
    ("to_int", 1): "CASE WHEN LENGTH({0}) = 0 THEN 0 ELSE "
    "CAST(SHIFTRIGHT(SHIFTLEFT(CAST(CONV(HEX(LEFT({0}, 4)), 16, 10) AS BIGINT), 32), 32) AS INT) END",
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
"""Fields of a date or time that Spark's EXTRACT lacks."""


def builtin_edits(walker: TokenWalker) -> Iterator[Edit]:
    """The edits that replace calls and constructs by their forms in Spark. Edits may be nested; inner ones are to be applied first.

    :param walker: the query
    """
    for call in walker.calls():
        arguments = [walker.piece(*argument) for argument in call.arguments]
        text = _translated(walker, call, arguments)
        if text is not None:
            yield Edit(call.start, call.end, text)
    yield from _brackets(walker)
    yield from _map_literals(walker)
    yield from _subqueries(walker)
    yield from json_operator_edits(walker)
    yield from _timestamps(walker)
    yield from _bare_relations(walker)
    yield from ordinality_edits(walker)
    yield from difference_edits(walker)


def _translated(walker: TokenWalker, call: Call, arguments: Sequence[str]) -> str | None:
    template = TEMPLATES.get((call.name, len(arguments)))
    if template is not None:
        return None if "distinct" in arguments[:1] else template.format(*arguments)
    if call.name in _ANY_NUMBER and arguments and not walker.follows_value(call.at):
        return f"{_ANY_NUMBER[call.name]}({', '.join(arguments)})"
    special = _SPECIAL.get(call.name)
    return special(walker, call, arguments) if special is not None else None


def _chosen(walker: TokenWalker, call: Call, arguments: Sequence[str]) -> str | None:
    """MAX_BY and MIN_BY under their other names, and without DISTINCT, which has no effect and which Spark refuses in windows."""
    quantified = walker.word(call.at + 2) in {"all", "distinct"} and walker.word(call.at + 3) != ","
    if len(arguments) != 2 or not (quantified or call.name.startswith("arg")):
        return None
    value = walker.piece(walker.start(call.at + 3), call.arguments[0][1]) if quantified else arguments[0]
    return f"{'MAX_BY' if 'max' in call.name else 'MIN_BY'}({value}, {arguments[1]})"


def _unnest(walker: TokenWalker, call: Call, arguments: Sequence[str]) -> str | None:
    # In FROM it has a name with columns behind it; elsewhere it means nothing.
    alias = call.close + (2 if walker.word(call.close + 1) == "as" else 1)
    if len(arguments) != 1 or walker.word(alias + 1) != "(" or walker.word(call.at - 1) not in {",", "join", "lateral"}:
        return None
    return f"{'' if walker.word(call.at - 1) == 'lateral' else 'LATERAL '}EXPLODE({arguments[0]})"


def _extract(walker: TokenWalker, call: Call, arguments: Sequence[str]) -> str | None:
    field = walker.word(call.at + 2)
    if len(arguments) != 1 or walker.word(call.at + 3) != "from" or field not in _EXTRACTED or call.close < call.at + 5:
        return None
    return _EXTRACTED[field].format(walker.piece(walker.start(call.at + 4), walker.end(call.close - 1)))


def _date_part(_scan: TokenWalker, _call: Call, arguments: Sequence[str]) -> str | None:
    field = arguments[0].strip("'").lower() if len(arguments) == 2 else ""
    return _EXTRACTED[field].format(arguments[1]) if field in _EXTRACTED else None


def _timestamp_trunc(_scan: TokenWalker, _call: Call, arguments: Sequence[str]) -> str | None:
    if len(arguments) != 2 or arguments[1].lower() not in _UNITS:
        return None
    return _NTZ.format(f"DATE_TRUNC('{arguments[1].upper()}', {arguments[0]})")


def _date_trunc(_scan: TokenWalker, _call: Call, arguments: Sequence[str]) -> str | None:
    # With the unit first, and quoted, it is Spark's own function.
    if len(arguments) != 2 or arguments[1].lower() not in _UNITS:
        return None
    return f"CAST(DATE_TRUNC('{arguments[1].upper()}', {arguments[0]}) AS DATE)"


def _trunc(_scan: TokenWalker, _call: Call, arguments: Sequence[str]) -> str | None:
    # With a text second it is Spark's own function, of a date.
    if len(arguments) == 1 or (len(arguments) == 2 and arguments[1].lstrip("-").isdigit()):
        return TEMPLATES["truncate", len(arguments)].format(*arguments)
    return None


def _date_shifted(_scan: TokenWalker, call: Call, arguments: Sequence[str]) -> str | None:
    # A number of days is Spark's own function.
    if len(arguments) != 2 or not arguments[1].lower().startswith("interval"):
        return None
    return f"({arguments[0]} {'+' if call.name == 'date_add' else '-'} {arguments[1]})"


def _time_trunc(_scan: TokenWalker, _call: Call, arguments: Sequence[str]) -> str | None:
    if len(arguments) != 2 or arguments[1].lower() not in _UNITS:
        return None
    return f"TIME_TRUNC('{arguments[1].upper()}', {arguments[0]})"


def _rounded(walker: TokenWalker, call: Call, arguments: Sequence[str]) -> str | None:
    """FLOOR and CEIL of a time to a unit."""
    unit = walker.word(call.close - 1)
    if len(arguments) != 1 or walker.word(call.close - 2) != "to" or unit not in _UNITS or call.close < call.at + 5:
        return None
    value = walker.piece(walker.start(call.at + 2), walker.end(call.close - 3))
    floor = f"DATE_TRUNC('{unit.upper()}', {value})"
    if call.name == "floor":
        return _NTZ.format(floor)
    above = f"TIMESTAMPADD({unit.upper()}, 1, {floor})"
    return _NTZ.format(f"CASE WHEN {floor} = {value} THEN {floor} ELSE {above} END")


def _brackets(walker: TokenWalker) -> Iterator[Edit]:
    """``ARRAY[...]``, ``MAP[...]`` and ``a[SAFE_OFFSET(i)]``."""
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
        elif walker.name(at + 1) == "safe_offset" and walker.word(at + 2) == "(" and walker.closing(at + 2) == close - 1:
            first = walker.operand(at - 1)
            if first is not None:
                value = walker.piece(walker.start(first), walker.end(at - 1))
                index = walker.piece(walker.end(at + 2), walker.start(close - 1))
                yield Edit(walker.start(first), walker.end(close), f"GET({value}, {index})")


def _map_literals(walker: TokenWalker) -> Iterator[Edit]:
    """``MAP {key: value, ...}``."""
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
    # Rows hold NULL where a list of values would leave it out.
    "array": "(SELECT TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(__e))), __r -> __r.__e) FROM ({}) AS __q(__e))",
    "map": "(SELECT MAP_FROM_ENTRIES(SORT_ARRAY(COLLECT_LIST(STRUCT(__k, __v)))) FROM ({}) AS __q(__k, __v))",
}


def _subqueries(walker: TokenWalker) -> Iterator[Edit]:
    """``ARRAY(SELECT ...)`` and ``MAP(SELECT ...)``: all values or pairs that a query gives, sorted."""
    for at in range(len(walker.tokens) - 2):
        collected = _COLLECTED.get(walker.name(at))
        if collected is None or walker.word(at + 1) != "(" or walker.word(at + 2) not in {"select", "with"}:
            continue
        close = walker.closing(at + 1)
        if close is not None:
            query = walker.piece(walker.end(at + 1), walker.start(close))
            yield Edit(walker.start(at), walker.end(close), collected.format(query))


def _timestamps(walker: TokenWalker) -> Iterator[Edit]:
    """``TIMESTAMP '...'`` has no time zone, as a column of that type."""
    for at in range(len(walker.tokens) - 1):
        token = walker.tokens[at]
        if walker.text[token.start : token.end + 1] == "timestamp" and walker.tokens[at + 1].token_type is TokenType.STRING:
            yield Edit(token.start, token.end + 1, "TIMESTAMP_NTZ")


def _bare_relations(walker: TokenWalker) -> Iterator[Edit]:
    """``VALUES (...)`` and ``TABLE t`` as whole queries, or as sides of a set operation."""
    for at in range(len(walker.tokens)):
        token = walker.tokens[at]
        word = walker.text[token.start : token.end + 1]
        if word not in {"values", "table"} or walker.word(at - 1) not in _BEFORE_QUERY:
            continue
        yield Edit(token.start, token.end + 1, "SELECT * FROM VALUES" if word == "values" else "SELECT * FROM")


_BEFORE_QUERY = frozenset({"", "all", "distinct", "except", "intersect", "minus", "union"})
_Special = Callable[[TokenWalker, Call, Sequence[str]], str | None]
_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})
_SPECIAL: Mapping[str, _Special] = {
    **dict.fromkeys(("arg_max", "arg_min", "max_by", "min_by"), _chosen),
    "unnest": _unnest,
    "ceil": _rounded,
    "ceiling": _rounded,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "extract": _extract,
    "floor": _rounded,
    "time_trunc": _time_trunc,
    "timestamp_trunc": _timestamp_trunc,
    **dict.fromkeys(FORMATTED, formatted),
    **dict.fromkeys(JSON_ACCESS, json_access_call),
    **dict.fromkeys(JSON_CALLS, json_call),
    "trunc": _trunc,
    "date_add": _date_shifted,
    "date_sub": _date_shifted,
}
